// What appended records were made of, for a reader in the thread that appended them: its message may come back among those of others,
// so it is known by its id until its place is known, and by its place until it is read.

import type { LogRecord, Seq } from './log.ts'

export interface Origins {
  keep(messageId: string, attached: readonly unknown[]): void
  forget(messageId: string): void
  /** A message has got its place; told as often as somebody learns of it. */
  stored(messageId: string, last: Seq, count: number): void
  /** The records with what they were made of, which is handed out once; what lies before them is forgotten. */
  attach(records: readonly LogRecord[]): readonly LogRecord[]
  clear(): void
}

/** What a record was made of is several times as large as the record. */
const MESSAGES_MAX = 64
const RECORDS_MAX = 1_024

export function openOrigins(): Origins {
  const byId = new Map<string, readonly unknown[]>()
  const bySeq = new Map<Seq, unknown>()

  return {
    keep(messageId, attached) {
      if (byId.size < MESSAGES_MAX) byId.set(messageId, attached)
    },
    forget: (messageId) => void byId.delete(messageId),
    stored(messageId, last, count) {
      const attached = byId.get(messageId)
      if (attached === undefined) return
      byId.delete(messageId)
      if (bySeq.size + count > RECORDS_MAX) bySeq.clear()
      for (const [index, made] of attached.entries()) bySeq.set(last - count + 1 + index, made)
    },
    attach(records) {
      if (bySeq.size === 0) return records
      const upTo = records.at(-1)?.seq ?? 0
      const found = records.map((record) => {
        const attached = bySeq.get(record.seq)
        return attached === undefined ? record : { ...record, attached }
      })
      for (const seq of bySeq.keys()) if (seq <= upTo) bySeq.delete(seq)
      return found
    },
    clear() {
      byId.clear()
      bySeq.clear()
    },
  }
}
