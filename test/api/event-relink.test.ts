// PATCH of an event's account while ClickHouse is away: nothing is half done, whoever asks again brings both to their end.

import t from 'tap'
import { openRelink } from '../../src/api/events/relink.ts'
import { eventRoutes } from '../../src/api/events/routes.ts'
import type { StoredEvent } from '../../src/domain/event.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import type { Annotation } from '../../src/records/annotations.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { randomEvent } from '../helpers/stored-events.ts'

const seed = testSeed()
const SEEN_AT = 1_000
const PARTITION = 3

/** One event with an account; of its visitor's other visits so many have that account as each answer of ClickHouse says, the last for ever. */
function openWorld(linkedId: string | null, others: readonly number[] = [0]) {
  let event: StoredEvent = { ...randomEvent(rng(seed), 'ws_1', 1), linkedId, evaluationError: null }
  const { workspace, env, requestId } = event
  const counted = new Set(linkedId === null ? [] : [linkedId])
  const said: Omit<Annotation, 'annotationId'>[] = []
  const questions: Record<string, unknown>[] = []
  const world = { isAway: false, counted, said, questions, linkedId: () => event.linkedId }

  async function annotate(partition: number, ...all: readonly Omit<Annotation, 'annotationId'>[]) {
    t.equal(partition, PARTITION)
    for (const one of all) {
      said.push(one)
      event = { ...event, ...one.changes }
      const { add = null, drop = null } = one.recount ?? {}
      if (drop !== null) counted.delete(drop)
      if (add !== null) counted.add(add)
    }
  }
  const query = async (_: string, params: Record<string, unknown> = {}) => {
    if (world.isAway) throw new Unavailable('clickhouse is away')
    const { account, said: corrected } = params as { account: string; said: readonly string[] }
    const own = event.linkedId === account && !corrected.includes(requestId) ? 1 : 0
    const used = (others[Math.min(questions.length, others.length - 1)] ?? 0) + own
    questions.push(params)
    return [{ newest: SEEN_AT, used, corrected: [] }]
  }
  const relink = openRelink({
    annotate,
    clickhouse: { query: query as never },
    kv: { scan: async () => [] },
    visitors: { record: async () => ({ lastSeenAt: SEEN_AT }) as never, idsOf: async (_w, _e, id) => [id] },
    clock: { monotonic: () => 0, sleep: async () => undefined },
    partitions: 1,
  })
  const find = async () => ({ event, partition: PARTITION }) as never
  const routes = eventRoutes({
    events: { find, byId: async () => event } as never,
    identity: {} as never,
    annotate,
    relink,
    submit: async () => ({ ok: true, seq: 1, at: 0 }) as never,
  })
  const route = must(routes.find(({ method }) => method === 'PATCH'))
  const caller = { workspace: { id: workspace, plan: 'enterprise' }, env, key: { id: 'key_1' } }
  const patch = async (body: unknown) => route.handle({ caller, params: { requestId }, body } as never)
  return { ...world, patch, away: (isAway: boolean) => (world.isAway = isAway) }
}

t.test(
  'an account for another is refused whole while ClickHouse is away, and done whole when asked again',
  async (t) => {
    const { patch, away, said, counted, linkedId } = openWorld('wrong')
    away(true)
    await t.rejects(patch({ linkedId: 'right', label: 'fraud' }), Unavailable)
    t.same([said, linkedId(), [...counted]], [[], 'wrong', ['wrong']])
    away(false)
    t.match(await patch({ linkedId: 'right', label: 'fraud' }), { body: { linkedId: 'right', label: 'fraud' } })
    t.same([...counted], ['right'])
    t.equal(said.length, 1, 'the event and the accounts change in one step, which whoever dies cannot part')
  },
)

t.test('an account for none needs no ClickHouse', async (t) => {
  const { patch, away, counted } = openWorld(null)
  away(true)
  t.match(await patch({ linkedId: 'first' }), { body: { linkedId: 'first' } })
  t.same([...counted], ['first'])
})

t.test('the same account again is counted, also when nobody had counted it', async (t) => {
  const { patch, away, counted } = openWorld('half done')
  counted.clear()
  away(true)
  await patch({ linkedId: 'half done' })
  t.same([...counted], ['half done'])
})

t.test('an account that other visits have stays, and goes when they lost it meanwhile', async (t) => {
  const kept = openWorld('shared', [1])
  await kept.patch({ linkedId: 'own' })
  t.same([...kept.counted], ['shared', 'own'])
  const left = openWorld('shared', [1, 0])
  await left.patch({ linkedId: null })
  t.same([...left.counted], [])
})
