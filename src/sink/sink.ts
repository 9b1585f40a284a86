// The sink: decided events → ClickHouse, in contiguous ranges, each exactly once (architecture §4, R7). The range is marked
// before the insert and the mark is what a successor repeats; the token makes the repetition harmless, and rows that are missing in spite
// of it are looked for.

import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { annotationOf, type DecidedErasure, erasureOf, rowsOf, splitOf } from '../events/record.ts'
import { COLUMNS, EVENTS_TABLE } from '../events/row.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Conflict } from '../lib/failures.ts'
import type { Log, LogRecord, Seq } from '../log/log.ts'
import { annotatedKeys } from '../records/annotations.ts'
import { executedPuts } from '../records/erasure-progress.ts'
import { executedKeys } from '../records/erasures.ts'
import { partitionScope, SINK_MARK, SINK_POSITION, SINK_REPEATED } from '../records/partitions.ts'
import { annotateRows } from './annotate.ts'
import { eraseRows } from './erase.ts'
import { type InsertContext, insertRows } from './insert.ts'
import { insertLost, insertLostRow, isRefused } from './lost.ts'
import { moveRows } from './move.ts'

export interface SinkNeeds {
  readonly log: Pick<Log, 'read' | 'last'>
  readonly kv: Pick<Kv, 'get' | 'position' | 'commit'>
  readonly clickhouse: Pick<ClickHouse, 'insert' | 'query' | 'patch' | 'tokenFirst'>
  readonly clock: Clock
  /** Makes insert tokens of this deployment unlike those of any other on the same ClickHouse. */
  readonly deployment: string
  /** How long events are gathered, milliseconds, before a batch below `batchRowsMax` is inserted. */
  readonly flushMsMax: number
  readonly batchRowsMax: number
  readonly report: SinkReport
}

export interface SinkReport {
  /** Everything up to `seq` of `events/partition` is in ClickHouse. */
  sunk(partition: number, seq: Seq, rows: number): void
  quarantined(partition: number, reason: string): void
  failed(partition: number, error: unknown): void
}

interface Mark {
  readonly after: Seq
  readonly upTo: Seq
}

const READ = { recordsMax: 1_024, bytesMax: 8_388_608 }
const BATCH_BYTES_MAX = 33_554_432
const RETRY_MS = 500
/** A mark read longer ago than this is read again before the insert: its token may have left ClickHouse's window since. */
const MARK_AGE_MS_MAX = 30_000

/** Sinks a partition until `signal` aborts; failures are reported and tried again. */
export async function runSink(needs: SinkNeeds, partition: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await sinkNext(needs, partition, signal)
    } catch (error) {
      if (!(error instanceof Conflict)) needs.report.failed(partition, error)
      await needs.clock.sleep(RETRY_MS, signal)
    }
  }
}

