// POST /v1/identify against a real server: who may call it, from where, in which form, and in which order that is checked.

import t from 'tap'
import { IDENTIFY_BODY_BYTES_MAX } from '../../src/domain/identify.ts'
import { type Answer, browserBody, CHROME, errorOf } from '../helpers/client.ts'
import { talk } from '../helpers/http.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, send, identify, get, admin } = await openTenant()
const { keys } = server

t.test('a call without a body says as much as one without members', async (t) => {
  const empty = (key: string, headers: Record<string, string> = {}) =>
    fetch(`${server.url}/v1/identify`, { method: 'POST', headers: { Authorization: `Bearer ${key}`, ...headers } })
  for (const type of [{}, { 'Content-Type': 'application/json' }]) {
    const answer = await empty(keys.secret, type)
    t.equal(answer.status, 200)
    t.match(await answer.json(), { requestId: /^req_/, visitorId: /^pv_/ })
  }
  t.equal((await empty(keys.secret, { 'Content-Type': 'text/xml' })).status, 415)
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
  t.same(errorOf(await post(`?key=${keys.public}`, { 'Content-Type': '' })).code, 'unsupported_media_type')
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
    [415, await send('POST', '/v1/identify', { raw: '{}', headers: { 'Content-Encoding': 'gzip' } })],
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
  t.match(await withoutLength.until('200'), /^200/)
  t.match(withoutLength.text(), /Access-Control-Allow-Origin: \*/i)
  const rule = await talk(
    server.port,
    `POST /v1/rules HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${keys.secret}\r\n\r\nPOST /v1/rules HTTP/1.1\r\n\r\n`,
  )
  t.equal(
    await rule.until('400 closed'),
    '400 closed',
    'without a length there is no body, and the route says what it lacks',
  )
  t.match(rule.text(), /"validation_error".*"field":"name"/)
  for (const path of ['/v1/events', '/v1/meta', '/readyz', '/v1/nothing']) {
    t.equal((await get(path)).headers.get('access-control-allow-origin'), null, path)
  }
  t.equal((await send('OPTIONS', '/v1/events', { key: null })).status, 405)
})

