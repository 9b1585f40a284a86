// POST /v1/identify against a real server: who may call it, in which form, and every answer it can give.

import t from 'tap'
import { IDENTIFY_BODY_BYTES_MAX, NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import { ulidTime } from '../../src/domain/ids.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { talk } from '../http/harness.ts'
import { type Answer, browserBody, CHROME, clientOf, eventually, openApi } from './client.ts'
import { LIMITS } from './identify-limits.ts'

t.teardown(cleanUp)

const api = await openApi({ FINGERPOST_HTTP_TRUSTED_PROXIES: '127.0.0.0/8, 10.0.0.0/8' })
const { server, send, identify, get, admin } = api
const { keys } = server

let nonces = 0
const newNonce = () => `nonce-of-a-test-${String(++nonces).padStart(6, '0')}`
const timeOf = (requestId: string) => ulidTime(requestId.slice(4))
const inTest = (mock: object, more: object = {}) => identify({ ...more, mock }, { key: keys.testSecret })
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** The error an answer is, checked against the contract. */
function errorOf(answer: Answer): { code: string; field: string | undefined } {
  t.same(shapes.errorFaults(answer.status, answer.body), [], `error body of ${answer.text.slice(0, 80)}`)
  return { code: answer.body?.error?.code, field: answer.body?.error?.field }
}

t.test('a public key gets ids only, a secret key the whole Event, each with a token', async (t) => {
  const body = { ...browserBody(), linkedId: 'user_42', email: ' Ann.Other@Shop.EXAMPLE ', tag: { action: 'login' } }
  for (const key of [keys.public, keys.testPublic]) {
    const answer = await identify(body, { key })
    t.equal(answer.status, 200)
    t.same(shapes.publicResult(answer.body), [])
  }
  for (const key of [keys.secret, keys.testSecret]) {
    const answer = await identify({ ...body, ip: '203.0.113.9', userAgent: CHROME }, { key })
    t.equal(answer.status, 200)
    t.same(shapes.secretResult(answer.body), [])
    t.match(answer.body, {
      linkedId: 'user_42',
      email: 'a***@shop.example',
      tag: { action: 'login' },
      url: body.url,
      ip: { address: '203.0.113.*' },
      device: { platform: 'Windows', browser: 'Chrome 147', type: 'desktop', screen: { w: 2560, h: 1440 } },
    })
    t.equal(timeOf(answer.body.requestId), Date.parse(answer.body.timestamp), 'the id carries the time of the event')
    t.ok(Math.abs(Date.parse(answer.body.timestamp) - Date.now()) < 5_000)
    const read = await get(`/v1/events/${answer.body.requestId}`, key)
    const { storageToken, ...event } = answer.body
    t.match(storageToken, shapes.STORAGE_TOKEN)
    t.same(read.body, event, 'and it is the Event that can be read')
  }
})

t.test('what is left out is null or empty, never absent', async (t) => {
  for (const body of [{}, { url: '', referrer: '', tag: {}, storageToken: '', components: {} }]) {
    const { status, body: result } = await identify(body)
    t.equal(status, 200)
    t.same(shapes.secretResult(result), [])
    t.match(result, { linkedId: null, email: null, url: null, tag: {}, verdict: null, matchedRule: null, visitorFound: false })
    t.equal(result.firstSeenAt, result.timestamp)
  }
})

t.test('the workspace decides whether a browser learns the verdict', async (t) => {
  const setting = async (clientResult: string) =>
    t.equal((await admin('PATCH', '/workspaces/ws_default', { settings: { clientResult } })).status, 200)
  const asPublic = () => identify(browserBody(), { key: keys.public })
  await setting('verdict')
  const told = await eventually(asPublic, ({ body }) => 'verdict' in body)
  t.same(shapes.publicResultWithVerdict(told.body), [])
  t.match(told.body, { verdict: null, challengeType: null }, 'no rule is live')
  await setting('id')
  const untold = await eventually(asPublic, ({ body }) => !('verdict' in body))
  t.same(shapes.publicResult(untold.body), [])
})

t.test('below Pro nobody gets scores', async (t) => {
  const plan = async (name: string) =>
    t.equal((await admin('PATCH', '/workspaces/ws_default', { plan: name })).status, 200)
  await plan('starter')
  const starter = await eventually(() => identify(browserBody()), ({ body }) => !('scores' in body))
  t.same(shapes.secretResultWithoutScores(starter.body), [])
  t.same(shapes.eventWithoutScores((await get(`/v1/events/${starter.body.requestId}`)).body), [])
  await plan('enterprise')
  t.same(shapes.secretResult((await eventually(() => identify({}), ({ body }) => 'scores' in body)).body), [])
})

t.test('text/plain with the key in the address needs no preflight', async (t) => {
  const raw = JSON.stringify(browserBody())
  const plain = { 'Content-Type': 'text/plain' }
  const post = (query: string, headers: Record<string, string> = plain, key: string | null = null) =>
    send('POST', `/v1/identify${query}`, { key, raw, headers })
  for (const type of ['text/plain', 'text/plain;charset=UTF-8', 'Text/Plain; charset=utf-8', 'application/json']) {
    const answer = await post(`?key=${keys.public}`, { 'Content-Type': type })
    t.equal(answer.status, 200, type)
    t.same(shapes.publicResult(answer.body), [])
    t.equal(answer.headers.get('access-control-allow-origin'), '*')
  }
  t.equal((await post(`?key=${encodeURIComponent(keys.public).replace('pk', '%70k')}`)).status, 200, 'percent-encoded')
  t.same(errorOf(await post('', plain, keys.public)).code, 'unsupported_media_type', 'only with the key in the address')
  t.same(errorOf(await post(`?key=${keys.public}`, { 'Content-Type': 'text/html' })).code, 'unsupported_media_type')
  t.same(errorOf(await post(`?key=${keys.secret}`)).code, 'invalid_api_key', 'a secret key has no place in an address')
  t.same(errorOf(await post('?key=')).code, 'invalid_api_key')
  t.same(errorOf(await post(`?key=${keys.public}&debug=1`)), { code: 'validation_error', field: 'debug' })
  t.same(errorOf(await send('POST', '/v1/identify?x=1', { body: {} })), { code: 'validation_error', field: 'x' })
})

t.test('browsers may read every answer of this path, and of no other', async (t) => {
  const preflight = await send('OPTIONS', '/v1/identify', {
    key: null,
    headers: { Origin: 'https://shop.example', 'Access-Control-Request-Method': 'POST' },
  })
  t.equal(preflight.status, 204)
  t.equal(preflight.headers.get('access-control-allow-origin'), '*')
  t.match(preflight.headers.get('access-control-allow-methods'), /\bPOST\b/)
  t.match(preflight.headers.get('access-control-allow-headers'), /Authorization/i)
  t.match(preflight.headers.get('access-control-allow-headers'), /Content-Type/i)
  t.ok(Number(preflight.headers.get('access-control-max-age')) > 0)
  t.equal(preflight.headers.get('access-control-allow-credentials'), null)

  const answers: [number, Answer][] = [
    [200, await identify({})],
    [400, await identify({ nonce: 1 })],
    [400, await send('POST', '/v1/identify', { raw: '{' })],
    [401, await identify({}, { key: null })],
    [403, await identify({ ip: '1.2.3.4' }, { key: keys.public })],
    [405, await send('GET', '/v1/identify')],
    [405, await send('DELETE', '/v1/identify')],
    [413, await send('POST', '/v1/identify', { raw: ' '.repeat(IDENTIFY_BODY_BYTES_MAX + 1) })],
    [415, await send('POST', '/v1/identify', { raw: '{}', headers: { 'Content-Type': 'text/xml' } })],
  ]
  for (const [status, answer] of answers) {
    t.equal(answer.status, status)
    t.equal(answer.headers.get('access-control-allow-origin'), '*', `${status} can be read`)
    t.match(answer.headers.get('access-control-expose-headers'), /Retry-After/)
    t.match(answer.headers.get('x-request-id'), shapes.CALL_ID)
    if (status !== 200) errorOf(answer)
  }
  t.match(answers.map(([, { headers }]) => headers.get('allow')).filter(Boolean), [/POST/, /POST/])
  const withoutLength = await talk(
    server.port,
    `POST /v1/identify HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keys.secret}\r\nContent-Type: application/json\r\n\r\n`,
  )
  t.equal(await withoutLength.until('400 closed'), '400 closed')
  t.match(withoutLength.text(), /Access-Control-Allow-Origin: \*/i)
  t.match(withoutLength.text(), /"invalid_json"/)
  for (const path of ['/v1/events', '/v1/meta', '/readyz', '/v1/nothing']) {
    t.equal((await get(path)).headers.get('access-control-allow-origin'), null, path)
  }
  t.equal((await send('OPTIONS', '/v1/events', { key: null })).status, 405)
})

t.test('a token leads back to its visitor whatever else changed', async (t) => {
  const first = (await identify(browserBody())).body
  const again = (await identify({ ...browserBody('Apple GPU'), storageToken: first.storageToken, userAgent: CHROME })).body
  t.match(again, { visitorId: first.visitorId, visitorFound: true, firstSeenAt: first.firstSeenAt })
  t.equal(again.identity.method, 'token')
  t.ok(again.confidence > 0.4)
  const bare = (await identify({ storageToken: again.storageToken }, { key: keys.public })).body
  t.match(bare, { visitorId: first.visitorId, visitorFound: true })
})

t.test('a token with any character changed, or of another tenant, counts as none', async (t) => {
  const { visitorId, storageToken } = (await identify({})).body
  const forged: [string, string][] = [...storageToken].map((c, i) => [
    storageToken.slice(0, i) + (c === 'A' ? 'B' : 'A') + storageToken.slice(i + 1),
    `character ${i} changed`,
  ])
  forged.push(
    [storageToken.slice(0, -1), 'cut'],
    [`${storageToken}A`, 'longer'],
    [`${storageToken}=`, 'padded'],
    [` ${storageToken}`, 'with a space'],
    [storageToken.toLowerCase(), 'in lower case'],
    ['st_', 'empty'],
    ['x', 'no token at all'],
  )
  const asked = await Promise.all(forged.map(async ([token, how]) => ({ how, ...(await identify({ storageToken: token })) })))
  for (const { how, status, body } of asked) {
    t.equal(status, 200, how)
    t.equal(body.visitorFound, false, how)
    t.not(body.visitorId, visitorId, how)
    t.not(body.identity.method, 'token', how)
  }

  const other = (await admin('POST', '/workspaces', { name: 'Other' })).body
  const foreign = (await admin('POST', `/workspaces/${other.id}/keys`, { kind: 'secret', environment: 'live' })).body.key
  for (const key of [keys.testSecret, foreign]) {
    const { status, body } = await identify({ storageToken }, { key })
    t.equal(status, 200)
    t.match(body, { visitorFound: false })
    t.not(body.visitorId, visitorId)
  }
})

t.test('a forged token is evidence of tampering', async (t) => {
  const lying = { ...browserBody(), userAgent: CHROME }
  lying.components['vendor'] = { value: 'Apple Computer, Inc.' }
  const honest = (await identify({ ...lying, storageToken: null })).body
  t.equal(honest.signals.tampered, false, 'one contradiction is not enough')
  const forged = (await identify({ ...lying, storageToken: `st_${'A'.repeat(64)}` })).body
  t.equal(forged.signals.tampered, true)
  t.ok(forged.signalDetails.tampered.methods.includes('token_forged'))
})

t.test('the same nonce is the same event', async (t) => {
  const body = { ...browserBody(), nonce: newNonce(), email: 'x@y.example', url: '', tag: { n: 1.5, s: '💡' } }
  const first = await identify(body)
  t.equal(first.headers.get('idempotent-replayed'), null)
  const again = await identify(body)
  t.equal(again.status, 200)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(again.text, first.text, 'to the byte')
  const asPublic = await identify(body, { key: keys.public })
  t.equal(asPublic.headers.get('idempotent-replayed'), 'true')
  t.same(shapes.publicResult(asPublic.body), [], 'in the form of the key that asks')
  t.equal(asPublic.body.requestId, first.body.requestId)
  const inTestEnv = await identify(body, { key: keys.testSecret })
  t.equal(inTestEnv.headers.get('idempotent-replayed'), null, 'another environment knows nothing of it')
  t.equal(NONCE_WINDOW_MS, 120_000)
})

t.test('a nonce that is used for something else is refused, wherever the body would lead', async (t) => {
  const variants: object[] = [
    { linkedId: 'someone-else' },
    { userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Safari/604.1' },
    { components: { ...browserBody().components, webGlBasics: { value: { renderer: 'Mali-G78' } } } },
    { ip: '198.51.100.77' },
    { native: { platform: 'android', model: 'Pixel 9' } },
    { tag: { a: 1 } },
  ]
  for (let i = 0; i < 4; i++) {
    const body = { ...browserBody(), nonce: newNonce(), linkedId: `user-${i}` }
    const first = await identify(body)
    for (const variant of variants) {
      const answer = await identify({ ...body, ...variant })
      t.equal(answer.status, 409, JSON.stringify(variant).slice(0, 60))
      t.same(errorOf(answer), { code: 'idempotency_conflict', field: 'nonce' })
    }
    const { storageToken } = first.body
    t.equal((await identify({ ...body, storageToken })).status, 409, 'also when a token routes it')
    t.equal((await identify(body)).text, first.text, 'and the first still stands')
  }
})

t.test('repeats that arrive together make one event', async (t) => {
  const body = { ...browserBody(), nonce: newNonce() }
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => identify(body, { key: i % 2 ? keys.public : keys.secret })))
  t.equal(new Set(answers.map((a) => a.body.requestId)).size, 1)
  t.equal(answers.filter((a) => a.headers.get('idempotent-replayed') === null).length, 1)
  for (const [i, { status, body: result }] of answers.entries()) {
    t.equal(status, 200)
    t.same((i % 2 ? shapes.publicResult : shapes.secretResult)(result), [], 'each in the form of its own key')
  }
  const mixed = newNonce()
  const rivals = await Promise.all(Array.from({ length: 20 }, (_, i) => identify({ nonce: mixed, linkedId: `u${i}` })))
  t.equal(rivals.filter((a) => a.status === 200).length, 1)
  t.equal(rivals.filter((a) => a.status === 409).length, 19)
})

