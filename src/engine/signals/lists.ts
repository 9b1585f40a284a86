// What signals about addresses have in common: lists are as good as they are fresh, and say nothing of private networks.

import { quantise4, type Signal } from '../../domain/event.ts'
import type { SourceName } from '../../ipintel/sources.ts'
import { STALE } from '../weights.ts'
import { type NetworkEvidence, undetermined } from './evidence.ts'

export const hasSource = ({ address }: NetworkEvidence, source: SourceName): boolean =>
  address.dataAt[source] !== undefined

/** Seconds since the data of a source was made; null when there is none or nobody says. */
export function listAgeOf({ address, nowMs }: NetworkEvidence, source: SourceName): number | null {
  const at = address.dataAt[source] ?? null
  return at === null ? null : Math.max(0, Math.floor((nowMs - at) / 1_000))
}

/** How much of its confidence data keeps at an age; data of unknown age counts as stale. */
function freshness(ageSeconds: number | null, freshSeconds: number): number {
  if (ageSeconds !== null && ageSeconds <= freshSeconds) return 1
  return ageSeconds === null || ageSeconds <= STALE.oldFactor * freshSeconds ? STALE.stale : STALE.old
}

/** The signal as data of a source supports it. */
export function aged(signal: Signal, network: NetworkEvidence, source: SourceName, freshSeconds: number): Signal {
  if (!hasSource(network, source)) return signal
  const dataAgeSeconds = listAgeOf(network, source)
  const confidence = quantise4(signal.confidence * freshness(dataAgeSeconds, freshSeconds))
  const { state, methods, source: evidence } = signal
  return { state, confidence, methods, source: evidence, dataAgeSeconds }
}

/** Undetermined, naming the checks that spoke too quietly. */
export const unsure = (methods: readonly string[]): Signal =>
  methods.length === 0 ? undetermined() : { ...undetermined(), methods }
