// What the events log has ever held, whether it was trimmed or lost since: the events and erasures of every decision.

import type { Env } from '../../src/domain/event.ts'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import {
  type DecidedErasure,
  type DecidedSplit,
  decodeEventsRecord,
  type EventsRecord,
  rowAt,
} from '../../src/events/record.ts'
import { PARTITIONS } from './deployment.ts'
import type { LogStore, StoredRecord } from './ports.ts'

export interface DecidedEvent {
  readonly partition: number
  readonly record: StoredRecord
  readonly item: DecidedItem
  /** The row as the sink passes it on. */
  readonly cells: () => readonly unknown[]
}

export interface Decided {
  readonly partition: number
  readonly record: StoredRecord
  readonly erasure: DecidedErasure
}

export interface DecidedSoFar {
  /** In the order of their partitions. */
  events(): readonly DecidedEvent[]
  eventsOf(requestId: string): readonly DecidedEvent[]
  /** Of one visitor, by `visitorOf`. */
  eventsBy(visitor: string): readonly DecidedEvent[]
  erasures(): readonly Decided[]
  splits(): readonly { readonly partition: number; readonly split: DecidedSplit }[]
  erasureOf(visitor: string): Decided | undefined
  /** Whose visit it is, in `visitorOf`'s words: the last one it was split off to. */
  ownerOf(item: Pick<DecidedItem, 'env' | 'requestId' | 'visitorId'>): string
}

export const visitorOf = ({ env, visitorId }: { readonly env: Env; readonly visitorId: string }): string =>
  `${env}/${visitorId}`

/** Reads what is new in the log at every question. */
export function openDecided(log: LogStore): DecidedSoFar {
  const read = new Array<number>(PARTITIONS).fill(0)
  const events: DecidedEvent[] = []
  const byId = new Map<string, DecidedEvent[]>()
  const byVisitor = new Map<string, DecidedEvent[]>()
  const erasures: Decided[] = []
  const splits: { readonly partition: number; readonly split: DecidedSplit }[] = []
  const firstErasures = new Map<string, Decided>()
  /** In the order of the log: the home of a record is that of all it was split into. */
  const splitsOf = new Map<string, DecidedSplit[]>()

  const push = (map: Map<string, DecidedEvent[]>, key: string, event: DecidedEvent) => {
    const those = map.get(key)
    if (those === undefined) map.set(key, [event])
    else those.push(event)
  }

  function add(partition: number, record: StoredRecord, { items, erasure, split, ...rest }: EventsRecord): void {
    if (split !== undefined) {
      splits.push({ partition, split })
      for (const id of split.requestIds) splitsOf.set(id, [...(splitsOf.get(id) ?? []), split])
    }
    items.forEach((item, index) => {
      let cells: readonly unknown[] | null = null
      const event = {
        partition,
        record,
        item,
        cells: () => {
          cells ??= rowAt({ ...rest, items }, index)
          return cells
        },
      }
      events.push(event)
      push(byId, item.requestId, event)
      push(byVisitor, visitorOf(item), event)
    })
    if (erasure === undefined) return
    const decided = { partition, record, erasure }
    erasures.push(decided)
    if (!firstErasures.has(visitorOf(erasure))) firstErasures.set(visitorOf(erasure), decided)
  }

  function catchUp(): void {
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const { archive } = log.side('events', partition)
      for (const record of archive.slice(read[partition])) add(partition, record, decodeEventsRecord(record.bytes))
      read[partition] = archive.length
    }
  }

  const current =
    <A extends unknown[], T>(answer: (...args: A) => T) =>
    (...args: A): T => {
      catchUp()
      return answer(...args)
    }
  return {
    events: current(() => events),
    eventsOf: current((requestId) => byId.get(requestId) ?? []),
    eventsBy: current((visitor) => byVisitor.get(visitor) ?? []),
    erasures: current(() => erasures),
    splits: current(() => splits),
    erasureOf: current((visitor) => firstErasures.get(visitor)),
    ownerOf: current(({ env, requestId, visitorId }) => {
      let owner = visitorId
      for (const split of splitsOf.get(requestId) ?? []) if (split.visitorId === owner) owner = split.to
      return visitorOf({ env, visitorId: owner })
    }),
  }
}
