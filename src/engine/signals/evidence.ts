// How checks become a signal: weights combine by noisy-OR, and a signal says which checks raised it.

import { quantise4, type Signal } from '../../domain/event.ts'
import type { Attributes } from '../../identity/attributes.ts'
import type { Evidence } from '../../identity/matcher.ts'
import type { AddressFacts } from '../../ipintel/addresses.ts'

/** What is known of the address of a visit. */
export interface NetworkEvidence {
  readonly address: AddressFacts
  /** Where it is, as the event says. */
  readonly country: string | null
  readonly timezone: string | null
  /** The event's time. */
  readonly atMs: number
  /** The real time of acceptance: ages of data are measured to it. */
  readonly nowMs: number
}

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
export interface EvidenceTally {
  methods: readonly string[]
  /** Chance that none of the checks is right. */
  doubt: number
}

const METHODS_MAX = 16

const NONE: readonly string[] = []

export const newTally = (): EvidenceTally => ({ methods: NONE, doubt: 1 })

/** Names a check that weighs nothing by itself. */
export function name(tally: EvidenceTally, method: string): void {
  if (tally.methods === NONE) tally.methods = [method]
  else (tally.methods as string[]).push(method)
}

export function raise(tally: EvidenceTally, method: string, weight: number): void {
  tally.doubt *= 1 - weight
  if (tally.methods.length < METHODS_MAX) name(tally, method)
}

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

/** Clear signals that name no check: of each detector and source there is one, and most visits have it. */
const quiet: Signal[] = []
const QUIET_MAX = 32

/** `methods` of a clear signal are checks that spoke too quietly to raise it. */
export function clear(confidence: number, methods: readonly string[], source: Source): Signal {
  const rounded = quantise4(confidence)
  if (methods.length > 0) return { state: 'clear', confidence: rounded, methods, source, dataAgeSeconds: null }
  for (const known of quiet) if (known.confidence === rounded && known.source === source) return known
  const made: Signal = { state: 'clear', confidence: rounded, methods: NONE, source, dataAgeSeconds: null }
  if (quiet.length < QUIET_MAX) quiet.push(made)
  return made
}

/** Detected from `threshold` on; clear below it, with at most `clearMax` confidence. */
export function verdictOf(tally: EvidenceTally, threshold: number, clearMax: number, source: Source): Signal {
  const belief = 1 - tally.doubt
  return belief >= threshold - 1e-9
    ? detected(belief, tally.methods, source)
    : clear(Math.min(clearMax, tally.doubt), tally.methods, source)
}
