// Seeded randomness for tests: the same seed gives the same run.

export interface Rng {
  /** An integer in [0, n). */
  int(n: number): number
  /** A number in [0, 1). */
  float(): number
  /** One element of a non-empty array. */
  pick<T>(from: readonly T[]): T
  /** True with probability `p`. */
  chance(p: number): boolean
  bytes(n: number): Uint8Array
  /** A shuffled copy. */
  shuffle<T>(from: readonly T[]): T[]
}

/** Mulberry32: 32 bits of state, far better spread than tests need. */
export function rng(seed: number): Rng {
  let state = seed >>> 0
  const float = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const int = (n: number) => Math.floor(float() * n)
  return {
    int,
    float,
    pick(from) {
      if (from.length === 0) throw new RangeError('nothing to pick from')
      return from[int(from.length)] as (typeof from)[number]
    },
    chance: (p) => float() < p,
    bytes(n) {
      const drawn = new Uint8Array(n)
      for (let i = 0; i < n; i += 1) drawn[i] = int(256)
      return drawn
    },
    shuffle(from) {
      const copy = [...from]
      for (let last = copy.length - 1; last > 0; last -= 1) {
        const other = int(last + 1)
        const held = copy[last] as (typeof copy)[number]
        copy[last] = copy[other] as (typeof copy)[number]
        copy[other] = held
      }
      return copy
    },
  }
}

/** The seed of this run: SEED from the environment, or one drawn from the clock. Print it. */
export function testSeed(): number {
  const given = process.env.SEED
  return given === undefined ? Date.now() >>> 0 : Number(given)
}
