// What the process that answers says of itself.

import { RefusedError } from './api.ts'

export interface AddressSource {
  readonly ageSeconds: number | null
  readonly entries: number
  readonly failure: string | null
}
/** What could be better, and how. */
export interface AdviceItem {
  readonly code: string
  readonly says: string
  readonly mend: string
}
export interface Readiness {
  readonly status: string
  readonly checks?: Readonly<Record<string, string | null>>
  readonly roles?: readonly string[]
  readonly partitions?: number
  readonly clickhouse?: { readonly answers: boolean | null }
  readonly disk?: { readonly freeBytes: number; readonly freeBytesMin: number }
  /** Absent from a process of an earlier version, and where details are told on another port. */
  readonly advice?: readonly AdviceItem[]
  readonly ipSources?: Readonly<Record<string, AddressSource | null>>
}
/** A process that cannot accept says so with 503, which here is an answer like any other. */
export async function readReadiness(signal: AbortSignal): Promise<Readiness> {
  const answer = await fetch('/readyz', { signal, cache: 'no-store' }).catch(() => null)
  if (answer === null) throw new RefusedError(0, { message: 'The server cannot be reached.' })
  return (await answer.json()) as Readiness
}
