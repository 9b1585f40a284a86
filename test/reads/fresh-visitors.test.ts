// What is said of a visitor that the checkpoint does not have: whether there is none, or whether nobody can tell.

import t from 'tap'
import { makeVisitorId, seededBytes } from '../../src/domain/ids.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { openFreshVisitors } from '../../src/reads/fresh-visitors.ts'

const PARTITIONS = 4
const unknown = makeVisitorId(seededBytes('unknown'))

/** Something is decided with every step; `asked`: what the owner stores when it is looked at, as of then. */
function reading({ asked, stored }: { readonly asked: boolean; readonly stored: (decided: number) => number }) {
  let decided = 100
  let position = 0
  let looks = 0
  const visitors = openFreshVisitors({
    partitions: PARTITIONS,
    visitors: {
      async byId() {
        looks++
        if (asked) position = decided
        decided++
        return null
      },
      record: async () => null,
      idsOf: async () => [unknown],
    },
    kv: { position: async () => Math.max(position, stored(decided)) },
    log: { last: async () => decided++ },
    clock: { sleep: async () => void decided++ },
  })
  return { looked: async () => ({ found: await visitors.byId('ws', 'live', unknown), looks }), looks: () => looks }
}

t.test('a visitor nobody knows is not found, however much is decided meanwhile', async (t) => {
  const owner = reading({ asked: true, stored: () => 0 })
  t.same(await owner.looked(), { found: null, looks: 1 }, 'one look is enough where the owner stores what it decided')
  const late = reading({ asked: false, stored: (decided) => (decided < 120 ? 0 : 110) })
  t.same(await late.looked(), { found: null, looks: 2 }, 'a checkpoint of its own time is waited for')
})

t.test('that there is no such visitor is not said where no checkpoint comes', async (t) => {
  const { looked, looks } = reading({ asked: false, stored: () => 0 })
  await t.rejects(looked(), Unavailable)
  t.equal(looks(), 1)
})
