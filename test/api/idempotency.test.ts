// Idempotency-Key on requests that create something: answered once, repeated as they were answered, and made once even where
// nobody knows what became of the first attempt.

import t, { type Test } from 'tap'
import { KEEP_ALL } from '../../src/api/idempotency.ts'
import { keyed } from '../../src/api/routes.ts'
import { ApiError } from '../../src/domain/errors.ts'
import { Type } from '../../src/domain/schema.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { openServer, RULE } from '../helpers/rest-surface.ts'

const DAY_MS = 86_400_000
const keyOf = (value: string) => ({ headers: { 'Idempotency-Key': value } })

async function open(t: Test, clock?: Clock) {
  const calls: (string | null)[] = []
  let behave: () => Promise<unknown> = async () => ({ made: calls.length })
  const thing = keyed({
    method: 'POST',
    path: '/v1/things/:id',
    access: 'rules:write',
    body: Type.Object({ a: Type.Optional(Type.Integer()) }, { additionalProperties: false }),
    once: KEEP_ALL,
    async handle({ seed }) {
      calls.push(seed)
      return { status: 201, headers: [['ETag', '"7"']], body: await behave() }
    },
  })
  const secretly = keyed({
    method: 'POST',
    path: '/v1/secretly',
    access: 'rules:write',
    body: Type.Object({}, { additionalProperties: false }),
    once: { keep: () => 'an id', show: (kept) => ({ kept, secret: 'whsec_again' }) },
    handle: async () => ({ status: 201, body: { kept: 'an id', secret: 'whsec_again' } }),
  })
  const unkeyed = keyed({
    method: 'PUT',
    path: '/v1/things/:id',
    access: 'rules:write',
    body: Type.Object({}, { additionalProperties: false }),
    handle: ({ seed }) => ({ body: { seed, at: Math.random() } }),
  })
  const server = await openServer(t, { routes: [thing, secretly, unkeyed], ...(clock && { clock }) })
  return {
    ...server,
    calls,
    behave: (next: () => Promise<unknown>) => {
      behave = next
    },
    post: (key: string, body: unknown = {}, path = '/v1/things/1', as = server.secret) =>
      server.send('POST', path, { key: as, body, ...keyOf(key) }),
  }
}

t.test('a repetition is answered as the first was, and does nothing', async (t) => {
  const { post, calls, testSecret, send, secret } = await open(t)
  const first = await post('k1', { a: 1 })
  t.match(first, { status: 201, body: { made: 1 } })
  t.equal(first.headers.get('idempotent-replayed'), null)
  const again = await post('k1', { a: 1 })
  t.match(again, { status: 201, body: { made: 1 } })
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  t.equal(again.headers.get('etag'), '"7"')
  t.not(again.headers.get('x-request-id'), first.headers.get('x-request-id'))
  t.equal(calls.length, 1)

  const differing = await post('k1', { a: 2 })
  t.equal(differing.status, 400)
  t.match(differing.body.error, { code: 'idempotency_key_mismatch' })
  t.match((await post('k1', { a: 1 }, '/v1/things/2')).body, { made: 2 }, 'of another path')
  t.match((await post('k1', { a: 1 }, '/v1/things/1', testSecret)).body, { made: 3 }, 'of another environment')
  t.match((await post('k2', { a: 1 })).body, { made: 4 }, 'another key')
  t.match((await send('POST', '/v1/things/1', { key: secret, body: { a: 1 } })).body, { made: 5 }, 'no key')
  const put = () => send('PUT', '/v1/things/1', { key: secret, body: {}, ...keyOf('k1') })
  t.not((await put()).body.at, (await put()).body.at, 'only what creates is kept')
})

t.test('a key is 1 to 255 printable characters, and what is refused is not kept', async (t) => {
  const { post, calls, behave, secret, send } = await open(t)
  t.equal((await post('x'.repeat(255))).status, 201)
  for (const none of ['', '\u00e9', 'k\u00e9y']) {
    const { status, body } = await post(none)
    t.match({ status, body }, { status: 400, body: { error: { field: 'Idempotency-Key' } } }, JSON.stringify(none))
  }
  const long = await post('x'.repeat(256))
  t.equal(long.status, 400)
  t.match(long.body.error, { code: 'validation_error', field: 'Idempotency-Key' })
  t.equal((await post('k', { b: 1 })).status, 400, 'validation comes first')
  t.equal((await post('k', { a: 1 })).status, 201, 'and leaves no trace')
  behave(async () => {
    throw new ApiError('conflict')
  })
  t.equal((await post('c')).status, 409)
  behave(async () => ({ made: 'later' }))
  t.match((await post('c')).body, { made: 'later' })
  t.equal(calls.length, 4)
  t.equal((await send('POST', '/v1/things/1', { key: secret, raw: '{', ...keyOf('k') })).status, 400)
})

