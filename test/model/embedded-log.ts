// The log of a process that has it to itself, as the embedded one is: what is submitted gets its place at once and can be read by
// who asks for it, groups are written one after the other, and a failed one takes back everything that waits.

import { Conflict, Unavailable } from '../../src/lib/failures.ts'
import { checkRecords } from '../../src/log/checks.ts'
import type { Log, LogRecord, Topic } from '../../src/log/log.ts'
import { slabRecordsOf } from '../../src/log/slab.ts'
import { createWaiter, type Host, type Waiter } from './host.ts'
import { bindLog, type LogStore, placeAfter, type StoredRecord, takeFrom } from './ports.ts'

interface Part {
  readonly topic: Topic
  readonly partition: number
  /** Where the partition must be for this to be its successor. */
  readonly after: number
  readonly records: readonly StoredRecord[]
}

/** Parts that are written together. */
interface Write {
  readonly parts: readonly Part[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

interface Pending {
  records: StoredRecord[]
  waiters: Waiter[]
}

export function bindEmbeddedLog(store: LogStore, host: Host, by: string, gap: () => number): Log {
  const durable = bindLog(store, host, by, gap)
  const pending = new Map<string, Pending>()
  let waiting: Write[] = []
  let committing = false
  let closed = false
  let basis = 0

  function pendingOf(topic: Topic, partition: number): Pending {
    const name = `${topic}/${partition}`
    const known = pending.get(name) ?? { records: [], waiters: [] }
    pending.set(name, known)
    return known
  }

  const lastOf = (topic: Topic, partition: number): number =>
    pendingOf(topic, partition).records.at(-1)?.seq ?? store.side(topic, partition).last

  async function commit(): Promise<void> {
    if (committing) return
    committing = true
    // Everything that came in the same turn shares a group.
    await Promise.resolve()
    while (waiting.length > 0) {
      const group = waiting
      waiting = []
      try {
        await host.call('commit log', () => write(group), { full: true })
        for (const { parts, resolve } of group) {
          for (const { topic, partition, records } of parts) {
            const its = pendingOf(topic, partition)
            its.records = its.records.slice(records.length)
          }
          resolve()
        }
      } catch (error) {
        basis++
        for (const its of pending.values()) its.records = []
        for (const { reject } of [...group, ...waiting]) reject(error)
        waiting = []
      }
    }
    committing = false
  }

  function write(group: readonly Write[]): void {
    const all = group.flatMap(({ parts }) => parts)
    for (const { topic, partition, after } of all) {
      const own = all.find((one) => one.topic === topic && one.partition === partition)
      const { last } = store.side(topic, partition)
      if (own?.after === after && last !== after) throw new Unavailable('the file is not as it was left')
    }
    // The bytes of a tick are the thread's until here.
    for (const { topic, partition, records } of all) {
      const copies = records.map((record) => ({ ...record, bytes: new Uint8Array(record.bytes) }))
      store.push(topic, partition, copies)
    }
  }

  function submit(parts: readonly Part[]): Promise<void> {
    for (const { topic, partition, records } of parts) {
      const its = pendingOf(topic, partition)
      its.records.push(...records)
      for (const waiter of its.waiters.splice(0)) waiter.wake()
    }
    return new Promise((resolve, reject) => {
      waiting.push({ parts, resolve, reject })
      void commit()
    })
  }

  return {
    ...durable,
    async append(topic, partition, records, opts = {}) {
      checkRecords(records)
      if (closed) throw new Unavailable('the log is closed')
      const after = lastOf(topic, partition)
      if (opts.basis !== undefined && opts.basis !== basis) throw new Conflict('what it builds on was taken back')
      if (opts.expectLast !== undefined && opts.expectLast !== after)
        throw new Conflict(`${topic}/${partition} is at ${after}, not at ${opts.expectLast}`)
      const copies = records.map((bytes) => new Uint8Array(bytes))
      const placed = placeAfter(after, copies, gap, { at: host.clock.monotonic(), by })
      const written = submit([{ topic, partition, after, records: placed }])
      opts.onPlaced?.(lastOf(topic, partition))
      await written
      return placed.at(-1)?.seq ?? 0
    },
    async appendTogether(appends) {
      if (closed) throw new Unavailable('the log is closed')
      const lasts = new Map<string, number>()
      const parts = appends.map(({ topic, partition, after, entry }): Part => {
        const name = `${topic}/${partition}`
        const last = lasts.get(name) ?? lastOf(topic, partition)
        if (after !== last) throw new Conflict(`${name} is at ${last}, not at ${after}`)
        const records = placeAfter(last, slabRecordsOf(entry), gap, { at: host.clock.monotonic(), by })
        lasts.set(name, records.at(-1)?.seq ?? last)
        return { topic, partition, after, records }
      })
      await submit(parts)
    },
    basis: () => basis,
    pipelined: true,
    async read(topic, partition, after, limits, signal) {
      if (limits.submitted !== true) return durable.read(topic, partition, after, limits, signal)
      const deadline = host.clock.monotonic() + limits.waitMsMax
      while (!signal?.aborted) {
        const its = pendingOf(topic, partition)
        let waiter: Waiter | null = null
        const found = await host.call(`read ${topic}/${partition}`, (): LogRecord[] => {
          const { records } = store.side(topic, partition)
          const last = records.at(-1)?.seq ?? 0
          const all = [...records, ...its.records.filter(({ seq }) => seq > last)]
          const taken = takeFrom(all, after, limits)
          if (taken.length === 0) {
            waiter = createWaiter()
            its.waiters.push(waiter)
          }
          return taken
        })
        const waitMs = deadline - host.clock.monotonic()
        if (found.length > 0 || waitMs <= 0 || waiter === null) return found
        await host.wait(waitMs, signal, waiter)
      }
      return []
    },
    async close() {
      closed = true
      await durable.close()
      for (const { waiters } of pending.values()) for (const waiter of waiters.splice(0)) waiter.wake()
    },
  }
}
