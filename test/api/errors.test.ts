import { connect } from 'node:net'
import t from 'tap'
import { keyed, open } from '../../src/api/routes.ts'
import { ApiError, ERRORS, type ErrorCode } from '../../src/domain/errors.ts'
import { Type } from '../../src/domain/schema.ts'
import { Full, Unavailable } from '../../src/lib/failures.ts'
import { openServer, RULE, type Send } from '../helpers/rest-surface.ts'

const CALL = /^call_[0-9A-HJKMNP-TV-Z]{26}$/
const KIB_256 = 262_144

const nested = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`
const padded = (bytes: number) => `{"name":"${'x'.repeat(bytes - 11)}"}`

t.test('every check answers with its code, and an earlier one hides the later ones', async (t) => {
  const { send, secret: key, publicKey } = await openServer(t)
  const { body: rule } = await send('POST', '/v1/rules', { key, body: RULE })
  const path = `/v1/rules/${rule.id}`
  const unknown = '/v1/rules/rul_00000000000000000000'
  const text = { 'Content-Type': 'text/plain' }
  const large = 'x'.repeat(KIB_256 + 1)
  const cases: [string, string, Send, number, ErrorCode, string?][] = [
    ['GET', '/v1/nothing', { key }, 404, 'route_not_found'],
    ['GET', '/', {}, 404, 'route_not_found'],
    ['GET', '/v1/rules/', { key }, 404, 'route_not_found'],
    ['GET', '/V1/rules', { key }, 404, 'route_not_found'],
    ['PATCH', '/v1/rules', { raw: large }, 405, 'method_not_allowed'],
    ['OPTIONS', '/v1/rules', {}, 405, 'method_not_allowed'],
    ['DELETE', '/v1/meta', { key }, 405, 'method_not_allowed'],
    ['POST', '/v1/rules', { raw: large, headers: text }, 401, 'invalid_api_key'],
    ['POST', '/v1/rules', { key: publicKey, raw: large, headers: text }, 403, 'insufficient_permissions'],
    ['POST', '/v1/rules', { key, raw: '{', headers: text }, 415, 'unsupported_media_type'],
    ['POST', '/v1/rules', { key, raw: '{', headers: { 'Content-Type': '' } }, 415, 'unsupported_media_type'],
    ['POST', '/v1/rules', { key, raw: '{', headers: { 'Content-Encoding': 'gzip' } }, 415, 'unsupported_media_type'],
    ['POST', '/v1/rules', { key, raw: '{', headers: { 'Content-Encoding': '' } }, 415, 'unsupported_media_type'],
    [
      'POST',
      '/v1/rules',
      { key, raw: '{', headers: { 'Content-Type': 'application/json; charset=latin1' } },
      415,
      'unsupported_media_type',
    ],
    ['GET', '/v1/meta', { key, headers: { 'X-Long': 'y'.repeat(16_384) } }, 431, 'headers_too_large'],
    ['POST', '/v1/rules', { key, raw: large }, 413, 'payload_too_large'],
    ['POST', '/v1/rules?x=1', { key, raw: '{' }, 400, 'invalid_json'],
    ['POST', '/v1/rules', { key, raw: '' }, 400, 'validation_error', 'name'],
    ['PATCH', '/v1/lists/lst_x/entries', { key, raw: '' }, 400, 'invalid_json'],
    ['POST', '/v1/rules', { key, raw: '\ufeff{}' }, 400, 'invalid_json'],
    ['POST', '/v1/rules', { key, raw: '{"name":NaN}' }, 400, 'invalid_json'],
    ['POST', '/v1/rules', { key, raw: '{"name":"\\ud800"}' }, 400, 'invalid_json'],
    [
      'POST',
      '/v1/rules',
      { key, raw: Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) },
      400,
      'invalid_json',
    ],
    ['POST', '/v1/rules', { key, raw: nested(33) }, 400, 'invalid_json'],
    ['POST', '/v1/rules', { key, raw: '['.repeat(100_000) }, 400, 'invalid_json'],
    ['POST', '/v1/rules', { key, raw: nested(32) }, 400, 'validation_error', 'name'],
    ['POST', '/v1/rules', { key, raw: padded(KIB_256) }, 400, 'validation_error', 'conditions'],
    ['POST', '/v1/rules', { key, raw: padded(KIB_256 + 1) }, 413, 'payload_too_large'],
    ['POST', '/v1/rules', { key, raw: '[]' }, 400, 'validation_error', 'body'],
    ['POST', '/v1/rules', { key, raw: 'null' }, 400, 'validation_error', 'body'],
    ['POST', '/v1/rules?dry=1', { key, body: RULE }, 400, 'validation_error', 'dry'],
    [
      'POST',
      '/v1/rules',
      { key, raw: JSON.stringify(RULE).replace('{', '{"__proto__":{"admin":true},') },
      400,
      'validation_error',
      '__proto__',
    ],
    ['PUT', unknown, { key, body: { name: 7 } }, 400, 'validation_error', 'name'],
    ['PUT', unknown, { key, body: { name: 'x' } }, 404, 'not_found'],
    ['PUT', path, { key, body: { name: 'x' }, headers: { 'If-Match': '"0"' } }, 409, 'conflict'],
    ['GET', unknown, { key }, 404, 'not_found'],
    ['GET', '/v1/rules/not-an-id', { key }, 404, 'not_found'],
    ['GET', '/v1/rules/rul_%00', { key }, 404, 'not_found'],
    ['GET', `/v1/rules/${'r'.repeat(2_000)}`, { key }, 404, 'not_found'],
    ['GET', `${path}?verbose=1`, { key }, 400, 'validation_error', 'verbose'],
    ['DELETE', unknown, { key }, 404, 'not_found'],
  ]
  for (const [method, target, sent, status, code, field] of cases) {
    const { body, status: got, headers } = await send(method, target, sent)
    const name = `${method} ${target.slice(0, 60)} → ${status} ${code} ${field ?? ''}`
    t.match({ got, code: body?.error?.code, field: body?.error?.field }, { got: status, code, field }, name)
    t.match(headers.get('x-request-id'), CALL, 'has a call id')
    t.equal(headers.get('content-type'), 'application/json')
    t.equal(headers.get('cache-control'), 'no-store')
    t.equal(headers.get('access-control-allow-origin'), null, 'no CORS')
    t.equal(headers.get('www-authenticate'), status === 401 ? 'Bearer' : null)
    t.ok(JSON.stringify(body).length < 500, 'echoes little')
  }
  t.equal((await send('PATCH', '/v1/rules')).headers.get('allow'), 'POST, GET, HEAD')
  t.equal(Object.hasOwn(Object.prototype, 'admin'), false)

  const twice = JSON.stringify(RULE).replace('"block"', '"allow","verdict":"challenge"')
  const made = await send('POST', '/v1/rules', { key, raw: twice })
  t.equal(
    (await send('GET', `/v1/rules/${made.body.id}`, { key })).body.action.verdict,
    'challenge',
    'the last one wins',
  )
  const charset = { 'Content-Type': 'Application/JSON; charset=UTF-8' }
  t.equal((await send('POST', '/v1/rules', { key, body: RULE, headers: charset })).status, 201)
})

t.test('every code of the table is presented with its status and the members it has', async (t) => {
  const codes = Object.keys(ERRORS) as ErrorCode[]
  const { send } = await openServer(t, {
    routes: codes.flatMap((code) => [
      open({
        method: 'GET',
        path: `/plain/${code}`,
        handle: () => {
          throw new ApiError(code)
        },
      }),
      open({
        method: 'GET',
        path: `/detailed/${code}`,
        handle: () => Promise.reject(new ApiError(code, { message: 'Why.', field: 'a[0].b', retryAfter: 3 })),
      }),
    ]),
  })
  for (const code of codes) {
    const [status, message] = ERRORS[code]
    const docs = `/docs/errors#error-${code.replaceAll('_', '-')}`
    const plain = await send('GET', `/plain/${code}`)
    t.equal(plain.status, status, code)
    t.same(plain.body, { error: { code, message, docs } })
    t.equal(plain.headers.get('retry-after'), null)
    const detailed = await send('GET', `/detailed/${code}`)
    t.same(detailed.body.error, { code, message: 'Why.', docs, field: 'a[0].b', retryAfter: 3 })
    t.equal(detailed.headers.get('retry-after'), '3')
  }
})