t.test('only a secret key speaks for its client', async (t) => {
  for (const [field, value] of [
    ['ip', '203.0.113.9'],
    ['userAgent', CHROME],
    ['headers', { accept: '*/*' }],
    ['ip', 7],
    ['headers', null],
  ] as const) {
    const answer = await identify({ [field]: value, nonce: 'too short', unknown: 1 }, { key: keys.public })
    t.equal(answer.status, 403, `${field} comes before what else is wrong`)
    t.equal(errorOf(answer).code, 'insufficient_permissions')
  }
  const headers = { 'User-Agent': CHROME, 'Sec-CH-UA-Platform': '"Windows"', 'Accept-Language': 'de' }
  const { body } = await identify({ ...browserBody(), ip: '2001:DB8:0:1::9', headers })
  t.match(body, { ip: { address: '2001:db8:0::*' }, device: { platform: 'Windows', browser: 'Chrome 147' } })
  t.equal(body.signals.tampered, false, 'the headers of the calling server are not held against its client')
  const own = await identify({ ip: '::ffff:203.0.113.7', userAgent: CHROME, headers: { 'user-agent': 'curl/8' } })
  t.match(own.body, { ip: { address: '203.0.113.*' }, device: { browser: 'Chrome 147' } }, 'userAgent wins over headers')
})

