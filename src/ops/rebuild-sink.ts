// How far the sink of a partition had come when its marks were lost: read off the rows that ClickHouse has. A range it was in
// the middle of is finished here, row by row, because inserting it once more would double what is there already.

import { createHash } from 'node:crypto'
import type { ClickHouse } from '../clickhouse/clickhouse.ts'
import { requestTime } from '../domain/ids.ts'
import type { DecidedItem } from '../events/packed-items.ts'
import { annotationOf, decodeEventsRecord, type EventsRecord, erasureOf, splitOf } from '../events/record.ts'
import { COLUMNS, EVENTS_TABLE } from '../events/row.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log, LogRecord, Seq } from '../log/log.ts'
import { annotateRows } from '../sink/annotate.ts'
import { ERASURES_TABLE, eraseRows } from '../sink/erase.ts'
import { insertRows, QUARANTINE_TABLE } from '../sink/insert.ts'
import { moveRows } from '../sink/move.ts'
import { batchesOf, SCAN } from './rebuild-read.ts'

export interface RebuildSinkNeeds {
  readonly log: Pick<Log, 'read'>
  readonly clickhouse: ClickHouse
  readonly clock: Pick<Clock, 'now'>
  readonly deployment: string
}

export interface Sunk {
  /** Everything up to here is in ClickHouse. */
  readonly position: Seq
  /** Rows that had to be inserted to get there. */
  readonly inserted: number
  /** Rows found more than once: none, unless an insert of the lost sink came after all. */
  readonly doubled: number
}

/** The newest identification of this partition's log that ClickHouse has an event of; 0 when there is none. */
export async function newestSunk(clickhouse: Pick<ClickHouse, 'query'>, partition: number): Promise<number> {
  const [rows] = await clickhouse.query<{ newest: number }>(
    `SELECT max(log_seq) AS newest FROM ${EVENTS_TABLE} WHERE log_partition = {partition:UInt16}`,
    { partition },
    SCAN,
  )
  const [refused] = await clickhouse.query<{ newest: number }>(
    `SELECT max(${QUARANTINED_SEQ}) AS newest FROM ${QUARANTINE_TABLE} WHERE ${QUARANTINED}`,
    { partition },
    SCAN,
  )
  return Math.max(rows?.newest ?? 0, refused?.newest ?? 0)
}

/** The last value of a refused line. */
const QUARANTINED_SEQ = 'JSONExtractUInt(raw, -1)'
const QUARANTINED = `source = '${EVENTS_TABLE}' AND log_partition = {partition:UInt16}`

/** `after`: the place before the oldest record of `events/partition`, `upTo` that of its newest. Twice equals once. */
export async function rebuildSink(needs: RebuildSinkNeeds, partition: number, after: Seq, upTo: Seq): Promise<Sunk> {
  const { log, clickhouse } = needs
  const erased = await readErased(needs, partition, after, upTo)
  const newest = await newestSunk(clickhouse, partition)
  let complete = after
  let touched = after
  let isWhole = true
  let doubled = 0
  scan: for await (const batch of batchesOf(log, 'events', partition, after, upTo)) {
    const records = batch.map(({ seq, bytes }) => ({ seq, ...decodeEventsRecord(bytes) }))
    const present = await readPresent(clickhouse, partition, records, newest)
    doubled += present.doubled
    for (const record of records) {
      if (record.from > newest && record.seq > erased.executedUpTo) break scan
      const missing = missingOf(record, present.seqs, erased)
      const isExecuted = record.erasure === undefined || erased.executed.has(record.erasure.erasureId)
      const hasTraces = missing.length < record.items.length || (record.erasure !== undefined && isExecuted)
      isWhole &&= missing.length === 0 && isExecuted
      if (isWhole) complete = record.seq
      if (isWhole || hasTraces) touched = record.seq
    }
  }
  let inserted = 0
  // Once more, whoever did it before: an event that was moved on since stays where it is.
  for await (const batch of batchesOf(log, 'events', partition, after, complete)) {
    for (const split of batch.flatMap(({ bytes }) => splitOf(bytes) ?? [])) await moveRows(clickhouse, split)
  }
  for await (const batch of batchesOf(log, 'events', partition, complete, touched)) {
    inserted += await finish(needs, partition, batch, erased, newest)
  }
  // Which of these were taken in leaves no trace; all of them once more, in their order, comes to the same.
  for await (const batch of batchesOf(log, 'events', partition, after, touched)) {
    await annotateRows(
      clickhouse,
      batch.flatMap(({ bytes }) => annotationOf(bytes) ?? []),
    )
  }
  return { position: touched, inserted, doubled }
}

interface Erased {
  /** Ids of erasures that ClickHouse has executed. */
  readonly executed: ReadonlySet<string>
  /** `<workspace>/<env>/<visitorId>` of those, whose rows are rightly missing. */
  readonly visitors: ReadonlySet<string>
  /** Whose events are since a split, by requestId. */
  readonly owners: ReadonlyMap<string, string>
  readonly executedUpTo: Seq
}

