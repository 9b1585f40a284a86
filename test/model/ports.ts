// The log and the bus as small as they can be, with exactly the semantics their port files promise. Stores are
// plain data that outlives every process; `bind…` gives one process its view of a store through its host.

import type { Bus } from '../../src/bus/bus.ts'
import { Conflict, Unavailable } from '../../src/lib/failures.ts'
import { checkLimits, checkRecords, checkTrim } from '../../src/log/checks.ts'
import { type Log, type LogRecord, type ReadLimits, type Seq, TOPICS, type Topic } from '../../src/log/log.ts'
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
  /** Makes records durable and wakes who waits for them; they must be the partition's next. */
  push(topic: Topic, partition: number, records: readonly StoredRecord[]): void
  /** Loses all that a partition holds; it goes on `ahead` above where it was. Tells what was lost. */
  lose(topic: Topic, partition: number, ahead: number): readonly StoredRecord[]
  bytes: number
}

export function createLogStore({ partitions }: { readonly partitions: number }): LogStore {
  const sides = new Map<string, Side>()
  for (const topic of TOPICS) {
    const count = topic === 'identifications' || topic === 'events' ? partitions : 1
    for (let p = 0; p < count; p++) sides.set(`${topic}/${p}`, { records: [], archive: [], last: 0, waiters: [] })
  }
  function side(topic: Topic, partition: number): Side {
    const found = sides.get(`${topic}/${partition}`)
    if (found === undefined) throw new RangeError(`no partition ${topic}/${partition}`)
    return found
  }
  const store: LogStore = {
    side,
    onTrim: () => undefined,
    push(topic, partition, records) {
      const its = side(topic, partition)
      for (const record of records) {
        its.last = record.seq
        store.bytes += record.bytes.length
        its.records.push(record)
        its.archive.push(record)
      }
      for (const waiter of its.waiters.splice(0)) waiter.wake()
    },
    lose(topic, partition, ahead) {
      const losing = side(topic, partition)
      const lost = losing.records
      losing.records = []
      losing.last += ahead
      return lost
    },
    bytes: 0,
  }
  return store
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

export function takeFrom(records: readonly LogRecord[], after: Seq, { recordsMax, bytesMax }: ReadLimits): LogRecord[] {
  const found: LogRecord[] = []
  let bytes = 0
  for (let i = firstAfter(records, after); i < records.length && found.length < recordsMax; i++) {
    const record = records[i] as LogRecord
    bytes += record.bytes.length
    if (found.length > 0 && bytes > bytesMax) break
    found.push(record)
  }
  return found
}

/** The records in the places behind `last`. */
export function placeAfter(
  last: Seq,
  records: readonly Uint8Array[],
  gap: () => number,
  more: Pick<StoredRecord, 'at' | 'by'>,
): StoredRecord[] {
  let seq = last
  return records.map((bytes) => {
    seq += gap()
    return { seq, bytes, ...more }
  })
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
      const copies = records.map((bytes) => new Uint8Array(bytes))
      const { expectLast } = opts
      const effect = () => {
        if (expectLast !== undefined && expectLast !== side.last)
          throw new Conflict(`${topic}/${partition} is at ${side.last}, not at ${expectLast}`)
        store.push(topic, partition, placeAfter(side.last, copies, gap, { at: host.clock.monotonic(), by }))
        return side.last
      }
      return host.call(`append ${topic}/${partition}`, effect, { twice: expectLast !== undefined, full: true })
    },
    async read(topic, partition, after, limits, signal) {
      const side = find(topic, partition)
      checkLimits(after, limits)
      const deadline = host.clock.monotonic() + limits.waitMsMax
      while (!signal?.aborted && !closed) {
        let waiter: Waiter | null = null
        const found = await host.call(`read ${topic}/${partition}`, () => {
          const records = takeFrom(side.records, after, limits)
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
      checkTrim(upTo)
      const effect = () => {
        const gone = side.records.slice(0, firstAfter(side.records, upTo))
        if (gone.length === 0) return
        store.onTrim(topic, partition, gone)
        side.records = side.records.slice(gone.length)
        for (const { bytes } of gone) store.bytes -= bytes.length
      }
      return host.call(`trim ${topic}/${partition}`, effect, { twice: true })
    },
    basis: () => 0,
    pipelined: false,
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
    isLossy: true,
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
