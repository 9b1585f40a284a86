// Where events that ClickHouse may not have yet are to be found: requestId → place in the events log. This is what lets a
// 200 be read back at once. Bounded; what it cannot know it says so instead of "no such event".

import { hash53 } from '../domain/ids.ts'
import type { EventPlace } from '../records/event-locator.ts'

export interface Recent {
  /** Items of one events record, in order. */
  add(partition: number, seq: number, requestIds: readonly string[]): void
  /** Places the id may be at (53-bit hashes may coincide: compare the requestId there). */
  find(requestId: string): EventPlace | null
  /** ClickHouse has everything up to `seq`. */
  forgetUpTo(partition: number, seq: number): void
  /** Drops a partition whose events another process looks after now. */
  drop(partition: number): void
  /** Partitions of which every event that is not in ClickHouse yet can be found here. */
  complete(): readonly number[]
  setCaughtUp(partition: number, caughtUp: boolean): void
  caughtUp(partition: number): boolean
  size(): number
}

interface RecordHeld {
  readonly partition: number
  readonly seq: number
  /** Of its items, in order. */
  readonly hashes: readonly number[]
}

interface Held {
  /** By seq. Maps keep insertion order: oldest first. */
  readonly records: Map<number, RecordHeld>
  caughtUp: boolean
  /** Events after the sink's position that no longer fit. */
  overflowedAt: number
}

export function createRecent(partitions: number, entriesMax: number): Recent {
  const places = new Map<number, RecordHeld>()
  const held: Held[] = Array.from({ length: partitions }, () => ({
    records: new Map(),
    caughtUp: false,
    overflowedAt: 0,
  }))

  function remove(record: RecordHeld): void {
    for (const hash of record.hashes) if (places.get(hash) === record) places.delete(hash)
    held[record.partition]?.records.delete(record.seq)
  }

  return {
    add(partition, seq, requestIds) {
      const mine = held[partition] as Held
      if (mine.records.has(seq)) return
      const record = { partition, seq, hashes: requestIds.map((id) => hash53(id)) }
      mine.records.set(seq, record)
      for (const hash of record.hashes) places.set(hash, record)
      while (places.size > entriesMax) {
        const oldest = mine.records.values().next().value as RecordHeld
        if (oldest === record) return
        remove(oldest)
        mine.overflowedAt = oldest.seq
      }
    },
    find(requestId) {
      const hash = hash53(requestId)
      const record = places.get(hash)
      if (record === undefined) return null
      return { partition: record.partition, seq: record.seq, index: record.hashes.indexOf(hash) }
    },
    forgetUpTo(partition, seq) {
      const mine = held[partition] as Held
      for (const record of mine.records.values()) {
        if (record.seq > seq) break
        remove(record)
      }
      if (seq >= mine.overflowedAt) mine.overflowedAt = 0
    },
    drop(partition) {
      const mine = held[partition] as Held
      for (const record of mine.records.values()) remove(record)
      mine.caughtUp = false
      mine.overflowedAt = 0
    },
    complete: () =>
      held.flatMap(({ caughtUp, overflowedAt }, partition) => (caughtUp && overflowedAt === 0 ? [partition] : [])),
    setCaughtUp(partition, caughtUp) {
      ;(held[partition] as Held).caughtUp = caughtUp
    },
    caughtUp: (partition) => (held[partition] as Held).caughtUp,
    size: () => places.size,
  }
}
