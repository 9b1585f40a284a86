// Where events that are not in ClickHouse yet are to be found, against plain lists of records.

import t from 'tap'
import { createRecent } from '../../src/engine/recent.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const PARTITIONS = 3
const ENTRIES_MAX = 100

interface Record {
  readonly seq: number
  readonly ids: readonly string[]
}

t.test(
  'each event behind what ClickHouse has is found at its place, or its partition says that some are not',
  async (t) => {
    const seed = testSeed()
    t.comment(`seed ${seed}`)
    const random = rng(seed)
    const recent = createRecent(PARTITIONS, ENTRIES_MAX)
    const records: Record[][] = Array.from({ length: PARTITIONS }, () => [])
    const stored = new Array<number>(PARTITIONS).fill(0)
    const last = new Array<number>(PARTITIONS).fill(0)
    for (let partition = 0; partition < PARTITIONS; partition++) recent.setCaughtUp(partition, true)
    let overflows = 0
    for (let step = 0; step < 4_000; step++) {
      const partition = random.int(PARTITIONS)
      const mine = records[partition] as Record[]
      const what = random.int(10)
      if (what < 6) {
        const seq = (last[partition] as number) + 1 + random.int(3)
        const ids = Array.from({ length: random.int(12) }, (_, index) => `req_${step}_${index}`)
        last[partition] = seq
        mine.push({ seq, ids })
        recent.add(partition, seq, ids)
        // As whoever adopts it does once more.
        if (random.chance(0.1)) recent.add(partition, seq, ids)
      } else if (what < 9) {
        stored[partition] = Math.max(stored[partition] as number, (last[partition] as number) - random.int(20))
        recent.forgetUpTo(partition, stored[partition] as number)
      } else if (random.chance(0.05)) {
        recent.drop(partition)
        mine.length = 0
        recent.setCaughtUp(partition, true)
      }
      const complete = recent.complete()
      overflows += PARTITIONS - complete.length
      for (let p = 0; p < PARTITIONS; p++) {
        for (const { seq, ids } of records[p] as Record[]) {
          const isStored = seq <= (stored[p] as number)
          for (const [index, id] of ids.entries()) {
            const found = recent.find(id)
            if (found === null ? !isStored && complete.includes(p) : found.seq !== seq || found.index !== index)
              t.fail(`step ${step}: event ${index} of record ${seq} of partition ${p} at ${JSON.stringify(found)}`)
            if (isStored && found !== null) t.fail(`step ${step}: an event that ClickHouse has was not let go of`)
          }
        }
        records[p] = (records[p] as Record[]).filter(({ seq }) => seq > (stored[p] as number))
      }
      if (recent.size() > ENTRIES_MAX + 12) t.fail(`step ${step}: ${recent.size()} events held`)
    }
    t.equal(recent.find('req_never_0'), null, 'nobody knows what never was')
    t.ok(overflows > 0, 'sometimes there were too many')
  },
)
