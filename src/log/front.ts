// The log as a thread sees it whose partitions another thread writes: what is appended to a partition of its own gets its place at
// once, everything appended in one turn goes over as one tick through memory that both see, and the writer tells what has become durable.

import type { Clock } from '../lib/clock.ts'
import { Conflict, Full, Unavailable } from '../lib/failures.ts'
import type { Line } from '../lib/line.ts'
import { must } from '../lib/must.ts'
import { checkLimits, checkRecords } from './checks.ts'
import { FRONT, type PartitionHead, type TakenBack, type Tick } from './front-protocol.ts'
import { type AppendOptions, type Log, type LogRecord, type ReadLimits, type Seq, TOPICS, type Topic } from './log.ts'
import { openReaders, type Readers } from './readers.ts'
import { openRing, segmentOf } from './ring.ts'
import { openTail, type Tail } from './tail.ts'

export interface FrontNeeds {
  readonly line: Line
  readonly clock: Clock
  readonly generation: number
  /** The partitions this thread alone appends to, to begin with. */
  readonly own: readonly PartitionHead[]
  /** Acts when nothing more is appended in this turn. */
  readonly atEndOfTurn?: (act: () => void) => void
}

export interface FrontLog extends Log {
  /** From now on this thread alone appends to these partitions. Those it has already stay as they are. */
  take(places: readonly PartitionHead[]): void
  /** From now on appends to the partition go over as they do to any other's; resolves when those made before are settled. */
  giveUp(partition: number): Promise<void>
  /** Whether something submitted is not durable yet. */
  isFlushing(): boolean
}

interface Own {
  readonly name: string
  readonly topic: Topic
  readonly partition: number
  last: Seq
  durable: Seq
  tail: Tail
  /** By segment of the ring: the newest record in it. */
  readonly newest: number[]
  readonly readers: Readers
}

interface Append {
  readonly p: Own
  readonly after: Seq
  readonly last: Seq
  /** Where its entry is in the ring, and how long. */
  readonly at: number
  readonly bytes: number
  readonly patient: boolean
  readonly resolve: (last: Seq) => void
  readonly reject: (error: Error) => void
}

const kept = ({ seq, bytes }: LogRecord): LogRecord => ({ seq, bytes: Buffer.from(bytes) })

/** What decides reads identifications right behind their append; decisions are read by others, from where they are stored. */
const TAIL_BYTES_MAX: Partial<Record<Topic, number>> = { identifications: 2 * 1024 * 1024 }
const tailBytesMax = (topic: Topic): number => TAIL_BYTES_MAX[topic] ?? 0

