// The log, the bus and ClickHouse as small as they can be, with exactly the semantics their port files promise. Stores are
// plain data that outlives every process; `bind…` gives one process its view of a store through its host.

import type { Bus } from '../../src/bus/bus.ts'
import { BadRow, type ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { Conflict, Unavailable } from '../../src/lib/failures.ts'
import {
  APPEND_RECORDS_MAX,
  type Log,
  type LogRecord,
  RECORD_BYTES_MAX,
  type ReadLimits,
  type Seq,
  TOPICS,
  type Topic,
} from '../../src/log/log.ts'
import { createWaiter, type Host, type Waiter } from './host.ts'

export interface StoredRecord extends LogRecord {
  /** Virtual milliseconds of the append, and who asked for it. */
  readonly at: number
  readonly by: string
}

interface Side {
  records: StoredRecord[]
  /** All there ever was, for the checks. */
  readonly archive: StoredRecord[]
  last: Seq
  waiters: Waiter[]
}

export interface LogStore {
  side(topic: Topic, partition: number): Side
  /** Sees every trim before it happens. */
  onTrim: (topic: Topic, partition: number, gone: readonly StoredRecord[]) => void
  bytes: number
}

export function createLogStore({ partitions }: { readonly partitions: number }): LogStore {
  const sides = new Map<string, Side>()
  for (const topic of TOPICS) {
    const count = topic === 'identifications' || topic === 'events' ? partitions : 1
    for (let p = 0; p < count; p++) sides.set(`${topic}/${p}`, { records: [], archive: [], last: 0, waiters: [] })
  }
  return {
    side(topic, partition) {
      const side = sides.get(`${topic}/${partition}`)
      if (side === undefined) throw new RangeError(`no partition ${topic}/${partition}`)
      return side
    },
    onTrim: () => undefined,
    bytes: 0,
  }
}

function firstAfter(records: readonly LogRecord[], after: Seq): number {
  let low = 0
  let high = records.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((records[middle] as LogRecord).seq <= after) low = middle + 1
    else high = middle
  }
  return low
}

function take(side: Side, after: Seq, { recordsMax, bytesMax }: ReadLimits): LogRecord[] {
  const found: LogRecord[] = []
  let bytes = 0
  for (let i = firstAfter(side.records, after); i < side.records.length && found.length < recordsMax; i++) {
    const record = side.records[i] as LogRecord
    bytes += record.bytes.length
    if (found.length > 0 && bytes > bytesMax) break
    found.push(record)
  }
  return found
}

function checkRecords(records: readonly Uint8Array[]): void {
  if (records.length < 1 || records.length > APPEND_RECORDS_MAX) throw new RangeError('too few or too many records')
  for (const { length } of records) if (length > RECORD_BYTES_MAX) throw new RangeError('a record is too long')
}

/** `gap` says how far a seq is from the one before it, at least 1. */
export function bindLog(store: LogStore, host: Host, by: string, gap: () => number = () => 1): Log {
  let closed = false
  const waiting = new Set<Waiter>()
  const find = (topic: Topic, partition: number): Side => {
    if (closed) throw new Unavailable('the log is closed')
    return store.side(topic, partition)
  }
  return {
    async append(topic, partition, records, opts = {}) {
      const side = find(topic, partition)
      checkRecords(records)
      const copies = records.map((bytes) => Uint8Array.from(bytes))
      const { expectLast } = opts
      const effect = () => {
        if (expectLast !== undefined && expectLast !== side.last)
          throw new Conflict(`${topic}/${partition} is at ${side.last}, not at ${expectLast}`)
        for (const bytes of copies) {
          side.last += gap()
          store.bytes += bytes.length
          const record = { seq: side.last, bytes, at: host.clock.monotonic(), by }
          side.records.push(record)
          side.archive.push(record)
        }
        for (const waiter of side.waiters.splice(0)) waiter.wake()
        return side.last
      }
      return host.call(`append ${topic}/${partition}`, effect, { twice: expectLast !== undefined, full: true })
    },
    async read(topic, partition, after, limits, signal) {
      const side = find(topic, partition)
      const { recordsMax, bytesMax, waitMsMax } = limits
      if (!Number.isInteger(after) || after < 0 || !(recordsMax >= 1 && bytesMax >= 1 && waitMsMax >= 0))
        throw new RangeError('no such read')
      const deadline = host.clock.monotonic() + waitMsMax
      while (!signal?.aborted && !closed) {
        let waiter: Waiter | null = null
        const found = await host.call(`read ${topic}/${partition}`, () => {
          const records = take(side, after, limits)
          if (records.length === 0) {
            waiter = createWaiter()
            side.waiters.push(waiter)
          }
          return records
        })
        const waitMs = deadline - host.clock.monotonic()
        if (found.length > 0 || waitMs <= 0 || waiter === null) return found
        waiting.add(waiter)
        if (closed) (waiter as Waiter).woken = true
        await host.wait(waitMs, signal, waiter)
        waiting.delete(waiter)
      }
      return []
    },
    async at(topic, partition, seq) {
      const side = find(topic, partition)
      return host.call(`at ${topic}/${partition}`, () => {
        const record = side.records[firstAfter(side.records, seq - 1)]
        return record?.seq === seq ? record : null
      })
    },
    async trim(topic, partition, upTo) {
      const side = find(topic, partition)
      if (!Number.isSafeInteger(upTo) || upTo < 0) throw new RangeError('no such trim')
      const effect = () => {
        const gone = side.records.slice(0, firstAfter(side.records, upTo))
        if (gone.length === 0) return
        store.onTrim(topic, partition, gone)
        side.records = side.records.slice(gone.length)
        for (const { bytes } of gone) store.bytes -= bytes.length
      }
      return host.call(`trim ${topic}/${partition}`, effect, { twice: true })
    },
    async last(topic, partition) {
      const side = find(topic, partition)
      return host.call(`last ${topic}/${partition}`, () => side.last)
    },
    async usage() {
      return { bytes: store.bytes, bytesMax: 1_000_000_000 }
    },
    async close() {
      closed = true
      for (const waiter of waiting) waiter.wake()
    },
  }
}

