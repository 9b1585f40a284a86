// What a back end builds with the package for Node: deliveries that are checked wherever there is Web Crypto, and requests that
// pass by the verdict of the identification they name.

import t from 'tap'
import { FingerpostError, openFingerpost } from '../../src/client/client.ts'
import { type ExpressRequest, guard, webhookReceiver } from '../../src/client/express.ts'
import { type JudgeOptions, judge } from '../../src/client/judge.ts'
import { guarded, webhookRoute } from '../../src/client/next.ts'
import type { Event, IdentifyRequest } from '../../src/client/types.ts'
import { type Delivered, verifyWebhook } from '../../src/client/webhooks.ts'
import { signBody, verifyWebhook as verifyInNode } from '../../src/domain/webhook-signature.ts'
import { browserBody, CHROME } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const SECRET = 'whsec_dGVzdA=='
const AT = 1_700_000_000
const BODY = '{"visitorId":"pv_7Hq2LmZx90TbVcRk4WsE","ü":1}'
const REQUEST_ID = 'req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN'
const now = AT * 1_000

const signed = (body = BODY, seconds = AT, secret = SECRET): Record<string, string> => ({
  'x-service-timestamp': String(seconds),
  'x-service-signature': signBody(secret, seconds, Buffer.from(body)),
  'x-service-event': 'identification.complete',
  'webhook-id': 'evt_1',
})

t.test('Web Crypto and Node agree on what is genuine', async (t) => {
  const right = signed()
  const next = { ...signed(BODY, AT, 'the old secret'), 'x-service-signature-next': right['x-service-signature'] }
  const cases: readonly (readonly [what: string, headers: Record<string, string | undefined>, genuine: boolean])[] = [
    ['a signature that is right', right, true],
    [
      'names of headers in capitals',
      Object.fromEntries(Object.entries(right).map(([k, v]) => [k.toUpperCase(), v])),
      true,
    ],
    ['the secret that is to come', next, true],
    ['another secret', signed(BODY, AT, 'another'), false],
    ['another body', signed('{}'), false],
    ['a second too old', signed(BODY, AT - 301), false],
    ['a second too far ahead', signed(BODY, AT + 301), false],
    ['the oldest second', signed(BODY, AT - 300), true],
    ['no headers', {}, false],
    ['no signature', { 'x-service-timestamp': String(AT) }, false],
    ['a time that is none', { ...right, 'x-service-timestamp': '1e9' }, false],
    ['a digest in capitals', { ...right, 'x-service-signature': right['x-service-signature']?.toUpperCase() }, false],
    ['a digest cut short', { ...right, 'x-service-signature': right['x-service-signature']?.slice(0, -2) }, false],
    ['two digests', { ...right, 'x-service-signature': `${right['x-service-signature']}00` }, false],
  ]
  for (const [what, headers, genuine] of cases) {
    for (const body of [BODY, Buffer.from(BODY)]) {
      t.equal(await verifyWebhook(body, headers, SECRET, { now }), genuine, what)
      t.equal(verifyInNode(body, headers, SECRET, { now }), genuine, `${what}, in Node`)
    }
  }
  t.equal(await verifyWebhook(BODY, new Headers(signed()), SECRET, { now }), true, 'Headers of fetch')
  await t.rejects(verifyWebhook(BODY, signed(), '', { now }), { name: 'TypeError' }, 'anybody can sign under no secret')
})

t.test('an option that is missing is named where a client or a receiver is opened', async (t) => {
  const nothing = {} as never
  t.throws(() => openFingerpost(nothing), { name: 'TypeError', message: /openFingerpost needs baseUrl/ })
  const withoutKey = { baseUrl: 'https://fingerpost.example', key: '' }
  t.throws(() => openFingerpost(withoutKey), { name: 'TypeError', message: /openFingerpost needs key/ })
  for (const open of [webhookReceiver, webhookRoute]) {
    t.throws(() => open(nothing), { name: 'TypeError', message: /needs secret/ }, open.name)
  }
})

