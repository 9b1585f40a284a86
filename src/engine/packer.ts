// Packs decided items into records of the events log.

import { type DecidedItem, type EventsRecord, encodeEventsRecord } from '../events/record.ts'
import { RECORD_BYTES_MAX } from '../log/log.ts'
import type { EventEffects } from '../records/effects.ts'
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

const effectsOf = ({ workspace, env, requestId, effects = [] }: DecidedItem): EventEffects[] =>
  effects.length === 0 ? [] : [{ workspace, env, requestId, effects }]

/** Gathers items into records below the log's limit whose source ranges join without a gap. */
export function createPacker(from: number, to: number) {
  const records: Uint8Array[] = []
  const placed: string[][] = []
  const effects: EventEffects[][] = []
  const counted: Float64Array[] = []
  let items: DecidedItem[] = []
  let rows: Uint8Array[] = []
  let bytes = 0
  let start = from

  function close(end: number): void {
    records.push(encodeEventsRecord({ from: start, to: end, items, rows: Buffer.concat(rows) }))
    placed.push(items.map((item) => item.requestId))
    effects.push(items.flatMap(effectsOf))
    counted.push(flattenRecord({ items }))
    start = end + 1
    items = []
    rows = []
    bytes = 0
  }

  return {
    /** `row`: with the newline behind it. */
    add(item: DecidedItem, row: Uint8Array): void {
      const effectBytes = ((item.effects?.length ?? 0) + (item.logs?.length ?? 0)) * EFFECT_BYTES
      const size = item.rowBytes + item.state.length + effectBytes + ITEM_OVERHEAD_BYTES
      if (items.length > 0 && bytes + size > RECORD_BYTES_GOAL) close(item.seq - 1)
      items.push(item)
      rows.push(row)
      bytes += size
    },
    /** Closes what came before, so that the order of records is the order of effects. */
    addCommand(
      seq: number,
      command: Pick<EventsRecord, 'erasure' | 'aliasing' | 'split' | 'annotation' | 'expiry'>,
    ): void {
      if (items.length > 0) close(seq - 1)
      records.push(encodeEventsRecord({ from: start, to: seq, items: [], ...command, rows: new Uint8Array(0) }))
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