interface Receiver {
  readonly receive: (message: unknown) => void
  readonly host: Host
  active: boolean
}
export type BusStore = Map<string, Receiver[]>

export function bindBus(store: BusStore, host: Host, onError: (error: unknown) => void): Bus {
  const mine = new Set<Receiver>()
  let closed = false
  return {
    publish(subject, message) {
      if (closed) return
      for (const receiver of store.get(subject) ?? []) {
        receiver.host.post(() => {
          if (!receiver.active) return
          try {
            receiver.receive(message)
          } catch (error) {
            onError(error)
          }
        })
      }
    },
    subscribe(subject, receive) {
      const receiver = { receive, host, active: !closed }
      mine.add(receiver)
      if (!closed) store.set(subject, [...(store.get(subject) ?? []), receiver])
      return () => {
        receiver.active = false
        mine.delete(receiver)
        const others = (store.get(subject) ?? []).filter((other) => other !== receiver)
        store.set(subject, others)
      }
    },
    async close() {
      closed = true
      for (const receiver of mine) receiver.active = false
    },
  }
}

export interface StoredRow {
  readonly cells: readonly unknown[]
  readonly by: string
}
export interface ClickHouseStore {
  readonly rows: Map<string, StoredRow[]>
  /** The newest tokens of each table: only these are recognised. */
  readonly tokens: Map<string, string[]>
}
export const createClickHouseStore = (): ClickHouseStore => ({ rows: new Map(), tokens: new Map() })

export const TOKENS_MAX = 100
/** A row with this text in it is refused by the engine. */
export const BAD_ROW = 'a row nobody can store'

/** Answers only the look-up of one event; everything else is read from the store by the checks. */
export function bindClickHouse(store: ClickHouseStore, host: Host): ClickHouse {
  return {
    async insert(table, columns, lines, { token }) {
      const text = Buffer.from(lines).toString()
      const effect = () => {
        const rows = text.split('\n').filter((line) => line !== '')
        const tokens = store.tokens.get(table) ?? []
        store.tokens.set(table, tokens)
        if (tokens.includes(token)) return
        const parsed = rows.map((line) => ({ cells: JSON.parse(line) as unknown[], by: token }))
        const isBad = ({ cells }: StoredRow, i: number) =>
          cells.length !== columns.length || (table === 'events' && rows[i]?.includes(BAD_ROW))
        if (parsed.some(isBad)) throw new BadRow('cannot parse the row')
        tokens.push(token)
        if (tokens.length > TOKENS_MAX) tokens.shift()
        const stored = store.rows.get(table) ?? []
        stored.push(...parsed)
        store.rows.set(table, stored)
      }
      return host.call(`insert ${table} ${token}`, effect, { twice: true })
    },
    async query<Row>(_sql: string, params: Readonly<Record<string, unknown>> = {}) {
      return host.call('query', () => {
        const { workspace, env, ts, id } = params
        const found = store.rows
          .get('events')
          ?.find(({ cells: c }) => c[3] === id && c[0] === workspace && c[1] === env && c[2] === ts)
        return found === undefined ? [] : [{ ...found.cells } as Row]
      })
    },
    async command() {},
    ping: async () => true,
    async close() {},
  }
}
