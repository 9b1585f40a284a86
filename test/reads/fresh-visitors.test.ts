// What is said of a visitor that the checkpoint does not have: whether there is none, or whether nobody can tell.

import t from 'tap'
import { homePartition, makeVisitorId, seededBytes } from '../../src/domain/ids.ts'
import type { VisitorState } from '../../src/identity/visitor.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { openFreshVisitors } from '../../src/reads/fresh-visitors.ts'

const PARTITIONS = 4
const id = makeVisitorId(seededBytes('a visitor'))
/** Nothing else of it is asked for. */
const VISITOR = { id } as VisitorState

/** A visitor that the kv has from the start, once it is brought up to date, or never; `isOwned`: it can be. */
function reading(has: 'now' | 'when fresh' | 'never', isOwned: boolean) {
  let isFresh = false
  const asked: number[] = []
  const visitors = openFreshVisitors({
    partitions: PARTITIONS,
    visitors: {
      byId: async () => (has === 'now' || (has === 'when fresh' && isFresh) ? VISITOR : null),
      record: async () => null,
      idsOf: async () => [id],
    },
    async isFresh(partition) {
      asked.push(partition)
      isFresh = isOwned
      return isOwned
    },
  })
  return { asked, read: (visitorId = id) => visitors.byId('ws', 'live', visitorId) }
}

t.test('a visitor nobody knows is not found, and one who was decided before the question is', async (t) => {
  t.equal(await reading('never', true).read(), null)
  const late = reading('when fresh', true)
  t.equal(await late.read(), VISITOR)
  t.same(late.asked, [homePartition(id, PARTITIONS)])
})

t.test('who is found needs nobody, and neither does what is no id', async (t) => {
  const found = reading('now', false)
  t.equal(await found.read(), VISITOR)
  const never = reading('never', false)
  t.equal(await never.read('nobody'), null)
  t.same([...found.asked, ...never.asked], [])
})

t.test('that there is no such visitor is not said where its partition is behind', async (t) => {
  await t.rejects(reading('when fresh', false).read(), Unavailable)
  await t.rejects(reading('never', false).read(), Unavailable)
})
