// Which entries make room: those that nobody used, in time although there is room, and sooner where there is none.

import t from 'tap'
import { openClock, type Watched } from '../../src/lib/clock-eviction.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const SEED = testSeed()
const UNUSED_MS_MAX = 60_000
const STEP_MS_MAX = 2_000

t.test(`what is used again in time stays, what is not goes, whatever comes meanwhile (seed ${SEED})`, async (t) => {
  const random = rng(SEED)
  for (let run = 0; run < 20; run++) {
    const entries = new Map<number, Watched & { usedMs: number }>()
    const makeRoom = openClock(entries, { entriesMax: 10_000, unusedMsMax: UNUSED_MS_MAX })
    const comesPerStep = random.pick([0, 1, 5])
    const [busy, idle] = [random.int(50), 1 + random.int(200)]
    let nowMs = random.int(1_000_000)
    const use = (key: number) =>
      void entries.set(key, Object.assign(entries.get(key) ?? {}, { unusedSinceS: null, usedMs: nowMs }))
    for (let key = 0; key < busy + idle; key++) use(key)
    const startMs = nowMs
    let early = 0
    for (let next = busy + idle; nowMs < startMs + 4 * UNUSED_MS_MAX; ) {
      for (let key = 0; key < busy; key++) if (entries.has(key) && random.chance(0.2)) use(key)
      for (let i = 0; i < comesPerStep; i++) use(next++)
      const before = new Map(entries)
      nowMs += random.int(STEP_MS_MAX)
      makeRoom(nowMs, () => false)
      for (const [key, { usedMs }] of before) {
        if (!entries.has(key) && nowMs - usedMs < UNUSED_MS_MAX / 2 - STEP_MS_MAX) early++
      }
    }
    t.equal(early, 0, 'nothing went before its time')
    const late = [...entries.values()].filter(({ usedMs }) => nowMs - usedMs > 2.5 * UNUSED_MS_MAX + 2 * STEP_MS_MAX)
    if (comesPerStep === 0) t.same(late, [], 'nothing stayed for longer than two and a half times that')
  }
})

t.test('what was just used stays although all that came before it went in the same turn', async (t) => {
  const [IDLE, BUSY] = [1_000, 30]
  const entries = new Map<number, Watched>()
  const makeRoom = openClock(entries, { entriesMax: 10_000, unusedMsMax: UNUSED_MS_MAX })
  for (let key = 0; key <= IDLE + BUSY; key++) entries.set(key, { unusedSinceS: null })
  let nowMs = 0
  const second = (used: (key: number) => boolean) => {
    for (const [key, entry] of entries) if (used(key)) entry.unusedSinceS = null
    makeRoom(nowMs, () => false)
    nowMs += 1_000
  }
  while (entries.has(IDLE - 1)) second((key) => key >= IDLE)
  const endMs = nowMs + UNUSED_MS_MAX / 2 - 1_000
  while (nowMs < endMs) second((key) => key > IDLE)
  t.equal(entries.size, BUSY + 1)
})

t.test('the bound holds for all that may go, and of these the used ones stay longest', async (t) => {
  const entries = new Map<number, Watched>()
  const makeRoom = openClock(entries, { entriesMax: 10, unusedMsMax: Number.POSITIVE_INFINITY })
  for (let key = 0; key < 30; key++) entries.set(key, { unusedSinceS: key % 3 === 0 ? null : 0 })
  makeRoom(0, (key) => key < 3)
  t.same([...entries.keys()].slice(0, 3), [0, 1, 2], 'kept ones stay')
  t.equal(entries.size, 10)
  t.ok(
    [...entries.keys()].every((key) => key < 3 || key % 3 === 0),
    'those that were used outlive the others',
  )
  for (let key = 100; key < 120; key++) entries.set(key, { unusedSinceS: null })
  makeRoom(0, () => true)
  t.equal(entries.size, 30, 'where all must stay they do')
  makeRoom(0, () => false)
  t.equal(entries.size, 10)
})
