// What is kept of how many things a key was seen with, against counting them anew with every question.

import t from 'tap'
import { createBoard } from '../../../src/engine/velocity/board.ts'
import { collectSeen } from '../../../src/engine/velocity/counters.ts'
import { sized } from '../../helpers/depth.ts'
import { rng } from '../../helpers/rng.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const EVENTS = sized({ quick: 3_000, usual: 12_000, long: 100_000 })
const PARTITIONS = 3
const [ADDRESS, ACCOUNT] = [7, 8]
const SECOND = 1_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR

for (const [what, visitors, stepMs] of [
  ['few visitors', 12, 2 * HOUR],
  ['more visitors than are kept', 2_000, 200],
  ['some hundred visitors a day', 400, 3 * 60 * SECOND],
] as const) {
  t.test(`what is kept is what would be counted anew: ${what}`, async (t) => {
    const random = rng(SEED)
    const board = createBoard(PARTITIONS, 10)
    for (let partition = 0; partition < PARTITIONS; partition++) board.open(partition)
    board.load(ADDRESS, [])
    board.load(ACCOUNT, [])
    let now = Date.UTC(2026, 9, 1)
    for (let i = 0; i < EVENTS; i++) {
      now += random.int(random.chance(0.01) ? 30 * stepMs : stepMs)
      // Partitions are some milliseconds apart, some events come late, and a sandbox sets any time.
      const late = random.chance(0.5) ? 0 : random.int(random.pick([50, 50, 50, 300 * SECOND, 20 * HOUR, 5 * DAY]))
      const at = now - late
      const visitor = 1 + random.int(visitors)
      const ip = 1 + random.int(40)
      for (const [key, set, also] of [
        [ADDRESS, 0, visitor],
        [ACCOUNT, 0, visitor],
        [ACCOUNT, 1, ip],
      ] as const) {
        const found = new Set([also])
        for (const counters of board.of(key)) collectSeen(counters, set, at, found)
        const kept = board.seen(key, set, at, also)
        if (kept !== found.size) return t.fail(`seed ${SEED}, event ${i}: ${kept} in set ${set}, not ${found.size}`)
      }
      // A visitor's home is one partition, but one that was moved by an order may be known to two.
      const partition = (random.chance(0.05) ? visitor + 1 : visitor) % PARTITIONS
      if (random.chance(0.01)) {
        const keys = [ADDRESS, ACCOUNT].map((key) => ({ key, events: 5, ips: key === ACCOUNT ? [ip] : [] }))
        board.remove(partition, { visitor, keys, times: [at], cells: [] })
      } else board.add(partition, { at, ipKey: ADDRESS, linkedKey: ACCOUNT, visitor, ip, lat: null, lng: null })
      if (random.chance(0.001)) board.takeDirty(partition, 0)
    }
    t.pass(`${EVENTS} events, seed ${SEED}`)
  })
}
