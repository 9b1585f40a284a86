// POST /v1/identify against a real server: what a body may say and what comes of it.

import t from 'tap'
import { IDENTIFY_BODY_BYTES_MAX } from '../../src/domain/identify.ts'
import { ulidTime } from '../../src/domain/ids.ts'
import { browserBody, CHROME, errorOf, eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { talk } from '../helpers/http.ts'
import { testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'
import { LIMITS } from './identify-limits.ts'

t.teardown(cleanUp)

const { server, send, identify, get, admin } = await openTenant()
const { keys } = server

const timeOf = (requestId: string) => ulidTime(requestId.slice(4))
const inTest = (mock: object, more: object = {}) => identify({ ...more, mock }, { key: keys.testSecret })
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

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
    t.ok(Math.abs(Date.parse(answer.body.timestamp) - Date.now()) < 60_000)
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
    t.match(result, {
      linkedId: null,
      email: null,
      url: null,
      tag: {},
      verdict: null,
      matchedRule: null,
      visitorFound: false,
    })
    t.equal(result.firstSeenAt, result.timestamp)
  }
})

t.test('the workspace decides whether a browser learns the verdict', async (t) => {
  const setting = async (clientResult: string) =>
    t.equal((await admin('PATCH', `/workspaces/${server.workspace}`, { settings: { clientResult } })).status, 200)
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
    t.equal((await admin('PATCH', `/workspaces/${server.workspace}`, { plan: name })).status, 200)
  await plan('starter')
  const starter = await eventually(
    () => identify(browserBody()),
    ({ body }) => !('scores' in body),
  )
  t.same(shapes.secretResultWithoutScores(starter.body), [])
  t.same(shapes.eventWithoutScores((await get(`/v1/events/${starter.body.requestId}`)).body), [])
  await plan('enterprise')
  t.same(
    shapes.secretResult(
      (
        await eventually(
          () => identify({}),
          ({ body }) => 'scores' in body,
        )
      ).body,
    ),
    [],
  )
})

t.test('a token leads back to its visitor whatever else changed', async (t) => {
  const first = (await identify(browserBody())).body
  const again = (await identify({ ...browserBody('Apple GPU'), storageToken: first.storageToken, userAgent: CHROME }))
    .body
  t.match(again, { visitorId: first.visitorId, visitorFound: true, firstSeenAt: first.firstSeenAt })
  t.equal(again.identity.method, 'token')
  t.ok(again.confidence > 0.4)
  const bare = (await identify({ storageToken: again.storageToken }, { key: keys.public })).body
  t.match(bare, { visitorId: first.visitorId, visitorFound: true })
})

t.test('a token with any character changed, or of another tenant, counts as none', async (t) => {
  const { visitorId, storageToken } = (await identify({})).body
  // From a random one on, so that every character has its turn.
  const step = sized({ quick: 8, usual: 3, long: 1 })
  const first = testSeed() % step
  const forged: [string, string][] = [...storageToken].flatMap((c, i) =>
    i % step === first
      ? [[storageToken.slice(0, i) + (c === 'A' ? 'B' : 'A') + storageToken.slice(i + 1), `character ${i} changed`]]
      : [],
  )
  forged.push(
    [storageToken.slice(0, -1), 'cut'],
    [`${storageToken}A`, 'longer'],
    [`${storageToken}=`, 'padded'],
    [` ${storageToken}`, 'with a space'],
    [storageToken.toLowerCase(), 'in lower case'],
    ['st_', 'empty'],
    ['x', 'no token at all'],
  )
  const asked = await Promise.all(
    forged.map(async ([token, how]) => ({ how, ...(await identify({ storageToken: token })) })),
  )
  for (const { how, status, body } of asked) {
    t.equal(status, 200, how)
    t.equal(body.visitorFound, false, how)
    t.not(body.visitorId, visitorId, how)
    t.not(body.identity.method, 'token', how)
  }

  const other = (await admin('POST', '/workspaces', { name: 'Other' })).body
  const foreign = (await admin('POST', `/workspaces/${other.id}/keys`, { kind: 'secret', environment: 'live' })).body
    .key
  for (const key of [keys.testSecret, foreign]) {
    const { status, body } = await identify({ storageToken }, { key })
    t.equal(status, 200)
    t.match(body, { visitorFound: false })
    t.not(body.visitorId, visitorId)
  }
})

t.test('a forged token is evidence of tampering', async (t) => {
  const lying = { ...browserBody(), userAgent: CHROME }
  lying.components.vendor = { value: 'Apple Computer, Inc.' }
  const honest = (await identify({ ...lying, storageToken: null })).body
  t.equal(honest.signals.tampered, false, 'one contradiction is not enough')
  const forged = (await identify({ ...lying, storageToken: `st_${'A'.repeat(64)}` })).body
  t.equal(forged.signals.tampered, true)
  t.ok(forged.signalDetails.tampered.methods.includes('token_forged'))
})

t.test('a mock decides what it names and nothing else', async (t) => {
  const forced = await inTest({
    ip: '203.0.113.9',
    country: 'JP',
    signals: {
      vpn: { detected: true, provider: 'Nord' },
      bot: { detected: true, type: 'scraper' },
      tor: true,
      incognito: false,
    },
    scores: { suspect: 90.126, ato: 0.12345 },
  })
  t.same(shapes.secretResult(forced.body), [])
  t.match(forced.body, {
    ip: { address: '203.0.113.*', country: 'JP' },
    signals: {
      vpn: { detected: true, provider: 'Nord' },
      bot: { detected: true },
      tor: true,
      incognito: false,
      proxy: false,
    },
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
  t.equal(
    (await inTest({ at: offset })).body.timestamp,
    '2026-11-01T08:00:00.000Z',
    'seconds are optional, zones allowed',
  )
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
  const deep = (levels: number) => `{"components":{"x":{"value":${'['.repeat(levels - 3)}${']'.repeat(levels - 3)}}}}`
  t.equal((await send('POST', '/v1/identify', { raw: deep(32) })).status, 200)
  for (const levels of [33, 1_000, 32_000]) {
    const refused = await send('POST', '/v1/identify', { raw: deep(levels) })
    t.equal(refused.status, 400, `${levels} levels`)
    t.equal(errorOf(refused).code, 'invalid_json')
  }
})

t.test('text that is no JSON is refused as such', async (t) => {
  const texts: (string | Uint8Array)[] = [
    ' ',
    '{',
    '{}}',
    '{"a":NaN}',
    "{'a':1}",
    '{"a":1,}',
    '\ufeff{}',
    'undefined',
    '{"url":"\u0001"}',
  ]
  texts.push(Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), Uint8Array.from([0x22, 0xc0, 0xaf, 0x22]))
  for (const raw of texts) {
    const refused = await send('POST', '/v1/identify', { raw })
    t.equal(refused.status, 400, JSON.stringify(String(raw)))
    t.equal(errorOf(refused).code, 'invalid_json')
  }
  t.equal((await send('POST', '/v1/identify', { raw: '{"url":"\\ud800 half"}' })).body.url, '\ufffd half')
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
