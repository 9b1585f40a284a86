// The randomness of a made-up history: the same seed gives the same numbers and ids on every machine.

import { BASE62, hash32 } from '../domain/ids.ts'

export interface SeedRandom {
  /** In [0, 1). */
  float(): number
  /** An integer in [0, n). */
  int(n: number): number
  chance(p: number): boolean
  pick<T>(from: readonly T[]): T
  /** An index, each as likely as its weight says; `cumulative` ends at 1. */
  weighted(cumulative: readonly number[]): number
  /** Mean `mean`, at least 0. */
  exponential(mean: number): number
  /** A request id of that millisecond. */
  requestId(atMs: number): string
  /** `chars` is even. */
  base62(chars: number): string
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const pairsOf = (alphabet: string): string[] => [...alphabet].flatMap((a) => [...alphabet].map((b) => a + b))
const PAIRS_32 = pairsOf(CROCKFORD)
const PAIRS_62 = pairsOf(BASE62)
const WARM_UP = 16

/** The ten characters of a ULID that say when. */
function timeText(atMs: number): string {
  let text = ''
  let rest = atMs
  for (let i = 0; i < 5; i++) {
    text = PAIRS_32[rest % 1_024] + text
    rest = Math.floor(rest / 1_024)
  }
  return text
}

/** Any text is a seed. The generator is sfc32. */
export function openSeedRandom(seed: string): SeedRandom {
  let a = hash32(`a${seed}`)
  let b = hash32(`b${seed}`)
  let c = hash32(`c${seed}`)
  let counter = 1
  const bits = (): number => {
    const sum = (a + b + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  for (let i = 0; i < WARM_UP; i++) bits()

  const float = () => bits() / 4_294_967_296
  const int = (n: number) => Math.floor(float() * n)
  let cachedMs = -1
  let cachedText = ''
  return {
    float,
    int,
    chance: (p) => float() < p,
    pick: (from) => from[int(from.length)] as (typeof from)[number],
    weighted(cumulative) {
      const drawn = float()
      let low = 0
      let high = cumulative.length - 1
      while (low < high) {
        const middle = (low + high) >> 1
        if (drawn < (cumulative[middle] as number)) high = middle
        else low = middle + 1
      }
      return low
    },
    exponential: (mean) => -Math.log(1 - float()) * mean,
    requestId(atMs) {
      if (atMs !== cachedMs) {
        cachedMs = atMs
        cachedText = `req_${timeText(atMs)}`
      }
      const [x, y, z] = [bits(), bits(), bits()]
      return (
        cachedText +
        (PAIRS_32[x & 1023] as string) +
        (PAIRS_32[(x >>> 10) & 1023] as string) +
        (PAIRS_32[(x >>> 20) & 1023] as string) +
        (PAIRS_32[y & 1023] as string) +
        (PAIRS_32[(y >>> 10) & 1023] as string) +
        (PAIRS_32[(y >>> 20) & 1023] as string) +
        (PAIRS_32[z & 1023] as string) +
        (PAIRS_32[(z >>> 10) & 1023] as string)
      )
    },
    base62(chars) {
      let text = ''
      for (let i = 0; i < chars; i += 2) text += PAIRS_62[int(PAIRS_62.length)]
      return text
    },
  }
}

/** For `weighted`. */
export function cumulate(weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  let sum = 0
  return weights.map((weight) => {
    sum += weight
    return sum / total
  })
}