t.test('a route handler passes genuine deliveries on, and no others', async (t) => {
  const heard: Delivered[] = []
  const route = webhookRoute({ secret: SECRET, onEvent: (event) => heard.push(event), now, bodyBytesMax: 100 })
  const post = async (body: string, headers: Record<string, string>) =>
    (await route(new Request('http://shop.example/hook', { method: 'POST', body, headers }))).status
  t.equal(await post(BODY, signed()), 200)
  t.same(heard, [{ type: 'identification.complete', eventId: 'evt_1', body: JSON.parse(BODY) }])
  t.equal(await post(`${BODY} `, signed()), 401)
  t.equal(await post('[1]', signed('[1]')), 401, 'no object')
  t.equal(await post('x'.repeat(101), signed('x'.repeat(101))), 413)
  t.equal((await route(new Request('http://shop.example/hook'))).status, 401, 'no body at all')
  t.equal(heard.length, 1)
  const failing = webhookRoute({ secret: SECRET, onEvent: () => Promise.reject(new Error('no database')), now })
  const request = new Request('http://shop.example/hook', { method: 'POST', body: BODY, headers: signed() })
  await t.rejects(failing(request), /no database/, 'what fails is delivered again')
})

/** What Express does with a handler. */
async function express(
  handle: ReturnType<typeof guard>,
  request: Partial<ExpressRequest> & { chunks?: readonly string[] },
) {
  const seen = { status: 0, body: undefined as unknown, next: [] as unknown[], locals: {} as Record<string, unknown> }
  async function* chunks() {
    for (const chunk of request.chunks ?? []) yield Buffer.from(chunk)
  }
  const response = {
    locals: seen.locals,
    status(code: number) {
      seen.status = code
      return { json: (body: unknown) => (seen.body = body) }
    },
  }
  const all = { headers: {}, [Symbol.asyncIterator]: chunks, ...request } as ExpressRequest
  await handle(all, response, (...given) => seen.next.push(...(given.length === 0 ? ['on'] : given)))
  return seen
}

t.test('a receiver in Express reads the body itself or takes it raw, and refuses one that was parsed', async (t) => {
  const heard: Delivered[] = []
  const receiver = webhookReceiver({ secret: SECRET, onEvent: (event) => heard.push(event), now, bodyBytesMax: 100 })
  t.equal((await express(receiver, { headers: signed(), chunks: [BODY.slice(0, 9), BODY.slice(9)] })).status, 200)
  t.equal((await express(receiver, { headers: signed(), body: Buffer.from(BODY) })).status, 200)
  t.equal(heard.length, 2)
  t.equal((await express(receiver, { headers: signed(), body: Buffer.from('{}') })).status, 401)
  t.equal((await express(receiver, { headers: signed(), chunks: ['x'.repeat(60), 'x'.repeat(60)] })).status, 413)
  const parsed = await express(receiver, { headers: signed(), body: JSON.parse(BODY) })
  t.match(parsed.next[0], { message: /before express\.json/ })
  t.equal(heard.length, 2)
})

/** A service that answers as told. */
const serviceOf = (answer: () => Partial<Event>): JudgeOptions => {
  const get = async () => ({ timestamp: new Date(now).toISOString(), verdict: null, ...answer() }) as Event
  const events = { get } as unknown as ReturnType<typeof openFingerpost>['events']
  return { fingerpost: { events }, now: () => now }
}
const failing = (status: number, code: string): JudgeOptions =>
  serviceOf(() => {
    throw new FingerpostError(status, code, 'Said by the service.')
  })

