// Packs decided items into records of the events log.

import type { StoredEvent } from '../domain/event.ts'
import type { DecidedItem } from '../events/packed-items.ts'
import { type EventsRecord, encodeEventsRecord } from '../events/record.ts'
import { writeRow } from '../events/write-row.ts'
import { clearLines, cutLines, linesBetween, linesEnd } from '../lib/json-lines.ts'
import { RECORD_BYTES_MAX } from '../log/log.ts'
import { type EventEffects, eventEffectsOf } from '../records/effects.ts'
import { flattenRecord } from './velocity/counted.ts'

/** Room for a header beside rows and states. */
const RECORD_BYTES_GOAL = RECORD_BYTES_MAX - 150_000
const ITEM_OVERHEAD_BYTES = 400
/** About the most a side effect takes: a rendered message and an address. */
const EFFECT_BYTES = 3_300

/** The records, and for each of them the requestIds and side effects of its items, and what they add to counters. */
export interface Packed {
  readonly records: readonly Uint8Array[]
  readonly placed: readonly (readonly string[])[]
  readonly effects: readonly (readonly EventEffects[])[]
  readonly counted: readonly Float64Array[]
}

const NO_ROWS = new Uint8Array(0)

export type Packer = ReturnType<typeof createPacker>

/**
 * Gathers items into records below the log's limit whose source ranges join without a gap. Their rows lie in the buffer of the
 * thread: one batch is packed to its end before the next begins.
 */
export function createPacker(from: number, to: number) {
  const records: Uint8Array[] = []
  const placed: string[][] = []
  const effects: EventEffects[][] = []
  const counted: Float64Array[] = []
  let items: DecidedItem[] = []
  /** Where the rows of the items begin and end, and then the row of an item that is still to be added. */
  let rowsFrom = 0
  let rowsEnd = 0
  let bytes = 0
  let start = from
  clearLines()

  function close(end: number): void {
    records.push(encodeEventsRecord({ from: start, to: end, items, rows: linesBetween(rowsFrom, rowsEnd) }))
    placed.push(items.map((item) => item.requestId))
    effects.push(eventEffectsOf(items))
    counted.push(flattenRecord({ items }))
    start = end + 1
    items = []
    rowsFrom = rowsEnd
    bytes = 0
  }

  return {
    /** The bytes of the event's row, whose item is to be added next. */
    addRow(event: StoredEvent, partition: number, seq: number): number {
      // What is behind them is of a row that could not be written to its end.
      cutLines(rowsEnd)
      writeRow(event, partition, seq)
      return linesEnd() - rowsEnd
    },
    add(item: DecidedItem): void {
      const effectBytes = ((item.effects?.length ?? 0) + (item.logs?.length ?? 0)) * EFFECT_BYTES
      const size = item.rowBytes + item.state.length + effectBytes + ITEM_OVERHEAD_BYTES
      if (items.length > 0 && bytes + size > RECORD_BYTES_GOAL) close(item.seq - 1)
      items.push(item)
      rowsEnd += item.rowBytes
      bytes += size
    },
    /** Closes what came before, so that the order of records is the order of effects. */
    addCommand(
      seq: number,
      command: Pick<EventsRecord, 'erasure' | 'aliasing' | 'split' | 'annotation' | 'expiry'>,
    ): void {
      if (items.length > 0) close(seq - 1)
      records.push(encodeEventsRecord({ from: start, to: seq, items: [], ...command, rows: NO_ROWS }))
      placed.push([])
      effects.push([])
      counted.push(flattenRecord({ items: [], ...command }))
      start = seq + 1
    },
    finish(): Packed {
      if (start <= to) close(to)
      return { records, placed, effects, counted }
    },
  }
}