t.test(
  'a failure nobody foresaw says nothing about its cause, and a store that is down says when to retry',
  async (t) => {
    const unforeseen: unknown[] = []
    const calls: unknown[] = []
    const failing = (path: string, error: unknown) => open({ method: 'GET', path, handle: () => Promise.reject(error) })
    const bug = new TypeError('secret internals')
    const { send, secret: key } = await openServer(t, {
      onUnforeseen: (error, call) => {
        unforeseen.push(error)
        calls.push(call)
      },
      routes: [
        failing('/bug', bug),
        keyed({ method: 'GET', path: '/keyed-bug', access: 'any-key', handle: () => Promise.reject(bug) }),
        failing('/down', new Unavailable('redis://x')),
        failing('/full', new Full('disk')),
      ],
    })
    const broken = await send('GET', '/bug')
    t.match(broken, { status: 500, body: { error: { code: 'internal_error' } } })
    t.notMatch(JSON.stringify(broken.body), /secret|TypeError/)
    t.same(unforeseen, [bug])
    t.same(calls, [{ callId: broken.headers.get('x-request-id'), route: '/bug', workspace: null, traceId: null }])
    const asked = await send('GET', '/keyed-bug', { key })
    t.match(calls[1], { callId: asked.headers.get('x-request-id'), route: '/keyed-bug', workspace: /^ws_/ })
    for (const path of ['/down', '/full']) {
      const down = await send('GET', path)
      t.match(down, { status: 503, body: { error: { code: 'unavailable', retryAfter: 2 } } })
      t.equal(down.headers.get('retry-after'), '2')
      t.notMatch(JSON.stringify(down.body), /redis|disk/)
    }
  },
)

