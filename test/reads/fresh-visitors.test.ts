// What is said of a visitor that the checkpoint does not have: whether there is none, or whether nobody can tell.

import t from 'tap'
import { makeVisitorId, seededBytes } from '../../src/domain/ids.ts'
import type { VisitorState } from '../../src/identity/visitor.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { openFreshVisitors } from '../../src/reads/fresh-visitors.ts'

const id = makeVisitorId(seededBytes('a visitor'))
/** Nothing else of it is asked for. */
const VISITOR = { id } as VisitorState

interface Partition {
  /** Whether a look makes the owner store what it has decided until then. */
  readonly isAsked: boolean
  /** Where the visitor was decided, if ever. */
  readonly decidedAt: number
  /** What the owner stores of its own, by what it has decided. */
  readonly storedOf: (decided: number) => number
}

/** Others are decided with every step. */
function reading({ isAsked, decidedAt, storedOf }: Partition) {
  let decided = 100
  let stored = 0
  const step = () => {
    decided++
    stored = Math.max(stored, storedOf(decided))
  }
  const visitors = openFreshVisitors({
    partitions: 4,
    visitors: {
      async byId() {
        if (isAsked) stored = decided
        const seen = stored
        step()
        return seen >= decidedAt ? VISITOR : null
      },
      record: async () => null,
      idsOf: async () => [id],
    },
    kv: {
      async position() {
        step()
        return stored
      },
    },
    log: {
      async last() {
        step()
        return decided
      },
    },
    clock: { sleep: async () => step() },
  })
  return () => visitors.byId('ws', 'live', id)
}

const NEVER = Number.POSITIVE_INFINITY

t.test('a visitor nobody knows is not found, however much is decided meanwhile', async (t) => {
  t.equal(await reading({ isAsked: true, decidedAt: NEVER, storedOf: () => 0 })(), null, 'by an owner that is asked')
  const late = (decided: number) => (decided < 150 ? 0 : 120)
  t.equal(
    await reading({ isAsked: false, decidedAt: NEVER, storedOf: late })(),
    null,
    'by a checkpoint of its own time',
  )
})

t.test('who was decided before the question is found, whenever the checkpoint comes', async (t) => {
  for (let at = 100; at < 140; at++) {
    const storedOf = (decided: number) => (decided < at ? 0 : decided)
    t.equal(await reading({ isAsked: false, decidedAt: 100, storedOf })(), VISITOR, `with decision ${at}`)
  }
  t.equal(await reading({ isAsked: true, decidedAt: 100, storedOf: () => 0 })(), VISITOR, 'by an owner that is asked')
})

t.test('that there is no such visitor is not said where no checkpoint comes', async (t) => {
  await t.rejects(reading({ isAsked: false, decidedAt: NEVER, storedOf: () => 0 })(), Unavailable)
})