t.test('only a test key mocks', async (t) => {
  for (const key of [keys.secret, keys.public]) {
    for (const mock of [{}, null, 'x', { country: 'JP' }]) {
      const answer = await identify({ mock, nonce: 1 }, { key })
      t.equal(answer.status, 403)
      t.equal(errorOf(answer).code, 'insufficient_permissions')
    }
  }
  const asPublic = await identify({ mock: { country: 'JP' } }, { key: keys.testPublic })
  t.equal(asPublic.status, 200)
})

t.test('a mock decides what it names and nothing else', async (t) => {
  const forced = await inTest({
    ip: '203.0.113.9',
    country: 'JP',
    signals: { vpn: { detected: true, provider: 'Nord' }, bot: { detected: true, type: 'scraper' }, tor: true, incognito: false },
    scores: { suspect: 90.126, ato: 0.12345 },
  })
  t.same(shapes.secretResult(forced.body), [])
  t.match(forced.body, {
    ip: { address: '203.0.113.*', country: 'JP' },
    signals: { vpn: { detected: true, provider: 'Nord' }, bot: { detected: true }, tor: true, incognito: false, proxy: false },
    signalDetails: { vpn: { state: 'detected', source: 'mock' }, bot: { type: 'scraper' } },
    scores: { suspect: 90.13, ato: 0.1235 },
  })
  t.equal(forced.body.signalDetails.incognito, undefined, 'a signal that was forced off is clear')
  t.ok(forced.body.scores.bot > 0, 'scores follow the forced signals')
  const read = await get(`/v1/events/${forced.body.requestId}`, keys.testSecret)
  t.match(read.body, { ip: { country: 'JP' }, signals: { tor: true }, scores: { suspect: 90.13 } })
  t.match((await inTest({}, { ip: '198.51.100.4' })).body, { ip: { address: '198.51.100.*' } })
  t.match((await inTest({ ip: '203.0.113.1' }, { ip: '198.51.100.4' })).body, { ip: { address: '203.0.113.*' } })
})