t.test('while the first is running the second is told so; of fifty at once one is carried out', async (t) => {
  const { post, calls, behave } = await open(t)
  let release = () => {}
  behave(() => new Promise((resolve) => (release = () => resolve({ made: 'once' }))))
  const first = post('k')
  while (calls.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  const second = await post('k')
  t.equal(second.status, 409)
  t.match(second.body.error, { code: 'idempotency_in_progress', retryAfter: 1 })
  t.equal((await post('k', { a: 3 })).body.error.code, 'idempotency_key_mismatch')
  release()
  t.match(await first, { status: 201, body: { made: 'once' } })
  t.match((await post('k')).body, { made: 'once' })
  behave(async () => ({ made: 'of many' }))
  const many = await Promise.all(Array.from({ length: 50 }, () => post('many')))
  t.equal(calls.length, 2)
  t.ok(many.every(({ status }) => status === 201 || status === 409))
})

t.test('what may have happened is done again under the same ids, also after its process died', async (t) => {
  let ahead = 0
  const clock = { ...systemClock, now: () => Date.now() + ahead }
  const { post, calls, behave } = await open(t, clock)
  behave(async () => {
    throw new ApiError('unavailable', { retryAfter: 1 })
  })
  t.equal((await post('k')).status, 503)
  behave(() => new Promise(() => {}))
  void post('k').catch(() => {})
  while (calls.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  t.equal((await post('k')).status, 409)
  ahead = 61_000
  behave(async () => ({ made: 'at last' }))
  t.match((await post('k')).body, { made: 'at last' })
  t.equal(new Set(calls).size, 1, 'one seed for all attempts')
  ahead = 61_000 + DAY_MS
  t.equal((await post('other')).status, 201)
  t.equal(new Set(calls).size, 2)
})

t.test('a rule and a list are made once, though the answer to the first attempt was lost', async (t) => {
  const { send, secret, submit } = await open(t)
  const rule = { id: 'rul_00000000000000000000', conditions: RULE.conditions, action: { verdict: 'block' } } as const
  const create = () =>
    submit({
      type: 'rule.create',
      workspace: 'ws_default',
      env: 'live',
      actor: 'test',
      // biome-ignore lint/suspicious/noExplicitAny: as the API has parsed them
      data: { ...rule, name: 'r', status: 'draft', priority: null, maxima: { rulesMax: 9, activeMax: 9 } } as any,
    })
  t.match(await create(), { ok: true, rule: { id: rule.id, priority: 10 } })
  t.match(await create(), { ok: true, rule: { id: rule.id, priority: 10 } }, 'the same command once more')
  t.equal((await send('GET', '/v1/rules', { key: secret })).body.total, 1)

  const list = () => send('POST', '/v1/lists', { key: secret, body: { name: 'l', type: 'ip' }, ...keyOf('l1') })
  const [made, again] = [await list(), await list()]
  t.match(made, { status: 201 })
  t.same(again.body, made.body)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  const rules = () => send('POST', '/v1/rules', { key: secret, body: RULE, ...keyOf('r1') })
  const [one, two] = [await rules(), await rules()]
  t.same(two.body, one.body)
  t.equal((await send('GET', '/v1/rules', { key: secret })).body.total, 2)
})

t.test('secrets of an answer are not kept, and are in the repetition', async (t) => {
  const { post, kv } = await open(t)
  const first = await post('s', {}, '/v1/secretly')
  const again = await post('s', {}, '/v1/secretly')
  t.same(again.body, first.body)
  t.equal(again.headers.get('idempotent-replayed'), 'true')
  const kept = await kv.scan('w/ws_default/live', 'idempotency', { limit: 10 })
  t.equal(kept.length, 1)
  t.notMatch(JSON.stringify(kept), /whsec/)
  t.notMatch(JSON.stringify(kept), /"s"/, 'nor is the key itself')
})