export function openFrontLog(needs: FrontNeeds): FrontLog {
  const { line, clock, atEndOfTurn = setImmediate } = needs
  const owned = new Map<string, Own>()

  function take(places: readonly PartitionHead[]): void {
    for (const { topic, partition, last } of places) {
      const name = `${topic}/${partition}`
      if (owned.has(name)) continue
      owned.set(name, {
        name,
        topic,
        partition,
        last,
        durable: last,
        tail: openTail(last, tailBytesMax(topic)),
        newest: [],
        readers: openReaders(clock),
      })
    }
  }

  take(needs.own)
  let { generation } = needs
  let number = 0
  let gathered: Append[] = []
  let submitted: { readonly number: number; readonly appends: readonly Append[] }[] = []
  const closing = new AbortController()
  /** Who waits for appends to be settled. */
  let settling: { readonly isOver: () => boolean; readonly resolve: () => void }[] = []
  /** Appends to partitions of others. */
  const underWay = new Set<Promise<Seq>>()
  const isClosed = () => closing.signal.aborted

  const ring = openRing((segment) => {
    for (const p of owned.values()) {
      const upTo = p.newest[segment]
      if (upTo !== undefined) p.tail.skip(upTo)
    }
  })
  line.cast(FRONT.ring, ring.memory)

  const find = (topic: Topic, partition: number): Own | undefined => {
    if (isClosed()) throw new Unavailable('the log is closed')
    return owned.get(`${topic}/${partition}`)
  }

  function post(): void {
    const appends = gathered
    gathered = []
    if (appends.length === 0) return
    number += 1
    submitted.push({ number, appends })
    const layout: number[] = []
    for (const { p, after, at, bytes } of appends) layout.push(TOPICS.indexOf(p.topic), p.partition, after, at, bytes)
    const patient = appends.every((append) => append.patient)
    line.cast(FRONT.tick, { generation, number, patient, layout } satisfies Tick)
  }

  function append(
    p: Own,
    records: readonly Uint8Array[],
    { expectLast, basis, patient = false, onPlaced, attached = [] }: AppendOptions,
  ): Promise<Seq> {
    checkRecords(records)
    if (basis !== undefined && basis !== generation) throw new Conflict('what this append builds on was taken back')
    if (expectLast !== undefined && expectLast !== p.last) {
      throw new Conflict(`${p.name} is at ${p.last}, not at ${expectLast}`)
    }
    const entry = ring.pack(records)
    if (entry === null) throw new Full('too many bytes wait for the disk')
    const after = p.last
    p.last += records.length
    p.newest[segmentOf(entry.at)] = p.last
    for (const [index, bytes] of entry.records.entries()) {
      const its = attached[index]
      const seq = after + 1 + index
      p.tail.push(its === undefined ? { seq, bytes } : { seq, bytes, attached: its })
    }
    const { last } = p
    const { at } = entry
    const { length } = entry.bytes
    const done = new Promise<Seq>((resolve, reject) => {
      if (gathered.length === 0) atEndOfTurn(post)
      gathered.push({ p, after, last, at, bytes: length, patient, resolve, reject })
    })
    onPlaced?.(last)
    p.readers.wake(true)
    return done
  }

  function tellSettled(): void {
    const over = settling.filter(({ isOver }) => isOver())
    if (over.length === 0) return
    settling = settling.filter((one) => !over.includes(one))
    for (const { resolve } of over) resolve()
  }

  async function settled(isOver: () => boolean): Promise<void> {
    if (!isOver()) await new Promise<void>((resolve) => settling.push({ isOver, resolve }))
  }

  const isOf =
    (partition: number) =>
    ({ p }: Append): boolean =>
      p.partition === partition

  line.hear(FRONT.durable, (upTo: number) => {
    while (submitted[0] !== undefined && submitted[0].number <= upTo) {
      const { appends } = must(submitted.shift(), 'a tick')
      for (const { p, last, at } of appends) {
        p.durable = last
        ring.giveBack(at)
      }
      for (const { resolve, last } of appends) resolve(last)
      for (const { p } of appends) p.readers.wake(false)
    }
    tellSettled()
  })

  line.hear(FRONT.takenBack, ({ generation: next, places, failure }: TakenBack) => {
    const { message } = failure
    const error = failure.full ? new Full(message) : new Unavailable(message)
    const lost = [...submitted.flatMap(({ appends }) => appends), ...gathered]
    generation = next
    submitted = []
    gathered = []
    ring.reset()
    const known = new Map(places.map(({ topic, partition, last }) => [`${topic}/${partition}`, last]))
    for (const p of owned.values()) {
      const last = known.get(p.name) ?? p.durable
      Object.assign(p, { last, durable: last, tail: openTail(last, tailBytesMax(p.topic)), newest: [] })
    }
    for (const { reject } of lost) reject(error)
    tellSettled()
  })

  async function appendFar(
    topic: Topic,
    partition: number,
    records: readonly Uint8Array[],
    { attached: _, onPlaced: __, ...opts }: AppendOptions,
  ): Promise<Seq> {
    const done = line.call(FRONT.append, topic, partition, records, opts) as Promise<Seq>
    line.flush()
    underWay.add(done)
    try {
      return await done
    } finally {
      underWay.delete(done)
    }
  }

  async function readOwn(p: Own, after: Seq, limits: ReadLimits, signal?: AbortSignal): Promise<readonly LogRecord[]> {
    const isSubmitted = limits.submitted === true
    const deadline = clock.monotonic() + limits.waitMsMax
    while (!signal?.aborted && !isClosed()) {
      const upTo = isSubmitted ? p.last : p.durable
      let isBehind = false
      if (upTo > after) {
        if (p.tail.covers(after)) {
          const found = p.tail.take(after, limits, upTo)
          // The ring goes on while they are decided; of those with what they were made of nobody looks at the bytes.
          if (found.length > 0) return found.map((one) => (one.attached === undefined ? kept(one) : one))
        } else if (p.durable > after) {
          const found = await readFar(p.topic, p.partition, after, { ...limits, submitted: false, waitMsMax: 0 })
          if (found.length > 0) return found
        }
        // What has left the memory before it was durable can be read when it is.
        isBehind = true
      }
      const waitMs = deadline - clock.monotonic()
      if (waitMs <= 0) break
      await p.readers.wait({ submitted: isSubmitted && !isBehind }, waitMs, signal)
    }
    return []
  }

  async function readFar(
    topic: Topic,
    partition: number,
    after: Seq,
    limits: ReadLimits,
    signal?: AbortSignal,
  ): Promise<readonly LogRecord[]> {
    if (signal?.aborted) return []
    const asked = line.call(FRONT.read, topic, partition, after, limits) as Promise<readonly LogRecord[]>
    if (limits.waitMsMax === 0) return asked
    // The other side waits its time; who asked need not.
    const over = new AbortController()
    const ends = [signal, closing.signal].filter((one) => one !== undefined)
    const given = new Promise<readonly LogRecord[]>((resolve) => {
      for (const end of ends) end.addEventListener('abort', () => resolve([]), { once: true, signal: over.signal })
    })
    try {
      return await Promise.race([asked, given])
    } finally {
      over.abort()
    }
  }

  return {
    take,
    async giveUp(partition) {
      for (const [name, p] of owned) if (p.partition === partition) owned.delete(name)
      const isIts = isOf(partition)
      await settled(() => !gathered.some(isIts) && !submitted.some(({ appends }) => appends.some(isIts)))
    },
    isFlushing: () => submitted.length > 0,
    pipelined: true,
    basis: () => generation,
    async append(topic, partition, records, opts = {}) {
      const p = find(topic, partition)
      if (p !== undefined) return append(p, records, opts)
      return appendFar(topic, partition, records, opts)
    },
    async read(topic, partition, after, limits, signal) {
      checkLimits(after, limits)
      const p = find(topic, partition)
      return p === undefined ? readFar(topic, partition, after, limits, signal) : readOwn(p, after, limits, signal)
    },
    at: (topic, partition, seq) => line.call(FRONT.at, topic, partition, seq) as Promise<LogRecord | null>,
    trim: (topic, partition, upTo) => line.call(FRONT.trim, topic, partition, upTo) as Promise<void>,
    async last(topic, partition) {
      return find(topic, partition)?.durable ?? ((await line.call(FRONT.last, topic, partition)) as Seq)
    },
    usage: () => line.call(FRONT.usage) as ReturnType<Log['usage']>,
    async close() {
      closing.abort()
      for (const p of owned.values()) p.readers.wakeAll()
      post()
      await settled(() => submitted.length === 0)
      await Promise.allSettled(underWay)
    },
  }
}
