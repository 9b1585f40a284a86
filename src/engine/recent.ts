// Where events that ClickHouse may not have yet are to be found: requestId → place in the events log. This is what lets a
// 200 be read back at once. Bounded; what it cannot know it says so instead of "no such event".

import { hash53 } from '../domain/ids.ts'

export interface Place {
  readonly partition: number
  readonly seq: number
  readonly index: number
}

export interface Recent {
  /** Items of one events record, in order. */
  add(partition: number, seq: number, requestIds: readonly string[]): void
  /** Places the id may be at (53-bit hashes may coincide: compare the requestId there). */
  find(requestId: string): Place | null
  /** ClickHouse has everything up to `seq`. */
  forgetUpTo(partition: number, seq: number): void
  /** Drops a partition whose events another process looks after now. */
  drop(partition: number): void
  /** False while some event that is not in ClickHouse yet might be missing here. */
  complete(): boolean
  setCaughtUp(partition: number, caughtUp: boolean): void
  /** Every partition has been taken over. */
  caughtUp(): boolean
  size(): number
}

const INDEX_MAX = 65_536

interface Held {
  /** seq → hashes of its items. Maps keep insertion order: oldest first. */
  readonly records: Map<number, readonly number[]>
  caughtUp: boolean
  /** Events after the sink's position that no longer fit. */
  overflowedAt: number
}

export function createRecent(partitions: number, entriesMax: number): Recent {
  const places = new Map<number, number>()
  const held: Held[] = Array.from({ length: partitions }, () => ({
    records: new Map(),
    caughtUp: false,
    overflowedAt: 0,
  }))
  // One double per place: the seq takes the high part, so it may grow to 2^37 / partitions.
  const encode = (partition: number, seq: number, index: number) => (seq * partitions + partition) * INDEX_MAX + index

  function remove(partition: number, seq: number, hashes: readonly number[]): void {
    hashes.forEach((hash, index) => {
      if (places.get(hash) === encode(partition, seq, index)) places.delete(hash)
    })
    held[partition]?.records.delete(seq)
  }

  return {
    add(partition, seq, requestIds) {
      const mine = held[partition] as Held
      if (mine.records.has(seq)) return
      const hashes = requestIds.map((id) => hash53(id))
      mine.records.set(seq, hashes)
      hashes.forEach((hash, index) => {
        places.set(hash, encode(partition, seq, index))
      })
      while (places.size > entriesMax) {
        const [oldest, its] = mine.records.entries().next().value as [number, readonly number[]]
        if (oldest === seq) return
        remove(partition, oldest, its)
        mine.overflowedAt = oldest
      }
    },
    find(requestId) {
      const code = places.get(hash53(requestId))
      if (code === undefined) return null
      const index = code % INDEX_MAX
      const rest = (code - index) / INDEX_MAX
      return { partition: rest % partitions, seq: Math.floor(rest / partitions), index }
    },
    forgetUpTo(partition, seq) {
      const mine = held[partition] as Held
      for (const [at, hashes] of mine.records) {
        if (at > seq) break
        remove(partition, at, hashes)
      }
      if (seq >= mine.overflowedAt) mine.overflowedAt = 0
    },
    drop(partition) {
      const mine = held[partition] as Held
      for (const [at, hashes] of mine.records) remove(partition, at, hashes)
      mine.caughtUp = false
      mine.overflowedAt = 0
    },
    complete: () => held.every((h) => h.caughtUp && h.overflowedAt === 0),
    setCaughtUp(partition, caughtUp) {
      ;(held[partition] as Held).caughtUp = caughtUp
    },
    caughtUp: () => held.every((h) => h.caughtUp),
    size: () => places.size,
  }
}