t.test('an Idempotency-Key is refused, and the nonce named that takes its place', async (t) => {
  const { status, body } = await identify({}, { key: keys.public, headers: { 'Idempotency-Key': 'once' } })
  t.match({ status, body }, { status: 400, body: { error: { code: 'validation_error', field: 'nonce' } } })
  t.match(body.error.message, /Idempotency-Key.*nonce/)
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
  t.match(
    own.body,
    { ip: { address: '203.0.113.*' }, device: { browser: 'Chrome 147' } },
    'userAgent wins over headers',
  )
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

t.test('behind trusted proxies the address is the last hop that is not one of them', async (t) => {
  const from = async (forwarded: string) =>
    (await identify({}, { headers: { 'X-Forwarded-For': forwarded } })).body.ip.address
  t.equal(await from('203.0.113.9'), '203.0.113.*')
  t.equal(await from('198.51.100.1, 203.0.113.9'), '203.0.113.*', 'what is left of it was said by the client')
  t.equal(await from('203.0.113.9, 127.1.2.3'), '203.0.113.*')
  t.equal(await from('203.0.113.9,127.1.2.3 , 127.0.0.1'), '203.0.113.*')
  t.equal(await from('127.9.9.9, 127.1.2.3'), '127.9.9.*', 'when all are trusted the first is the client')
  t.equal(await from('2001:db8:7::1'), '2001:db8:7::*')
  t.equal(await from('203.0.113.9:443'), '203.0.113.*', 'some proxies write the port too')
  t.equal(await from('[2001:db8:7::1]:443, 127.1.2.3:80'), '2001:db8:7::*')
  t.equal(await from('::ffff:203.0.113.9'), '203.0.113.*')
  for (const junk of ['unknown', '203.0.113.9:port', '<script>', '203.0.113.9, _hidden', '', ',,,']) {
    t.equal(await from(junk), '127.0.0.*', JSON.stringify(junk))
  }
  t.equal(await from('203.0.113.9, junk, 127.1.2.3'), '127.1.2.*', 'nothing left of an unreadable hop is believed')
  const asServer = await identify({ ip: '198.51.100.4' }, { headers: { 'X-Forwarded-For': '203.0.113.9' } })
  t.equal(asServer.body.ip.address, '198.51.100.*', 'a secret key knows better')
})

t.test('a public key with a list of origins works from those only', async (t) => {
  const made = await admin('POST', `/workspaces/${server.workspace}/keys`, {
    kind: 'public',
    environment: 'live',
    origins: ['https://shop.example'],
  })
  const key = made.body.key
  const from = (origin: string, call: object = {}) => identify({}, { key, headers: { Origin: origin }, ...call })
  t.equal((await from('https://shop.example')).status, 200)
  for (const origin of [
    'https://shop.example.evil.example',
    'http://shop.example',
    'https://shop.example:8443',
    'null',
  ]) {
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
    (await admin('POST', `/workspaces/${server.workspace}/keys`, { kind: 'secret', environment: 'live', scopes })).body
      .key
  const reader = await make('events:read')
  const refused = await identify({}, { key: reader })
  t.equal(refused.status, 403)
  t.equal(errorOf(refused).code, 'insufficient_permissions')
  t.match(refused.body.error.message, /\bidentify\b/)
  t.equal((await identify({}, { key: await make('identify') })).status, 200)
})

t.test('an earlier check hides the later ones', async (t) => {
  const large = 'x'.repeat(IDENTIFY_BODY_BYTES_MAX + 1)
  const xml = { 'Content-Type': 'text/xml' }
  const deep = `{"mock":${'['.repeat(40)}${']'.repeat(40)},"ip":1}`
  const cases: [string, Parameters<typeof send>, number, string, string?][] = [
    ['route before key', ['POST', '/v1/identify/', { key: null, raw: large }], 404, 'route_not_found'],
    ['method before key', ['PUT', '/v1/identify', { key: null, raw: large, headers: xml }], 405, 'method_not_allowed'],
    [
      'key before type and size',
      ['POST', '/v1/identify', { key: null, raw: large, headers: xml }],
      401,
      'invalid_api_key',
    ],
    [
      'a malformed key too',
      ['POST', '/v1/identify', { key: 'sk_live_x', raw: large, headers: xml }],
      401,
      'invalid_api_key',
    ],
    ['type before JSON', ['POST', '/v1/identify', { raw: '{', headers: xml }], 415, 'unsupported_media_type'],
    ['size before JSON', ['POST', '/v1/identify', { raw: large }], 413, 'payload_too_large'],
    [
      'JSON before what the key may say',
      ['POST', '/v1/identify', { key: keys.public, raw: deep }],
      400,
      'invalid_json',
    ],
    ['the same for broken JSON', ['POST', '/v1/identify', { key: keys.public, raw: '{"ip":1' }], 400, 'invalid_json'],
    [
      'what the key may say before shapes',
      ['POST', '/v1/identify', { key: keys.public, raw: '{"x":1,"ip":1}' }],
      403,
      'insufficient_permissions',
      'ip',
    ],
    [
      'and before the query',
      ['POST', '/v1/identify?x=1', { key: keys.public, raw: '{"ip":1}' }],
      403,
      'insufficient_permissions',
      'ip',
    ],
    ['shapes', ['POST', '/v1/identify', { raw: '{"x":1}' }], 400, 'validation_error', 'x'],
  ]
  for (const [name, request, status, code, field] of cases) {
    const answer = await send(...request)
    t.equal(answer.status, status, name)
    t.same(errorOf(answer), { code, field }, name)
  }
  t.equal((await identify({}, { key: null })).headers.get('www-authenticate'), 'Bearer')
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