t.test('mock.at is the time of the event in every place', async (t) => {
  const at = new Date(Date.now() - 30 * DAY_MS).toISOString()
  const { body } = await inTest({ at })
  t.equal(body.timestamp, at)
  t.equal(body.firstSeenAt, at)
  t.equal(body.lastSeenAt, at)
  t.equal(timeOf(body.requestId), Date.parse(at))
  const offset = '2026-11-01T10:00+02:00'
  t.equal((await inTest({ at: offset })).body.timestamp, '2026-11-01T08:00:00.000Z', 'seconds are optional, zones allowed')
  const earliest = new Date(Date.now() - 90 * DAY_MS + MINUTE_MS).toISOString()
  t.equal((await inTest({ at: earliest })).status, 200)
  const late = await get(`/v1/events/${body.requestId}`, keys.testSecret)
  t.equal(late.body.timestamp, at)
  for (const wrong of [
    new Date(Date.now() - 90 * DAY_MS - MINUTE_MS).toISOString(),
    new Date(Date.now() + MINUTE_MS).toISOString(),
  ]) {
    const refused = await inTest({ at: wrong })
    t.equal(refused.status, 400, wrong)
    t.same(errorOf(refused), { code: 'validation_error', field: 'mock.at' })
  }
})

t.test('behind trusted proxies the address is the last hop that is not one of them', async (t) => {
  const from = async (forwarded: string) =>
    (await identify({}, { headers: { 'X-Forwarded-For': forwarded } })).body.ip.address
  t.equal(await from('203.0.113.9'), '203.0.113.*')
  t.equal(await from('198.51.100.1, 203.0.113.9'), '203.0.113.*', 'what is left of it was said by the client')
  t.equal(await from('203.0.113.9, 10.1.2.3'), '203.0.113.*')
  t.equal(await from('203.0.113.9,10.1.2.3 , 127.0.0.1'), '203.0.113.*')
  t.equal(await from('10.9.9.9, 10.1.2.3'), '10.9.9.*', 'when all are trusted the first is the client')
  t.equal(await from('2001:db8:7::1'), '2001:db8:7::*')
  t.equal(await from('::ffff:203.0.113.9'), '203.0.113.*')
  for (const junk of ['unknown', '203.0.113.9:443', '<script>', '203.0.113.9, _hidden', '', ',,,']) {
    t.equal(await from(junk), '127.0.0.*', JSON.stringify(junk))
  }
  t.equal(await from('203.0.113.9, junk, 10.1.2.3'), '10.1.2.*', 'nothing left of an unreadable hop is believed')
  const asServer = await identify({ ip: '198.51.100.4' }, { headers: { 'X-Forwarded-For': '203.0.113.9' } })
  t.equal(asServer.body.ip.address, '198.51.100.*', 'a secret key knows better')
})

