// Who said it: the kind of key that an event came with is a field of rules, events and filters, and lists take claims only where
// they may; also which weights scored it.

import t from 'tap'
import { WEIGHTS_VERSION } from '../../src/engine/weights.ts'
import { browserBody, CHROME, errorOf, eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)
const { server, identify, get, send } = await openTenant()
const key = server.keys.secret
const post = (path: string, body: unknown) => send('POST', path, { key, body })

async function visit(kind: 'public' | 'secret', more: object = {}) {
  const isPublic = kind === 'public'
  const call = isPublic ? { key: server.keys.public, headers: { 'User-Agent': CHROME } } : { key }
  const { body } = await identify({ ...browserBody(), ...(isPublic ? {} : { userAgent: CHROME }), ...more }, call)
  return (await get(`/v1/events/${body.requestId}`, key)).body
}

const ofKind = (kind: string) => ({
  operator: 'AND',
  rules: [{ field: 'request.keyKind', operator: 'equals', value: kind }],
})

t.test(
  'the kind of key is in the event, in rules, in backtests and in the filter, and so are the weights',
  async (t) => {
    const made = await post('/v1/rules', {
      name: 'Of a page',
      status: 'live',
      priority: 1,
      conditions: ofKind('public'),
      action: { verdict: 'challenge' },
    })
    t.equal(made.status, 201)
    const [page, own] = [await visit('public'), await visit('secret')]
    t.match(page, { request: { keyKind: 'public' }, weightsVersion: WEIGHTS_VERSION, verdict: 'challenge' })
    t.match(own, { request: { keyKind: 'secret' }, weightsVersion: WEIGHTS_VERSION, verdict: 'allow' })
    for (const [kind, { requestId }] of [
      ['public', page],
      ['secret', own],
    ] as const) {
      const listed = await eventually(
        () => get(`/v1/events?keyKind=${kind}`, key),
        ({ body }) => body.data.length > 0,
      )
      t.same(
        listed.body.data.map((one: { requestId: string }) => one.requestId),
        [requestId],
      )
      const { body } = await post('/v1/rules/backtest', { conditions: ofKind(kind), action: { verdict: 'block' } })
      t.match(body.sample, [{ requestId }])
      t.match((await post('/v1/rules/simulate', { requestId, conditions: ofKind(kind) })).body, { matched: true })
      const given = { event: { request: { keyKind: kind } }, conditions: ofKind(kind) }
      t.match((await post('/v1/rules/simulate', given)).body, { matched: true })
      t.match((await get(`/v1/events/${requestId}`, key)).body, {
        request: { keyKind: kind },
        weightsVersion: WEIGHTS_VERSION,
      })
    }
    t.equal(errorOf(await get('/v1/events?keyKind=test', key)).field, 'keyKind')
    const { body: fields } = await get('/v1/rules/fields', key)
    const noted = fields.data.filter((one: { note?: string }) => one.note !== undefined)
    t.same(
      noted.map((one: { path: string }) => one.path),
      ['linkedId', 'email', 'request.keyKind', 'tag.<key>'],
    )
    await send('DELETE', `/v1/rules/${made.body.id}`, { key })
  },
)

t.test('a list that takes only what is verified has no email that a page claimed', async (t) => {
  const { body: list } = await post('/v1/lists', { name: 'emails', type: 'email' })
  const effect = { type: 'addToList', list: 'emails', value: 'email', verifiedOnly: true }
  const conditions = { operator: 'AND', rules: [{ field: 'email', operator: 'exists', value: true }] }
  const rule = { name: 'Emails', status: 'live', conditions, action: { verdict: 'block', sideEffects: [effect] } }
  const made = await post('/v1/rules', rule)
  t.same((await get(`/v1/rules/${made.body.id}`, key)).body.sideEffects, [effect])
  await visit('public', { email: 'victim@shop.example' })
  await visit('secret', { email: 'known@shop.example' })
  const { body } = await eventually(
    () => get(`/v1/lists/${list.id}/entries`, key),
    ({ body }) => body.data.length > 0,
  )
  t.same(
    body.data.map((one: { value: string }) => one.value),
    ['known@shop.example'],
  )
  const wrong = { ...rule, action: { verdict: 'block', sideEffects: [{ ...effect, verifiedOnly: 'yes' }] } }
  t.equal(errorOf(await post('/v1/rules', wrong)).field, 'action.sideEffects[0].verifiedOnly')
})