/** One range: the marked one if there is a mark, else a new one. */
async function sinkNext(needs: SinkNeeds, partition: number, signal: AbortSignal): Promise<void> {
  const { kv, clickhouse, clock, report } = needs
  const scope = partitionScope(partition)
  const readAt = clock.monotonic()
  const position = await kv.position(scope, SINK_POSITION)
  if (position === null) throw new Error(`the sink of partition ${partition} has no position in the kv: run rebuild`)
  const [marked, repeated] = await kv.get<Mark>(scope, [SINK_MARK, SINK_REPEATED])
  const pending = marked !== null && marked !== undefined && marked.value.after === position ? marked.value : null
  const records =
    pending !== null ? await readRange(needs.log, partition, pending) : await gather(needs, partition, position, signal)
  const upTo = pending?.upTo ?? records.at(-1)?.seq
  if (upTo === undefined) return
  const mark = { after: position, upTo }
  const isRepeated = pending !== null && clickhouse.tokenFirst
  // A mark that came and went since `position` was read leaves no trace in a check of it: the position must still be the same.
  const unmoved = { source: SINK_POSITION, expect: position, next: position }
  if (pending === null) {
    const check = [[SINK_MARK, marked?.version ?? null]] as const
    const [won] = await kv.commit([{ scope, guard: unmoved, check, put: [{ key: SINK_MARK, value: mark }] }])
    if (won !== true) throw new Conflict('another sink marked first')
  } else if (clock.monotonic() - readAt > MARK_AGE_MS_MAX) {
    throw new Conflict('the mark is too old to be trusted')
  } else if (isRepeated) {
    // Who marked the range may not have inserted it yet, and would not look for the rows that a failure of ours leaves out.
    const [noted] = await kv.commit([{ scope, guard: unmoved, put: [{ key: SINK_REPEATED, value: mark }] }])
    if (noted !== true) throw new Conflict('another sink finished first')
  }

  const token = `${needs.deployment}/${partition}/${mark.after}-${mark.upTo}`
  const lines = concat(records.map((record) => rowsOf(record.bytes)))
  const rows = await insertRows(clickhouse, EVENTS_TABLE, COLUMNS, lines, token, {
    at: clock.now(),
    partition,
    onQuarantine: (reason) => report.quarantined(partition, reason),
    ...(isRepeated ? lookingFor(clickhouse, partition) : {}),
  })
  const erasures: DecidedErasure[] = []
  for (const { bytes } of records) {
    const erasure = erasureOf(bytes)
    const split = erasure === null ? splitOf(bytes) : null
    if (erasure !== null) {
      await eraseRows(clickhouse, erasure, partition, needs.deployment, isRepeated)
      erasures.push(erasure)
    }
    if (split !== null) await moveRows(clickhouse, split)
  }
  const annotations = records.flatMap(({ bytes }) => annotationOf(bytes) ?? [])
  await annotateRows(clickhouse, annotations)
  const guard = { source: SINK_POSITION, expect: mark.after, next: mark.upTo }
  const drop = [SINK_MARK, ...executedKeys(erasures), ...annotatedKeys(annotations)]
  const put = executedPuts(erasures, { at: clock.now(), seq: mark.upTo })
  // R7: only who looked for the rows can tell that they are there once somebody else has inserted under the same token.
  const check = isRepeated ? [] : ([[SINK_REPEATED, repeated?.version ?? null]] as const)
  const [done] = await kv.commit([{ scope, guard, check, put, drop }])
  if (done !== true) throw new Conflict('another sink finished first')
  report.sunk(partition, mark.upTo, rows)
}

/** What a repetition does about rows that a crash left out. */
const lookingFor = (
  clickhouse: SinkNeeds['clickhouse'],
  partition: number,
): Pick<InsertContext, 'onInserted' | 'onRefused'> => ({
  onInserted: (some, token) => insertLost(clickhouse, some, token),
  onRefused: (row, refused) => insertLostRow(clickhouse, row, () => isRefused(clickhouse, partition, refused)),
})

/** Records behind `after` until there are enough rows or the oldest has waited long enough. */
async function gather(needs: SinkNeeds, partition: number, after: Seq, signal: AbortSignal): Promise<LogRecord[]> {
  const { log, clock, flushMsMax, batchRowsMax } = needs
  const records: LogRecord[] = []
  let rows = 0
  let bytes = 0
  let flushAt = 0
  for (;;) {
    const from = records.at(-1)?.seq ?? after
    const waitMsMax = records.length === 0 ? flushMsMax : Math.max(0, Math.ceil(flushAt - clock.monotonic()))
    const more = await log.read('events', partition, from, { ...READ, waitMsMax }, signal)
    if (records.length === 0 && more.length > 0) flushAt = clock.monotonic() + flushMsMax
    for (const record of more) {
      records.push(record)
      bytes += record.bytes.length
      rows += countLines(rowsOf(record.bytes))
    }
    const full = rows >= batchRowsMax || bytes >= BATCH_BYTES_MAX
    if (full || records.length === 0 || clock.monotonic() >= flushAt || signal.aborted) return records
    // Records trickle in one by one: let them gather instead of waking for each.
    if (more.length > 0) await clock.sleep(Math.min(50, Math.max(0, flushAt - clock.monotonic())), signal)
  }
}

/** Exactly the records of a mark. */
async function readRange(
  log: Pick<Log, 'read' | 'last'>,
  partition: number,
  { after, upTo }: Mark,
): Promise<LogRecord[]> {
  const records: LogRecord[] = []
  let from = after
  while (from < upTo) {
    const more = await log.read('events', partition, from, { ...READ, waitMsMax: 0 })
    if (more.length === 0) {
      if ((await log.last('events', partition)) < upTo) {
        throw new Error(`events/${partition} ends before the marked ${upTo}`)
      }
      // What is not there although later records are was lost with the log: nobody can insert it any more.
      return records
    }
    for (const record of more) if (record.seq <= upTo) records.push(record)
    from = more.at(-1)?.seq ?? upTo
  }
  return records
}

function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts)
}
