// What a run forgives when the log lost a stream: everything the stream held at that moment, and what builds on it.

import { decodeIdentification } from '../../src/records/identification.ts'
import type { LostStream } from './chaos.ts'
import type { DecidedSoFar } from './decided.ts'
import type { StoredRecord } from './ports.ts'

export interface Exemptions {
  /** Whether a side of this partition was lost. */
  isStream(partition: number): boolean
  /** It may be lost, or have been decided and be decided again. */
  isRequest(requestId: string): boolean
  isRecord(record: StoredRecord): boolean
  /** Some of its events may be gone while it is remembered, or the other way round. */
  isVisitor(visitor: string): boolean
  /** Counters may miss events. */
  countsMiss(): boolean
}

function requestOf(bytes: Uint8Array): string | null {
  try {
    return decodeIdentification(bytes).meta.requestId
  } catch {
    return null
  }
}

export function createExemptions(lostStream: () => LostStream | null, decided: DecidedSoFar): Exemptions {
  const known = new Set<string>()
  let knownFrom: LostStream | null = null

  function requests(lost: LostStream): ReadonlySet<string> {
    if (knownFrom === lost) return known
    knownFrom = lost
    if (lost.topic === 'identifications') for (const { bytes } of lost.records) known.add(requestOf(bytes) ?? '')
    else for (const { record, item } of decided.events()) if (lost.records.has(record)) known.add(item.requestId)
    return known
  }

  function isRequest(requestId: string): boolean {
    const lost = lostStream()
    if (lost === null || !requests(lost).has(requestId)) return false
    // Somebody had read it before it was lost.
    return lost.topic === 'events' || decided.eventsOf(requestId).length === 0
  }

  return {
    isStream: (partition) => lostStream()?.partition === partition,
    isRequest,
    isRecord: (record) => lostStream()?.records.has(record) === true,
    isVisitor: (visitor) => decided.eventsBy(visitor).some(({ item }) => isRequest(item.requestId)),
    countsMiss: () => lostStream()?.topic === 'events',
  }
}
