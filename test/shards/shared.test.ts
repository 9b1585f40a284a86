// What threads count and claim together.

import t from 'tap'
import { addCount, joinCounts, newCounts, readCount, takeOut } from '../../src/lib/counts.ts'
import { newClaims, openClaims } from '../../src/lib/first-claims.ts'
import { createSuspects } from '../../src/shards/suspects.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const WINDOW_MS = 120_000

t.test('a thread that dies takes its share out of what all count', async (t) => {
  const first = newCounts(2)
  const second = joinCounts(first)
  t.equal(addCount(first, 0, 1), 0)
  t.equal(addCount(second, 0, 1), 1)
  t.equal(addCount(second, 1, 3), 0)
  takeOut(second)
  t.equal(readCount(first, 0), 1)
  t.equal(readCount(first, 1), 0)
  takeOut(second)
  t.equal(readCount(first, 0), 1, 'once')
})

t.test('the first claim of a key holds for the window, whichever thread claims it again', async (t) => {
  let now = 5_000
  const memory = newClaims(64)
  const [one, other] = [openClaims(memory, WINDOW_MS, () => now), openClaims(memory, WINDOW_MS, () => now)]
  t.equal(one.claim(Number.MAX_SAFE_INTEGER, 255), null)
  t.equal(other.claim(Number.MAX_SAFE_INTEGER, 3), 255)
  t.equal(other.claim(2 ** 32 - 1, 3), null, 'a key that shares half of its bits')
  now += WINDOW_MS
  t.equal(one.claim(Number.MAX_SAFE_INTEGER, 4), 255)
  now += 2_000
  t.equal(one.claim(Number.MAX_SAFE_INTEGER, 4), null)
  t.equal(other.claim(Number.MAX_SAFE_INTEGER, 5), 4)
})

t.test('claims are what a map says, as long as a set has room', async (t) => {
  const seed = testSeed()
  const { int } = rng(seed)
  const claims = openClaims(newClaims(4_096), WINDOW_MS, () => 1)
  const known = new Map<number, number>()
  for (let i = 0; i < 300; i++) {
    const [key, value] = [int(400) * 7_919_000_003, int(256)]
    t.equal(claims.claim(key, value), known.get(key) ?? null, `seed ${seed}, claim ${i}`)
    if (!known.has(key)) known.set(key, value)
  }
})

t.test('of more keys than there is room for the oldest are forgotten', async (t) => {
  let now = 0
  const claims = openClaims(newClaims(8), WINDOW_MS, () => now)
  for (let key = 1; key <= 9; key++) {
    now += 1_000
    t.equal(claims.claim(key, key), null)
  }
  t.equal(claims.claim(9, 0), 9)
  t.equal(claims.claim(2, 0), 2)
  t.equal(claims.claim(1, 0), null)
})

t.test('a record that cost a shard twice is given up on, and others are not', async (t) => {
  const deciding = new Float64Array(4)
  const suspects = createSuspects(deciding)
  deciding.set([7, 0, 9, 5])
  suspects.lost([0, 1, 2])
  t.same(suspects.givenUp(), [])
  t.same([...deciding], [0, 0, 0, 5], 'another shard decides on')
  deciding.set([7, 1, 0])
  suspects.lost([0, 1, 2])
  t.same(suspects.givenUp(), [[0, [7]]])
})