t.test('an ambiguous message is refused in the form every error has', async (t) => {
  const { base } = await openServer(t)
  const { hostname, port } = new URL(base)
  const answer = await new Promise<string>((resolve, reject) => {
    let text = ''
    const socket = connect(Number(port), hostname, () => {
      socket.write('GET /v1/rules HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n')
    })
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
  t.match(answer, /^HTTP\/1\.1 400 /)
  t.match(answer, /X-Request-Id: call_/i)
  t.match(JSON.parse(answer.slice(answer.indexOf('{'))), { error: { code: 'validation_error', field: 'headers' } })
})

t.test('query parameters arrive as their schema types them, or not at all', async (t) => {
  const { send, secret: key } = await openServer(t, {
    routes: [
      keyed({
        method: 'GET',
        path: '/v1/probe',
        access: 'any-key',
        query: Type.Object(
          {
            bot: Type.Optional(Type.Boolean()),
            ratio: Type.Optional(Type.Number()),
            text: Type.Optional(Type.String({ maxLength: 5 })),
          },
          { additionalProperties: false },
        ),
        handle: ({ query }) => ({ body: query }),
      }),
    ],
  })
  const probe = (query: string) => send('GET', `/v1/probe?${query}`, { key })
  t.same((await probe('bot=true&ratio=-0.5&text=a+%C3%A4%2B')).body, { bot: true, ratio: -0.5, text: 'a ä+' })
  t.same((await probe('')).body, {})
  t.same((await probe('text')).body, { text: '' })
  for (const [query, field] of [
    ['bot=1', 'bot'],
    ['bot=TRUE', 'bot'],
    ['ratio=1e3', 'ratio'],
    ['ratio=Infinity', 'ratio'],
    ['text=abcdef', 'text'],
    ['text=a&text=b', 'text'],
    ['constructor=1', 'constructor'],
    ['%ff=1', 'query'],
  ]) {
    t.match(
      await probe(query as string),
      { status: 400, body: { error: { code: 'validation_error', field } } },
      query as string,
    )
  }
})

t.test('every answer has a call id of its own, and HEAD has no body', async (t) => {
  const { send, secret: key } = await openServer(t)
  const ids = new Set<string | null>()
  for (let i = 0; i < 5; i++) ids.add((await send('GET', '/v1/meta', { key })).headers.get('x-request-id'))
  t.equal(ids.size, 5)
  const head = await send('HEAD', '/v1/rules', { key })
  t.match(head, { status: 200, body: undefined })
})
