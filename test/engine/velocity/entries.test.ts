// Counters that are packed between turns and unpacked with the next, against a board that never packs; and which of them are packed.

import t from 'tap'
import { type Board, createBoard } from '../../../src/engine/velocity/board.ts'
import type { Counted } from '../../../src/engine/velocity/counted.ts'
import { countEvents, unpackCounters } from '../../../src/engine/velocity/counters.ts'
import { createEntries } from '../../../src/engine/velocity/entries.ts'
import { addTo, countable, type Entry, newEntry, UNCOUNTED } from '../../../src/engine/velocity/entry.ts'
import { createTakenCounters, type DirtyCounter } from '../../../src/engine/velocity/taken-counters.ts'
import { must } from '../../../src/lib/must.ts'
import { sized } from '../../helpers/depth.ts'
import { rng, testSeed } from '../../helpers/rng.ts'

const SEED = testSeed()
const EVENTS = sized({ quick: 2_000, usual: 8_000, long: 80_000 })
const PARTITIONS = 3
const KEYS = 40
/** Nothing goes that would have to be loaded again. */
const KEYS_MAX = Number.POSITIVE_INFINITY
const T0 = Date.UTC(2026, 9, 1)
const SECOND = 1_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR

const stored = (board: Board, partition: number, nowMs: number) =>
  Array.from(board.takeDirty(partition, nowMs), ({ key, packed, isRenewal }) => [
    key,
    Buffer.from(packed).toString('hex'),
    isRenewal,
  ])

/** What rules may ask for. */
const told = (board: Board, key: number, at: number) => [
  ...board.of(key).map((one) => [300 * SECOND, HOUR, DAY].map((windowMs) => countEvents(one, at, windowMs))),
  ...[0, 1].map((set) => board.seen(key, set, at, 1)),
  ...board.of(key).map(({ place }) => place),
]

t.test(`packed counters tell and store what others do, to the byte (seed ${SEED})`, async (t) => {
  const random = rng(SEED)
  const keysOf = (from: number) => from + (random.chance(0.5) ? random.int(3) : random.int(KEYS))
  const [packing, plain] = [createBoard(PARTITIONS, KEYS_MAX), createBoard(PARTITIONS, KEYS_MAX)]
  const boards = [packing, plain]
  for (let partition = 0; partition < PARTITIONS; partition++) for (const board of boards) board.open(partition)
  let nowMs = 0
  let now = T0
  for (let i = 0; i < EVENTS; i++) {
    now += random.int(random.chance(0.01) ? 30 * HOUR : 300 * SECOND)
    const at = now - (random.chance(0.7) ? 0 : random.int(random.pick([50, 300 * SECOND, 5 * DAY])))
    const [ipKey, linkedKey] = [keysOf(2 ** 52), random.chance(0.5) ? 0 : keysOf(1)]
    const [lat, lng] = random.chance(0.3) ? [null, null] : [random.int(90), 0.5 + random.int(90)]
    const one: Counted = { at, ipKey, linkedKey, visitor: random.int(9_000), ip: random.int(40), lat, lng }
    const keys = linkedKey === 0 ? [ipKey] : [ipKey, linkedKey]
    for (const board of boards) for (const key of keys) if (board.missing(key)) board.load(key, [])
    for (const key of keys) {
      const [mine, right] = boards.map((board) => told(board, key, at))
      if (JSON.stringify(mine) !== JSON.stringify(right)) return void t.same(mine, right, `seed ${SEED}, event ${i}`)
    }
    const partition = random.int(PARTITIONS)
    for (const board of boards) board.add(partition, one)
    if (random.chance(0.7)) packing.rest()
    if (!random.chance(0.02)) continue
    nowMs += random.int(8 * SECOND)
    const [mine, right] = boards.map((board) => stored(board, partition, nowMs))
    if (JSON.stringify(mine) !== JSON.stringify(right)) return void t.same(mine, right, `seed ${SEED}, event ${i}`)
  }
  t.pass(`${EVENTS} events`)
})

function openEntries(keysMax: number) {
  const entries = createEntries(1, keysMax)
  const kept = new Set<number>()
  let nowMs = 0
  return {
    entries,
    kept,
    /** A turn in which a key is counted; it is loaded where it is not held. Returns its entry, another one if it was packed before. */
    visit(key: number): Entry {
      const held = entries.get(key)
      const entry = held ?? { ...newEntry(1), of: [UNCOUNTED], isLoaded: true }
      if (held === undefined) entries.add(key, entry)
      entry.unusedSinceS = null
      const counted = { at: T0, ipKey: key, linkedKey: 0, visitor: 1, ip: 2, lat: null, lng: null }
      addTo(entry, must(countable(entry, 0)), key, counted)
      entries.rest()
      return entry
    },
    wait(ms: number): void {
      nowMs += ms
      entries.makeRoom(nowMs, [kept])
    },
    /** How many events the key has, as it would be stored. */
    eventsOf(key: number): number {
      const taken = createTakenCounters(0, 1)
      entries.take(key, 0, 0, taken)
      const [{ packed }] = [...taken] as [DirtyCounter]
      return countEvents(unpackCounters(packed), T0, DAY)
    },
  }
}

t.test('who comes again within seconds stays an object, who does not is packed behind the turn', async (t) => {
  const { visit, wait, eventsOf } = openEntries(1_000)
  wait(0)
  const first = [1, 2, 3].map(visit)
  wait(2 * SECOND)
  const second = [1, 2, 3].map(visit)
  second.forEach((entry, at) => void t.not(entry, first[at], 'nobody had come twice'))
  const third = [1, 2, 3].map(visit)
  third.forEach((entry, at) => void t.equal(entry, second[at]))
  for (let second = 0; second < 30; second++) {
    wait(SECOND)
    t.equal(visit(1), third[0])
  }
  t.not(visit(2), third[1], 'who did not come again was packed')
  wait(6 * SECOND)
  const fourth = visit(2)
  wait(6 * SECOND)
  t.not(visit(2), fourth, 'and is no object for a visit now and then')
  t.same([1, 2, 3].map(eventsOf), [33, 6, 3])
})

t.test('what is not stored yet stays, however much room is made, and the rest goes', async (t) => {
  const { entries, visit, wait, kept, eventsOf } = openEntries(10)
  for (const key of [1, 2, 3]) kept.add(key)
  wait(0)
  for (let key = 1; key <= 200; key++) {
    visit(key)
    if (key % 4 === 0) wait(SECOND)
  }
  t.same(
    Array.from({ length: 150 }, (_, key) => key + 1).filter((key) => entries.get(key) !== undefined),
    [1, 2, 3],
  )
  t.ok(entries.get(200))
  entries.keepOnly([2, 3])
  t.same(
    [1, 2, 3, 200].filter((key) => entries.get(key) !== undefined),
    [2, 3],
  )
  t.equal(eventsOf(3), 1)
})