async function readErased({ log, clickhouse }: RebuildSinkNeeds, partition: number, after: Seq, upTo: Seq) {
  const executed = new Set<string>()
  const visitors = new Set<string>()
  const owners = new Map<string, string>()
  let executedUpTo = 0
  for await (const batch of batchesOf(log, 'events', partition, after, upTo)) {
    for (const { bytes } of batch) {
      const split = splitOf(bytes)
      for (const requestId of split?.requestIds ?? []) owners.set(requestId, split?.to ?? '')
    }
    const found = batch.flatMap(({ seq, bytes }) => {
      const erasure = erasureOf(bytes)
      return erasure === null ? [] : [{ seq, erasure }]
    })
    if (found.length === 0) continue
    const rows = await clickhouse.query<{ erasure_id: string }>(
      `SELECT DISTINCT erasure_id FROM ${ERASURES_TABLE} WHERE erasure_id IN {ids:Array(String)}`,
      { ids: found.map(({ erasure }) => erasure.erasureId) },
      SCAN,
    )
    for (const { erasure_id } of rows) executed.add(erasure_id)
    for (const { seq, erasure } of found) {
      if (!executed.has(erasure.erasureId)) continue
      visitors.add(`${erasure.workspace}/${erasure.env}/${erasure.visitorId}`)
      executedUpTo = seq
    }
  }
  return { executed, visitors, owners, executedUpTo } satisfies Erased
}

/** Which identifications of these records have a row, or one in quarantine. */
async function readPresent(
  clickhouse: Pick<ClickHouse, 'query'>,
  partition: number,
  records: readonly EventsRecord[],
  newest: number,
): Promise<{ readonly seqs: ReadonlySet<number>; readonly doubled: number }> {
  const items = records.flatMap((record) => record.items)
  const seqs = items.map(({ seq }) => seq)
  const times = items.map(({ requestId }) => requestTime(requestId) ?? 0)
  const least = (values: readonly number[]) => values.reduce((a, b) => Math.min(a, b), Number.MAX_SAFE_INTEGER)
  const most = (values: readonly number[]) => values.reduce((a, b) => Math.max(a, b), 0)
  if (items.length === 0 || least(seqs) > newest) return { seqs: new Set(), doubled: 0 }
  const range = { partition, low: least(seqs), high: most(seqs) }
  const rows = await clickhouse.query<{ seq: number; times: number }>(
    `SELECT log_seq AS seq, count() AS times FROM ${EVENTS_TABLE}
     WHERE log_partition = {partition:UInt16} AND log_seq BETWEEN {low:UInt64} AND {high:UInt64}
       AND ts BETWEEN fromUnixTimestamp64Milli({oldest:Int64}) AND fromUnixTimestamp64Milli({newest:Int64})
     GROUP BY log_seq`,
    { ...range, oldest: least(times), newest: most(times) },
    SCAN,
  )
  const refused = await clickhouse.query<{ seq: number }>(
    `SELECT ${QUARANTINED_SEQ} AS seq FROM ${QUARANTINE_TABLE}
     WHERE ${QUARANTINED} AND seq BETWEEN {low:UInt64} AND {high:UInt64}`,
    range,
    SCAN,
  )
  return {
    seqs: new Set([...rows, ...refused].map(({ seq }) => seq)),
    doubled: rows.reduce((sum, row) => sum + row.times - 1, 0),
  }
}

const missingOf = (record: EventsRecord, present: ReadonlySet<number>, { visitors, owners }: Erased): DecidedItem[] =>
  record.items.filter(
    ({ seq, workspace, env, visitorId, requestId }) =>
      !present.has(seq) && !visitors.has(`${workspace}/${env}/${owners.get(requestId) ?? visitorId}`),
  )

/** Does what the sink had not done yet of these records, in their order. Returns the rows inserted. */
async function finish(
  { clickhouse, clock, deployment }: RebuildSinkNeeds,
  partition: number,
  batch: readonly LogRecord[],
  erased: Erased,
  newest: number,
): Promise<number> {
  const records = batch.map(({ seq, bytes }) => ({ seq, ...decodeEventsRecord(bytes) }))
  const { seqs: present } = await readPresent(clickhouse, partition, records, newest)
  let inserted = 0
  for (const record of records) {
    const missing = new Set(missingOf(record, present, erased))
    const lines = linesOf(record, missing)
    // Another attempt may find other rows missing, and those must not count as the same insert.
    const digest = createHash('sha256').update(lines).digest('hex').slice(0, 16)
    inserted += await insertRows(
      clickhouse,
      EVENTS_TABLE,
      COLUMNS,
      lines,
      `${deployment}/${partition}/rebuild/${record.seq}/${digest}`,
      { at: clock.now(), partition, onQuarantine: () => undefined },
    )
    const { erasure } = record
    if (erasure !== undefined && !erased.executed.has(erasure.erasureId)) {
      await eraseRows(clickhouse, erasure, partition, deployment)
    }
    if (record.split !== undefined) await moveRows(clickhouse, record.split)
  }
  return inserted
}

function linesOf({ items, rows }: EventsRecord, wanted: ReadonlySet<DecidedItem>): Uint8Array {
  const lines: Uint8Array[] = []
  let at = 0
  for (const item of items) {
    if (wanted.has(item)) lines.push(rows.subarray(at, at + item.rowBytes))
    at += item.rowBytes
  }
  return Buffer.concat(lines)
}
