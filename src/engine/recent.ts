// Where events that ClickHouse may not have yet are to be found: requestId → place in the events log. This is what lets a
// 200 be read back at once. Bounded; what it cannot know it says so instead of "no such event".

import { hash53 } from '../domain/ids.ts'
import { NO_ENTRY } from '../lib/hash-index.ts'
import { createHashQueue, type HashQueue } from '../lib/hash-queue.ts'
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

interface Held {
  /** An entry for each event, oldest first. */
  readonly events: HashQueue
  caughtUp: boolean
  /** Events after the sink's position that no longer fit. */
  overflowedAt: number
}

/** What the queue's columns hold: the record's seq, and which of its items the event is. */
const [SEQ, INDEX] = [0, 1] as const
const COLUMNS = 2

export function createRecent(partitions: number, entriesMax: number): Recent {
  const held: Held[] = Array.from({ length: partitions }, () => ({
    events: createHashQueue(COLUMNS),
    caughtUp: false,
    overflowedAt: 0,
  }))
  const sizeOf = (): number => held.reduce((sum, { events }) => sum + events.size(), 0)

  /** 0: there is no event. */
  const oldestOf = (events: HashQueue): number => (events.size() === 0 ? 0 : events.number(SEQ, events.slotAt(0)))
  const newestOf = (events: HashQueue): number =>
    events.size() === 0 ? 0 : events.number(SEQ, events.slotAt(events.size() - 1))

  function dropUpTo(events: HashQueue, seq: number): void {
    while (events.size() > 0 && oldestOf(events) <= seq) events.dropOldest()
  }

  return {
    add(partition, seq, requestIds) {
      const mine = held[partition] as Held
      const { events } = mine
      // Whoever adopts a record that it has added itself adds it once more.
      if (seq <= newestOf(events)) return
      for (const [index, requestId] of requestIds.entries()) {
        const slot = events.push(hash53(requestId))
        events.setNumber(SEQ, slot, seq)
        events.setNumber(INDEX, slot, index)
      }
      while (sizeOf() > entriesMax && oldestOf(events) < seq) {
        mine.overflowedAt = oldestOf(events)
        dropUpTo(events, mine.overflowedAt)
      }
    },
    find(requestId) {
      const hash = hash53(requestId)
      for (const [partition, { events }] of held.entries()) {
        const slot = events.find(hash)
        if (slot !== NO_ENTRY) return { partition, seq: events.number(SEQ, slot), index: events.number(INDEX, slot) }
      }
      return null
    },
    forgetUpTo(partition, seq) {
      const mine = held[partition] as Held
      dropUpTo(mine.events, seq)
      if (seq >= mine.overflowedAt) mine.overflowedAt = 0
    },
    drop(partition) {
      const mine = held[partition] as Held
      dropUpTo(mine.events, Number.POSITIVE_INFINITY)
      mine.caughtUp = false
      mine.overflowedAt = 0
    },
    complete: () =>
      held.flatMap(({ caughtUp, overflowedAt }, partition) => (caughtUp && overflowedAt === 0 ? [partition] : [])),
    setCaughtUp(partition, caughtUp) {
      ;(held[partition] as Held).caughtUp = caughtUp
    },
    caughtUp: (partition) => (held[partition] as Held).caughtUp,
    size: sizeOf,
  }
}