t.test('a public key with a list of origins works from those only', async (t) => {
  const made = await admin('POST', '/workspaces/ws_default/keys', {
    kind: 'public',
    environment: 'live',
    origins: ['https://shop.example'],
  })
  const key = made.body.key
  const from = (origin: string, call: object = {}) => identify({}, { key, headers: { Origin: origin }, ...call })
  t.equal((await from('https://shop.example')).status, 200)
  for (const origin of ['https://shop.example.evil.example', 'http://shop.example', 'https://shop.example:8443', 'null']) {
    const refused = await from(origin)
    t.equal(refused.status, 403, origin)
    t.equal(errorOf(refused).code, 'origin_not_allowed')
    t.equal(refused.headers.get('access-control-allow-origin'), '*', 'the page can read why')
  }
  const before = await send('POST', '/v1/identify', {
    key,
    raw: 'x'.repeat(70_000),
    headers: { Origin: 'https://evil.example', 'Content-Type': 'text/xml' },
  })
  t.equal(errorOf(before).code, 'origin_not_allowed', 'before type and size')
})

t.test('a restricted secret key needs the scope', async (t) => {
  const make = async (...scopes: string[]) =>
    (await admin('POST', '/workspaces/ws_default/keys', { kind: 'secret', environment: 'live', scopes })).body.key
  const reader = await make('events:read')
  const refused = await identify({}, { key: reader })
  t.equal(refused.status, 403)
  t.equal(errorOf(refused).code, 'insufficient_permissions')
  t.match(refused.body.error.message, /\bidentify\b/)
  t.equal((await identify({}, { key: await make('identify') })).status, 200)
})

