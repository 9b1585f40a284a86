// What appended records were made of, for a reader in the thread that appended them: its message may come back among those of others,
// so it is known by its id until its place is known, and by its place until it is read. It is let go of where it lay: a list or a table
// that is dead in V8's old generation would have all it still names promoted (D209).

import { hash32 } from '../domain/ids.ts'
import { openInFlight } from '../lib/in-flight.ts'
import type { LogRecord, Seq } from './log.ts'

export interface Origins {
  keep(messageId: string, attached: readonly unknown[]): void
  forget(messageId: string): void
  /** A message has got its place; told as often as somebody learns of it. */
  stored(messageId: string, last: Seq): void
  /** The records with what they were made of, which is handed out once; what lies before them is forgotten. */
  attach(records: readonly LogRecord[]): readonly LogRecord[]
  clear(): void
}

/** What the records of one message were made of, in their order; undefined: handed out. */
type Made = unknown[]

interface PlacedMessage {
  readonly first: Seq
  readonly last: Seq
  readonly made: Made
}

/** What a record was made of is several times as large as the record. */
const MESSAGES_MAX = 64
const RECORDS_MAX = 1_024

const empty = (made: Made): void => void made.fill(undefined)

export function openOrigins(): Origins {
  const byId = openInFlight<string, Made>(hash32)
  let placed: PlacedMessage[] = []

  function dropUpTo(seq: Seq): void {
    for (const { last, made } of placed) if (last <= seq) empty(made)
    placed = placed.filter(({ last }) => last > seq)
  }

  function take(seq: Seq): unknown {
    for (const { first, last, made } of placed) {
      if (seq < first || seq > last) continue
      const one = made[seq - first]
      made[seq - first] = undefined
      return one
    }
    return undefined
  }

  return {
    keep(messageId, attached) {
      if (byId.size() < MESSAGES_MAX) byId.set(messageId, [...attached])
    },
    forget(messageId) {
      empty(byId.take(messageId) ?? [])
    },
    stored(messageId, last) {
      const made = byId.take(messageId)
      if (made === undefined) return
      const records = placed.reduce((sum, one) => sum + one.made.length, made.length)
      if (records > RECORDS_MAX) dropUpTo(Number.POSITIVE_INFINITY)
      placed.push({ first: last - made.length + 1, last, made })
    },
    attach(records) {
      if (placed.length === 0) return records
      const upTo = records.at(-1)?.seq ?? 0
      const found = records.map((record) => {
        const attached = take(record.seq)
        return attached === undefined ? record : { seq: record.seq, bytes: record.bytes, attached }
      })
      dropUpTo(upTo)
      return found
    },
    clear() {
      for (const made of byId.takeAll()) empty(made)
      dropUpTo(Number.POSITIVE_INFINITY)
    },
  }
}