t.test(
  'a request passes by the verdict of a fresh identification, and when the service is away unless told otherwise',
  async (t) => {
    const outcome = async (options: JudgeOptions, [id]: readonly unknown[] = [REQUEST_ID]) => {
      const judgement = await judge(id, options)
      return judgement.passes ? 'passes' : judgement.reason
    }
    for (const verdict of [null, 'allow'] as const) t.equal(await outcome(serviceOf(() => ({ verdict }))), 'passes')
    for (const verdict of ['block', 'challenge'] as const)
      t.equal(await outcome(serviceOf(() => ({ verdict }))), verdict)
    const old = (ms: number) => serviceOf(() => ({ timestamp: new Date(now - ms).toISOString() }))
    t.equal(await outcome(old(300_000)), 'passes')
    t.equal(await outcome(old(300_001)), 'stale')
    t.equal(await outcome({ ...old(2_000), ageMsMax: 1_000 }), 'stale')
    for (const id of [undefined, null, '', 7, ['x'], `${REQUEST_ID}/../x`, 'req_short']) {
      t.equal(
        await outcome(
          serviceOf(() => ({})),
          [id],
        ),
        'missing',
        String(id),
      )
    }
    t.equal(await outcome(failing(404, 'event_not_found')), 'unknown')
    for (const [status, code] of [
      [0, 'no_answer'],
      [503, 'overloaded'],
      [429, 'rate_limited'],
      [202, 'pending'],
    ] as const) {
      t.equal(await outcome(failing(status, code)), 'passes', code)
      t.equal(await outcome({ ...failing(status, code), failOpen: false }), 'unavailable', code)
    }
    await t.rejects(
      judge(REQUEST_ID, failing(401, 'invalid_api_key')),
      { code: 'invalid_api_key' },
      'a wrong key shows',
    )
  },
)

t.test('guards in Express and in route handlers read the event of the service, and hand it on', async (t) => {
  const { server } = await openTenant()
  const fingerpost = openFingerpost({ baseUrl: server.url, key: server.keys.testSecret })
  const visit = { ...browserBody(), userAgent: CHROME, ip: '203.0.113.9' } as IdentifyRequest
  const { requestId, visitorId } = await fingerpost.identify(visit)
  const headers = { 'x-fingerpost-request-id': requestId }

  const seen = await express(guard({ fingerpost }), { headers })
  t.same([seen.status, seen.next], [0, ['on']])
  t.match(seen.locals.fingerpost, { requestId, visitorId })
  t.match(await express(guard({ fingerpost }), {}), { status: 403, body: { reason: 'missing' }, next: [] })
  const inBody = guard({ fingerpost, requestIdOf: ({ body }) => (body as { id: string }).id })
  t.same((await express(inBody, { body: { id: requestId } })).next, ['on'])
  const wrong = guard({ fingerpost: openFingerpost({ baseUrl: server.url, key: 'sk_test_wrong' }) })
  t.match((await express(wrong, { headers })).next, [{ code: 'invalid_api_key' }])

  const handler = guarded({ fingerpost }, (_request: Request, event, context: { id: string }) =>
    Response.json({ visitorId: event?.visitorId, ...context }),
  )
  const answer = await handler(new Request('http://shop.example/', { headers }), { id: 'x' })
  t.same(await answer.json(), { visitorId, id: 'x' })
  const refused = await handler(new Request('http://shop.example/'), { id: 'x' })
  t.same([refused.status, await refused.json()], [403, { error: 'Refused.', reason: 'missing' }])
})

t.test('behind a guard the event is in locals by its type, and other locals are what they were', async (t) => {
  /** As the types of Express have it. */
  // biome-ignore lint/suspicious/noExplicitAny: so are theirs.
  interface ResponseOfExpress<Locals extends Record<string, any> = Record<string, any>> {
    locals: Locals
    status(code: number): this
    json(body: unknown): this
    redirect(url: string): void
  }
  type HandlerOfExpress<Locals extends ResponseOfExpress['locals']> = (
    request: ExpressRequest,
    response: ResponseOfExpress<Locals>,
    next: (error?: unknown) => void,
  ) => unknown
  const post = <Locals extends ResponseOfExpress['locals']>(...handlers: HandlerOfExpress<Locals>[]) => handlers.length
  const fingerpost = openFingerpost({ baseUrl: 'https://fingerpost.example', key: 'sk_test_x' })
  const onRefused = (_: unknown, _request: unknown, response: ResponseOfExpress) => response.redirect('/login')
  const handlers = post(guard({ fingerpost, onRefused }), (_request, response) => {
    const visitorId: string | null | undefined = response.locals.fingerpost?.visitorId
    response.json({ visitorId, name: response.locals.user.name })
  })
  t.equal(handlers, 2)
})
