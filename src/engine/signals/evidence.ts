// How checks become a signal: weights combine by noisy-OR, and a signal says which checks raised it.

import { quantise4, type Signal } from '../../domain/event.ts'
import type { Attributes } from '../../identity/attributes.ts'
import type { Evidence } from '../../identity/matcher.ts'
import type { NetworkEvidence } from './lists.ts'

/** What every signal function reads. */
export interface SignalInput {
  readonly attributes: Attributes
  /** What recognition noticed about the token. */
  readonly evidence: readonly Evidence[]
  readonly network: NetworkEvidence
  /** The id the app sent belongs to a visitor on other hardware. */
  readonly nativeIdElsewhere?: boolean
}

export type Source = 'client' | 'server' | 'native' | 'mock'

/** Collects checks that spoke; one list and one number, so that a quiet visit allocates next to nothing. */
export interface Tally {
  methods: string[]
  /** Chance that none of the checks is right. */
  doubt: number
}

const METHODS_MAX = 16

export const newTally = (): Tally => ({ methods: [], doubt: 1 })

export function raise(tally: Tally, method: string, weight: number): void {
  tally.doubt *= 1 - weight
  if (tally.methods.length < METHODS_MAX) tally.methods.push(method)
}

const NONE: readonly string[] = []

export const undetermined = (): Signal => UNDETERMINED
const UNDETERMINED: Signal = {
  state: 'undetermined',
  confidence: 0,
  methods: NONE,
  source: 'server',
  dataAgeSeconds: null,
}

export const detected = (confidence: number, methods: readonly string[], source: Source): Signal => ({
  state: 'detected',
  confidence: quantise4(confidence),
  methods,
  source,
  dataAgeSeconds: null,
})

/** `methods` of a clear signal are checks that spoke too quietly to raise it. */
export const clear = (confidence: number, methods: readonly string[], source: Source): Signal => ({
  state: 'clear',
  confidence: quantise4(confidence),
  methods,
  source,
  dataAgeSeconds: null,
})

/** Detected from `threshold` on; clear below it, with at most `clearMax` confidence. */
export function verdictOf(tally: Tally, threshold: number, clearMax: number, source: Source): Signal {
  const belief = 1 - tally.doubt
  return belief >= threshold - 1e-9
    ? detected(belief, tally.methods, source)
    : clear(Math.min(clearMax, tally.doubt), tally.methods, source)
}
