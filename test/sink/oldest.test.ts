// What is told of events that ClickHouse does not have yet.

import t from 'tap'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import { encodeEventsRecord } from '../../src/events/record.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { openMetrics } from '../../src/lib/metrics.ts'
import type { LogRecord, Seq } from '../../src/log/log.ts'
import { openSinks } from '../../src/sink/role.ts'

const LATE_MS = 90_000
/** As JetStream numbers records: each append begins at a multiple. */
const [SUNK, NEXT] = [3_075, 4_097]

const decided = (acceptedAt: number) => {
  const item: DecidedItem = {
    seq: 1,
    requestId: 'req_01J00000000000000000000000',
    workspace: 'ws_1',
    env: 'live',
    visitorId: 'pv_00000000000000000000',
    state: new Uint8Array(0),
    indexed: [],
    matches: [],
    nonceHash: 0,
    bodyHash: 0,
    acceptedAt,
    keyKind: 'public',
    replyTo: '',
    rowBytes: 0,
  }
  return encodeEventsRecord({ from: 1, to: 1, items: [item], rows: new Uint8Array(0) })
}

t.test('the oldest is as old as it is, whatever the log’s next record is called, also behind orders', async (t) => {
  const order = encodeEventsRecord({ from: 1, to: 1, items: [], rows: new Uint8Array(0) })
  const records: readonly LogRecord[] = [order, decided(clock.now() - LATE_MS), decided(clock.now())].map(
    (bytes, i) => ({ seq: NEXT + i, bytes }) as LogRecord,
  )
  let sunk: Seq = SUNK
  const log = {
    read: async (_topic: string, _partition: number, after: Seq) => records.filter(({ seq }) => seq > after),
    at: async (_topic: string, _partition: number, seq: Seq) => records.find((one) => one.seq === seq) ?? null,
    last: async () => records.at(-1)?.seq ?? 0,
  }
  const kv = { position: async () => sunk, get: () => Promise.reject(new Unavailable('the kv')) }
  const sinks = openSinks({
    log,
    kv,
    clickhouse: {},
    clock,
    logger: { warn() {}, error() {} },
    metrics: openMetrics(null),
    partitions: 1,
    deployment: 'd',
    flushMsMax: 10,
    batchRowsMax: 10,
    onSunk() {},
  } as never)
  t.equal(await sinks.oldestUnsunkMs(), 0, 'of a partition that is not held nothing is told')
  const leaving = new AbortController()
  const held = sinks.hold(0, leaving.signal)
  const oldestMs = await sinks.oldestUnsunkMs()
  t.ok(oldestMs >= LATE_MS && oldestMs < 2 * LATE_MS, `${oldestMs}`)
  sunk = NEXT + records.length - 1
  t.equal(await sinks.oldestUnsunkMs(), 0, 'nothing is missing any more')
  leaving.abort()
  await held
})