t.test('a body may have 65,536 bytes and 32 levels, and no more', async (t) => {
  const sized = (bytes: number) => {
    const frame = '{"components":{"x":{"value":""}}}'
    return frame.replace('""', `"${'x'.repeat(bytes - frame.length)}"`)
  }
  t.equal((await send('POST', '/v1/identify', { raw: sized(IDENTIFY_BODY_BYTES_MAX) })).status, 200)
  const large = await send('POST', '/v1/identify', { raw: sized(IDENTIFY_BODY_BYTES_MAX + 1) })
  t.equal(large.status, 413)
  t.equal(errorOf(large).code, 'payload_too_large')
  const chunked = talk(
    server.port,
    `POST /v1/identify HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keys.secret}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    `${(IDENTIFY_BODY_BYTES_MAX + 1).toString(16)}\r\n${sized(IDENTIFY_BODY_BYTES_MAX + 1)}\r\n0\r\n\r\n`,
  )
  t.match(await chunked.until('413 closed'), /^413/, 'a length nobody announced is counted')
  t.match(chunked.text(), /Access-Control-Allow-Origin: \*/i)
  // The value of a component lies at level 4: body, components, entry, value.
  const deep = (levels: number) =>
    `{"components":{"x":{"value":${'['.repeat(levels - 3)}${']'.repeat(levels - 3)}}}}`
  t.equal((await send('POST', '/v1/identify', { raw: deep(32) })).status, 200)
  for (const levels of [33, 1_000, 32_000]) {
    const refused = await send('POST', '/v1/identify', { raw: deep(levels) })
    t.equal(refused.status, 400, `${levels} levels`)
    t.equal(errorOf(refused).code, 'invalid_json')
  }
})

t.test('text that is no JSON is refused as such', async (t) => {
  const texts: (string | Uint8Array)[] = ['', ' ', '{', '{}}', '{"a":NaN}', "{'a':1}", '{"a":1,}', '\ufeff{}', 'undefined', '{"url":"\u0001"}']
  texts.push(Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), Uint8Array.from([0x22, 0xc0, 0xaf, 0x22]))
  for (const raw of texts) {
    const refused = await send('POST', '/v1/identify', { raw })
    t.equal(refused.status, 400, JSON.stringify(String(raw)))
    t.equal(errorOf(refused).code, 'invalid_json')
  }
  t.equal((await send('POST', '/v1/identify', { raw: '{"url":"\\ud800 half"}' })).body.url, '\ufffd half')
})

t.test('an earlier check hides the later ones', async (t) => {
  const large = 'x'.repeat(IDENTIFY_BODY_BYTES_MAX + 1)
  const xml = { 'Content-Type': 'text/xml' }
  const deep = `{"mock":${'['.repeat(40)}${']'.repeat(40)},"ip":1}`
  const cases: [string, Parameters<typeof send>, number, string, string?][] = [
    ['route before key', ['POST', '/v1/identify/', { key: null, raw: large }], 404, 'route_not_found'],
    ['method before key', ['PUT', '/v1/identify', { key: null, raw: large, headers: xml }], 405, 'method_not_allowed'],
    ['key before type and size', ['POST', '/v1/identify', { key: null, raw: large, headers: xml }], 401, 'invalid_api_key'],
    ['a malformed key too', ['POST', '/v1/identify', { key: 'sk_live_x', raw: large, headers: xml }], 401, 'invalid_api_key'],
    ['type before JSON', ['POST', '/v1/identify', { raw: '{', headers: xml }], 415, 'unsupported_media_type'],
    ['size before JSON', ['POST', '/v1/identify', { raw: large }], 413, 'payload_too_large'],
    ['JSON before what the key may say', ['POST', '/v1/identify', { key: keys.public, raw: deep }], 400, 'invalid_json'],
    ['the same for broken JSON', ['POST', '/v1/identify', { key: keys.public, raw: '{"ip":1' }], 400, 'invalid_json'],
    ['what the key may say before shapes', ['POST', '/v1/identify', { key: keys.public, raw: '{"x":1,"ip":1}' }], 403, 'insufficient_permissions', 'ip'],
    ['and before the query', ['POST', '/v1/identify?x=1', { key: keys.public, raw: '{"ip":1}' }], 403, 'insufficient_permissions', 'ip'],
    ['shapes', ['POST', '/v1/identify', { raw: '{"x":1}' }], 400, 'validation_error', 'x'],
  ]
  for (const [name, request, status, code, field] of cases) {
    const answer = await send(...request)
    t.equal(answer.status, status, name)
    t.same(errorOf(answer), { code, field }, name)
  }
  t.equal((await identify({}, { key: null })).headers.get('www-authenticate'), 'Bearer')
})

t.test('every limit holds to the last character', async (t) => {
  for (const { name, body, refused } of LIMITS) {
    const answer = await identify(body, { key: keys.testSecret })
    t.equal(answer.status, refused === null ? 200 : 400, name)
    if (refused === null) t.same(shapes.secretResult(answer.body), [], name)
    else t.same(errorOf(answer), { code: 'validation_error', field: refused }, name)
  }
})

t.test('an email is normalised before it is kept and masked whenever it is shown', async (t) => {
  for (const [sent, shown] of [
    ['ANN@B.example', 'a***@b.example'],
    ['  bob@b.example\t', 'b***@b.example'],
    ['Ünal@B.Example', 'ü***@b.example'],
    ['💡@b.example', '💡***@b.example'],
  ] as const) {
    const { body } = await identify({ email: sent })
    t.equal(body.email, shown)
    t.equal((await get(`/v1/events/${body.requestId}`)).body.email, shown)
  }
})

t.test('a page address is kept to 2,048 characters that are whole', async (t) => {
  const { body } = await identify({ url: `https://a.example/${'💡'.repeat(2_000)}` })
  t.ok(body.url.length <= 2_048 && body.url.isWellFormed())
  t.equal((await get(`/v1/events/${body.requestId}`)).body.url, body.url)
})

t.test('a connection serves one request after another', async (t) => {
  const request = (linkedId: string) => {
    const body = JSON.stringify({ linkedId })
    return `POST /v1/identify HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keys.secret}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
  const line = talk(server.port, request('a'))
  t.equal(await line.until('200'), '200')
  line.socket.write(request(''))
  t.equal(await line.until('200 400'), '200 400', 'a refusal does not cost the connection')
  line.socket.write(request('b'))
  t.equal(await line.until('200 400 200'), '200 400 200')
  const ids = [...line.text().matchAll(/X-Request-Id: (call_\w+)/gi)].map(([, id]) => id)
  t.equal(new Set(ids).size, 3)
  line.socket.destroy()
})

t.test('what is not decided in time is pending, never missing, and then there', async (t) => {
  const slow = await openApi({ FINGERPOST_INGRESS_DECISION_WAIT_MS: '10' })
  const spoofed = await slow.identify({}, { headers: { 'X-Forwarded-For': '203.0.113.9' } })
  const bodies = Array.from({ length: 400 }, (_, i) => ({ ...browserBody(`GPU ${i}`), nonce: newNonce() }))
  const answers = await Promise.all(
    bodies.map(async (body, i) => {
      const answer = await slow.identify(body)
      // While the flood lasts: the event can be asked for and the call repeated.
      if (answer.status !== 202 || i % 8 > 0) return { body, answer }
      const { requestId } = answer.body
      return { body, answer, read: await slow.get(`/v1/events/${requestId}`), repeat: await slow.identify(body) }
    }),
  )
  const late = answers.filter(({ answer }) => answer.status === 202)
  t.comment(`${late.length} of ${answers.length} were pending`)
  t.ok(late.length > 0, 'some were not decided in 10 ms')
  t.equal(answers.filter(({ answer }) => answer.status !== 202 && answer.status !== 200).length, 0)
  for (const { answer, read, repeat } of late) {
    t.same(shapes.pending(answer.body), [])
    t.equal(answer.headers.get('retry-after'), '1')
    t.equal(answer.headers.get('access-control-allow-origin'), '*')
    for (const later of [read, repeat]) {
      if (later === undefined) continue
      if (later.status === 202) {
        t.same(later.body, answer.body)
        t.equal(later.headers.get('retry-after'), '1')
      } else t.match(later, { status: 200, body: { requestId: answer.body.requestId } })
    }
  }
  const conflict = await slow.identify({ ...late[0]?.body, linkedId: 'other' })
  t.equal(conflict.status, 409, 'its nonce is taken')
  for (const { answer } of late) {
    const event = await eventually(() => slow.get(`/v1/events/${answer.body.requestId}`), ({ status }) => status !== 202)
    t.equal(event.status, 200)
    t.same(shapes.event(event.body), [])
  }
  if (spoofed.status === 200) t.equal(spoofed.body.ip.address, '127.0.0.*', 'without trusted proxies nobody else is believed')
  const direct = await eventually(
    () => slow.identify({}, { headers: { 'X-Forwarded-For': '203.0.113.9' } }),
    ({ status }) => status === 200,
  )
  t.equal(direct.body.ip.address, '127.0.0.*')
  t.equal(await slow.server.stop(), 0)
})

t.test('without room nothing is accepted, and readiness says what is missing', async (t) => {
  const full = await startServer({
    env: { FINGERPOST_DATA_FREE_BYTES_MIN: String(2 ** 49) },
    until: '/healthz',
  })
  const client = clientOf(full)
  const askReady = () => client.send('GET', '/readyz', { key: null })
  const ready = await eventually(askReady, ({ body }) => body?.failing?.length === 1)
  t.equal(ready.status, 503)
  t.ok(Number(ready.headers.get('retry-after')) >= 1)
  t.equal(ready.body.failing.length, 1)
  const [dependency] = ready.body.failing
  t.match(ready.body.checks[dependency], /disk|space/i)
  for (const key of [full.keys.public, full.keys.secret]) {
    const refused = await client.identify(browserBody(), { key })
    t.equal(refused.status, 503)
    t.equal(errorOf(refused).code, 'unavailable')
    t.ok(Number(refused.headers.get('retry-after')) >= 1)
    t.equal(refused.body.error.retryAfter, Number(refused.headers.get('retry-after')))
    t.equal(refused.headers.get('access-control-allow-origin'), '*')
  }
  t.equal((await client.identify({ nonce: 1 })).status, 400, 'what is wrong is wrong all the same')
  t.equal((await client.get('/v1/events')).status, 200, 'reading goes on')
  t.equal(await full.stop(), 0)
})

t.test('the server stops in order', async (t) => {
  t.equal(await server.stop(), 0)
})
