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
const ITEM_OVERHEAD_BYTES = 600
/** Of a rule that matched: its id, and which way. */
const MATCH_BYTES = 32
/** Of a key of the index. */
const KEY_BYTES = 32
/** What a visit teaches, with the name of its system and browser. */
const LESSON_BYTES = 2_048
/** Of a side effect or a line of a rule beside its texts. */
const EFFECT_BYTES = 200
const UTF8_BYTES_PER_UNIT_MAX = 3
/** A longer row, of a thousand rules with the longest names say, is not stored: see `addRow`. */
const ROW_BYTES_MAX = 700_000

/** The records, and for each of them the requestIds and side effects of its items, and what they add to counters. */
export interface Packed {
  readonly records: readonly Uint8Array[]
  readonly placed: readonly (readonly string[])[]
  readonly effects: readonly (readonly EventEffects[])[]
  readonly counted: readonly Float64Array[]
}

const NO_ROWS = new Uint8Array(0)

function textBytesMax(all: readonly object[]): number {
  let bytes = 0
  for (const one of all) {
    bytes += EFFECT_BYTES
    for (const value of Object.values(one))
      if (typeof value === 'string') bytes += UTF8_BYTES_PER_UNIT_MAX * value.length
  }
  return bytes
}

/** No fewer than the item takes in a record. */
function bytesOf({ rowBytes, state, matches, indexed, left, lesson, effects, logs }: DecidedItem): number {
  const keys = indexed.length + (left === undefined ? 0 : left.length)
  let bytes = ITEM_OVERHEAD_BYTES + rowBytes + state.length + MATCH_BYTES * matches.length + KEY_BYTES * keys
  if (lesson !== undefined) bytes += LESSON_BYTES
  if (effects !== undefined) bytes += textBytesMax(effects)
  if (logs !== undefined) bytes += textBytesMax(logs)
  return bytes
}

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
    /** The bytes of the event's row, whose item is to be added next. Throws RangeError for one that no record has room for. */
    addRow(event: StoredEvent, partition: number, seq: number): number {
      // What is behind them is of a row that could not be written to its end.
      cutLines(rowsEnd)
      writeRow(event, partition, seq)
      const rowBytes = linesEnd() - rowsEnd
      if (rowBytes > ROW_BYTES_MAX)
        throw new RangeError(`the row of an event takes up to ${ROW_BYTES_MAX} bytes, not ${rowBytes}`)
      return rowBytes
    },
    add(item: DecidedItem): void {
      const size = bytesOf(item)
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
