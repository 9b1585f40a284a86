// Moments as the outside sees them.

import t from 'tap'
import { isoTime } from '../../src/events/present.ts'
import { rng, testSeed } from '../helpers/rng.ts'

t.test('a moment is written as Date writes it', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  const days = [0, -1, 1, 951_782_400_000, 253_402_300_799_999, 253_402_300_800_000, -62_198_755_200_000, 8.64e15]
  const near = Array.from({ length: 3_000 }, () => 1.8e12 + r.int(1_000_000))
  const anywhere = Array.from({ length: 3_000 }, () => Math.floor((r.float() - 0.3) * 1e14))
  const wrong = [...days, ...near, ...anywhere, 1.5, -0.25].filter((ms) => isoTime(ms) !== new Date(ms).toISOString())
  t.same(wrong, [])
  for (const none of [Number.NaN, Number.POSITIVE_INFINITY, 8.64e15 + 1_000]) t.throws(() => isoTime(none), RangeError)
})
