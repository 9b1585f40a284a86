// Partitions that are sunk together: one insert of what all of them have, repeated exactly by whoever finds its mark.

import t, { type Test } from 'tap'
import type { ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { encodeEventsRecord } from '../../src/events/record.ts'
import { COLUMNS, toRow } from '../../src/events/row.ts'
import type { Kv } from '../../src/kv/kv.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { partitionScope, SINK_MARK, SINK_POSITION } from '../../src/records/partitions.ts'
import { openSink } from '../../src/sink/sink.ts'
import { rng } from '../helpers/rng.ts'
import { randomEvent } from '../helpers/stored-events.ts'
import { createDirectHost } from './host.ts'
import { BAD_ROW, bindClickHouse, createClickHouseStore } from './model-clickhouse.ts'
import { bindKv, createKvStore } from './model-kv.ts'
import { bindLog, createLogStore } from './ports.ts'

const PARTITIONS = [0, 1, 2]
const SEQ = COLUMNS.indexOf('log_seq')
const HOME = COLUMNS.indexOf('log_partition')

interface Insert {
  readonly table: string
  readonly token: string
  readonly lines: string
}

async function open(t: Test) {
  const host = createDirectHost()
  const log = bindLog(createLogStore({ partitions: PARTITIONS.length }), host, 'test')
  const kv = bindKv(createKvStore(), host)
  const store = createClickHouseStore()
  const bound = bindClickHouse(store, host)
  const inserts: Insert[] = []
  const quarantined: number[] = []
  const failed: number[] = []
  const random = rng(7)
  for (const partition of PARTITIONS)
    await kv.commit([{ scope: partitionScope(partition), guard: { source: SINK_POSITION, expect: null, next: 0 } }])

  /** One record with one event; `bad`: nobody can store it. */
  async function append(partition: number, bad = false): Promise<void> {
    const seq = (await log.last('events', partition)) + 1
    const event = { ...randomEvent(random, 'ws', seq), ...(bad ? { linkedId: BAD_ROW } : {}) }
    const rows = Buffer.from(`${toRow(event, partition, seq)}\n`)
    await log.append('events', partition, [encodeEventsRecord({ from: seq, to: seq, items: [], rows })])
  }

  /** Sinks `partitions` until each is at the end of its log, or `enough` says so. */
  async function sink(
    partitions: readonly number[],
    {
      insert = bound.insert,
      enough,
      ...ports
    }: { insert?: ClickHouse['insert']; kv?: Kv; enough?: () => boolean } = {},
  ): Promise<void> {
    const stop = new AbortController()
    const check = async () => {
      const ends = await Promise.all(
        partitions.map(
          async (p) => (await kv.position(partitionScope(p), SINK_POSITION)) === (await log.last('events', p)),
        ),
      )
      if (enough?.() ?? ends.every(Boolean)) stop.abort()
    }
    const clickhouse: ClickHouse = {
      ...bound,
      async insert(table, columns, lines, options) {
        inserts.push({ table, token: options.token, lines: Buffer.from(lines).toString() })
        await insert(table, columns, lines, options)
      },
    }
    const hold = openSink({
      log,
      kv: ports.kv ?? kv,
      clickhouse,
      clock: host.clock,
      deployment: 'd',
      flushMsMax: 20,
      batchRowsMax: 100,
      report: {
        inserted: () => undefined,
        sunk: () => void check(),
        quarantined: (partition) => quarantined.push(partition),
        failed(partition) {
          failed.push(partition)
          void check()
        },
      },
    })
    await Promise.all(partitions.map((partition) => hold(partition, stop.signal)))
  }

  const stored = () =>
    (store.rows.get('events') ?? [])
      .map(({ cells }) => `${cells[HOME]}/${cells[SEQ]}`)
      .sort((a, b) => a.localeCompare(b))
  const mark = async (partition: number) => (await kv.get(partitionScope(partition), [SINK_MARK]))[0]?.value
  t.teardown(() => log.close())
  return { kv, inserts, quarantined, failed, append, sink, stored, mark }
}

t.test('what several partitions have goes in one insert, and no mark is left', async (t) => {
  const { append, sink, stored, inserts, mark } = await open(t)
  for (const partition of [0, 1, 1, 2]) await append(partition)
  await sink(PARTITIONS)
  t.same(stored(), ['0/1', '1/1', '1/2', '2/1'])
  t.equal(inserts.length, 1)
  t.match(inserts[0]?.token, /^d\/group\/[0-9a-f]{64}$/)
  for (const partition of PARTITIONS) t.equal(await mark(partition), undefined)
})

t.test('a group whose insert failed is repeated whole by a sink of one of its partitions', async (t) => {
  const { append, sink, stored, inserts, failed } = await open(t)
  for (const partition of PARTITIONS) await append(partition)
  const fails = async () => {
    throw new Unavailable('away')
  }
  await sink(PARTITIONS, { insert: fails, enough: () => failed.length === 3 })
  t.same(failed, PARTITIONS, 'each is told of')
  t.same(stored(), [])
  for (const partition of PARTITIONS) await append(partition)
  await sink([1])
  t.same(stored(), ['0/1', '1/1', '1/2', '2/1'], 'what came since is sunk by those who hold it')
  t.same(inserts[1], inserts[0], 'the same lines under the same token')
  await sink(PARTITIONS)
  t.same(stored(), ['0/1', '0/2', '1/1', '1/2', '2/1', '2/2'])
})

t.test('rows are there once when the kv has forgotten the newest marks and positions', async (t) => {
  const { append, sink, stored, kv } = await open(t)
  for (const partition of [0, 1, 1, 2]) await append(partition)
  await sink(PARTITIONS)
  for (const [partition, position] of [1, 2, 1].entries()) {
    const guard = { source: SINK_POSITION, expect: position, next: 0 }
    t.same(await kv.commit([{ scope: partitionScope(partition), guard }]), [true])
  }
  // Other ranges than before, under other tokens.
  for (const partition of PARTITIONS) await append(partition)
  await sink(PARTITIONS)
  t.same(stored(), ['0/1', '0/2', '1/1', '1/2', '1/3', '2/1', '2/2'])
})

t.test('what the build before marked is inserted as it would have, and the others meanwhile', async (t) => {
  const { append, sink, stored, inserts, kv } = await open(t)
  for (const partition of [0, 1, 1, 1, 2]) await append(partition)
  const value = { after: 0, upTo: 2 }
  await kv.commit([{ scope: partitionScope(1), put: [{ key: SINK_MARK, value }] }])
  await sink(PARTITIONS)
  t.equal(inserts[0]?.token, 'd/1/0-2')
  t.equal(inserts[0]?.lines.trim().split('\n').length, 2)
  t.same(stored(), ['0/1', '1/1', '1/2', '1/3', '2/1'])
})

t.test('a bad row goes to the quarantine of its partition, and nothing else does', async (t) => {
  const { append, sink, stored, quarantined } = await open(t)
  for (const partition of PARTITIONS) await append(partition)
  await append(1, true)
  await append(1)
  await sink(PARTITIONS)
  t.same(stored(), ['0/1', '1/1', '1/3', '2/1'])
  t.same(quarantined, [1])
})

t.test('where partitions cannot be marked together each is inserted by itself', async (t) => {
  const { append, sink, stored, inserts, kv } = await open(t)
  const { commitTogether: _, ...apart } = kv
  for (const partition of PARTITIONS) await append(partition)
  await sink(PARTITIONS, { kv: apart })
  t.same(stored(), ['0/1', '1/1', '2/1'])
  t.same(inserts.map(({ token }) => token).sort(), ['d/0/0-1', 'd/1/0-1', 'd/2/0-1'])
})

t.test('a partition without a position does not hold up the others', async (t) => {
  const { append, sink, stored, failed, kv } = await open(t)
  const blind: Kv = {
    ...kv,
    position: async (scope, source) => (scope === partitionScope(1) ? null : kv.position(scope, source)),
  }
  for (const partition of PARTITIONS) await append(partition)
  await sink(PARTITIONS, { kv: blind, enough: () => stored().length === 2 && failed.length > 0 })
  t.same(stored(), ['0/1', '2/1'])
  t.ok(failed.every((partition) => partition === 1))
})
