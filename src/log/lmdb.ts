// The log on one LMDB environment: one entry per append under the seq of its last record, counters in memory, this process
// the only writer.
import type { Clock } from '../lib/clock.ts'
import { Conflict, Unavailable } from '../lib/failures.ts'
import { type Durability, diskBytes, type LmdbConfig, openLmdb } from '../lib/lmdb.ts'
import { checkLimits, checkRecords, checkTrim } from './checks.ts'
import { FLOOR_KIND, KEY_BYTES, placeOfKey, RECORD_KIND, SEQ_BYTES, SEQ_MAX, seqOfKey, writeKey } from './lmdb-keys.ts'
import { type Log, type LogRecord, type PlacedAppend, type ReadLimits, type Seq, TOPICS, type Topic } from './log.ts'
import { openReaders, type Readers } from './readers.ts'
import { countOf, entryBytes, openSlab, packInto, type Slab, slabRecordsOf } from './slab.ts'
import { openTail, type Tail } from './tail.ts'

export interface LmdbLogConfig {
  /** As `LmdbConfig` has it. */
  readonly onGroup?: LmdbConfig['onGroup']
  /** The folder of the environment. */
  readonly path: string
  /** How many partitions `identifications` and `events` have. */
  readonly partitions: number
  readonly clock: Clock
  readonly durability?: Durability
  /** The most the records may occupy on disk; a trim frees room at once. */
  readonly bytesMax: number
  /** Memory per partition for readers right behind the writer. */
  readonly tailBytesMax?: number
  /** Topics nobody reads right behind the writer: of these memory keeps nothing. */
  readonly unread?: readonly Topic[]
  /** Appended bytes that may wait for the disk before appends fail with Full. */
  readonly queuedBytesMax?: number
}

/** A flush writes the last page of each partition and those above it anew: with larger pages several times what was appended (D205). */
const PAGE_BYTES = 4_096
const TRIM_STEP_RECORDS = 2_000
/** Of a topic, shared by its partitions: a reader right behind the writer finds what it needs, and V8 promotes what stays for longer (D234). */
const TAIL_BYTES_MAX = 1024 * 1024
const TAIL_BYTES_MIN = 64 * 1024
const QUEUED_BYTES_MAX = 128 * 1024 * 1024

interface Partition {
  readonly name: string
  readonly code: number
  readonly number: number
  /** In-flight appends included: what the next append follows and what the fence is compared with. */
  last: Seq
  /** The newest record that may be read. */
  durable: Seq
  /** Records up to this seq are gone. */
  floor: Seq
  tail: Tail
  readonly keepsTail: boolean
  readonly slab: Slab
  trimming: Promise<void>
  readonly readers: Readers
}

/**
 * Opens or makes the log in `config.path`. Record bytes are copied by `append`; those a read returns must not be changed,
 * and sending them to another thread copies more than the record, so frame them first.
 */
export async function openLmdbLog(config: LmdbLogConfig): Promise<Log> {
  const { clock, tailBytesMax = Math.max(TAIL_BYTES_MIN, TAIL_BYTES_MAX / config.partitions) } = config
  const partitions = new Map<string, Partition[]>()
  let closed = false
  let basis = 0
  const env = openLmdb({
    path: config.path,
    ...(config.onGroup ? { onGroup: config.onGroup } : {}),
    durability: config.durability ?? 'fsync',
    pageBytes: PAGE_BYTES,
    compressed: true,
    bytesMax: config.bytesMax,
    queuedBytesMax: config.queuedBytesMax ?? QUEUED_BYTES_MAX,
    leftOf,
    onFailure: () => {
      basis += 1
      for (const p of [...partitions.values()].flat()) {
        Object.assign(p, readCounters(p))
        p.tail = openTail(p.last, tailBytesMax)
      }
    },
  })
  /** An entry without the records of it that were trimmed: it stays in its place for the sake of later ones. */
  function leftOf(key: Buffer, value: Buffer): Uint8Array {
    const place = placeOfKey(key)
    const p = place && partitions.get(TOPICS[place.topic] as Topic)?.[place.partition]
    const trimmed = p ? p.floor - (seqOfKey(key) - countOf(value)) : 0
    return trimmed > 0 ? entryOf(slabRecordsOf(value).slice(trimmed)) : value
  }

  // Reused for every key: lmdb copies keys out before put, remove and get return.
  const scratch = Buffer.alloc(KEY_BYTES)

  const readCounters = (p: { readonly code: number; readonly number: number }) => {
    env.db.resetReadTxn()
    const marker = env.db.getBinary(writeKey(scratch, FLOOR_KIND, p.code, p.number, 0))
    const floor = marker ? marker.readUIntBE(0, SEQ_BYTES) : 0
    const [newest] = env.db.getKeys({
      start: writeKey(Buffer.alloc(KEY_BYTES), RECORD_KIND, p.code, p.number, SEQ_MAX),
      end: writeKey(Buffer.alloc(KEY_BYTES), RECORD_KIND, p.code, p.number, 0),
      reverse: true,
      limit: 1,
    })
    const last = newest ? seqOfKey(newest) : floor
    return { floor, last, durable: last }
  }

  const openPartition = (topic: Topic, number: number): Partition => {
    const code = TOPICS.indexOf(topic)
    const counters = readCounters({ code, number })
    return {
      name: `${topic}/${number}`,
      code,
      number,
      ...counters,
      tail: openTail(counters.last, tailBytesMax),
      keepsTail: tailBytesMax > 0 && !(config.unread?.includes(topic) ?? false),
      slab: openSlab(),
      trimming: Promise.resolve(),
      readers: openReaders(clock),
    }
  }

  for (const topic of TOPICS) {
    const count = topic === 'identifications' || topic === 'events' ? config.partitions : 1
    partitions.set(
      topic,
      Array.from({ length: count }, (_, number) => openPartition(topic, number)),
    )
  }

  const find = (topic: Topic, number: number): Partition => {
    if (closed) throw new Unavailable('the log is closed')
    const p = partitions.get(topic)?.[number]
    if (!p) throw new RangeError(`no partition ${topic}/${number}`)
    return p
  }

  /** The entries whose last record is above `after` and not above `upTo`. */
  const rangeOf = (p: Partition, after: Seq, upTo: Seq, limit: number) => ({
    start: writeKey(Buffer.alloc(KEY_BYTES), RECORD_KIND, p.code, p.number, after + 1),
    end: writeKey(Buffer.alloc(KEY_BYTES), RECORD_KIND, p.code, p.number, upTo + 1),
    limit,
  })

  const readDisk = (p: Partition, after: Seq, limits: ReadLimits): LogRecord[] => {
    const found: LogRecord[] = []
    let bytesSum = 0
    // What is durable ends with an entry, so no entry reaches beyond it.
    for (const { key, value } of env.db.getRange(rangeOf(p, after, p.durable, limits.recordsMax))) {
      const records = slabRecordsOf(value)
      let seq = seqOfKey(key) - records.length
      for (const bytes of records) {
        seq += 1
        if (seq <= after) continue
        bytesSum += bytes.length
        if (found.length === limits.recordsMax || (found.length > 0 && bytesSum > limits.bytesMax)) return found
        found.push({ seq, bytes })
      }
    }
    return found
  }

  const readUpTo = (p: Partition, from: Seq, upTo: Seq, limits: ReadLimits): LogRecord[] => {
    if (p.tail.covers(from)) return p.tail.take(from, limits, upTo)
    return p.durable > from ? readDisk(p, from, limits) : []
  }

  const trimTo = async (p: Partition, upTo: Seq) => {
    while (p.floor < upTo) {
      const from = p.floor
      const to = Math.min(upTo, from + TRIM_STEP_RECORDS)
      const refused = env.refusal(0)
      if (refused) throw refused
      const keys = [...env.db.getKeys(rangeOf(p, from, to, TRIM_STEP_RECORDS))]
      await env.submit({
        bytes: 0,
        apply() {
          // An entry that also holds later records stays until they go.
          for (const key of keys) env.remove(key)
          const marker = Buffer.alloc(SEQ_BYTES)
          marker.writeUIntBE(to, 0, SEQ_BYTES)
          env.put(writeKey(scratch, FLOOR_KIND, p.code, p.number, 0), marker)
        },
        done() {
          p.floor = to
        },
      })
    }
  }

  /** Checks all, then submits all as one write. Of an entry that readers may soon want, memory keeps a copy of its own. */
  const appendAll = (appends: readonly PlacedAppend[], patient: boolean): Promise<void> => {
    let bytes = 0
    const lasts = new Map<Partition, Seq>()
    for (const { topic, partition, after, entry } of appends) {
      const p = find(topic, partition)
      bytes += diskBytes(KEY_BYTES, entry.length, PAGE_BYTES)
      const last = lasts.get(p) ?? p.last
      if (after !== last) throw new Conflict(`${p.name} is at ${last}, not at ${after}`)
      lasts.set(p, last + countOf(entry))
    }
    const refused = env.refusal(bytes)
    if (refused) throw refused
    const placed = appends.map(({ topic, partition, entry }) => {
      const p = find(topic, partition)
      const first = p.last + 1
      p.last += countOf(entry)
      if (p.keepsTail)
        for (const [index, bytes] of p.slab.copy(entry).entries()) p.tail.push({ seq: first + index, bytes })
      else p.tail.skip(p.last)
      return { p, last: p.last, entry }
    })
    const durable = env.submit({
      bytes,
      patient,
      apply() {
        for (const { p, last, entry } of placed) {
          env.put(writeKey(scratch, RECORD_KIND, p.code, p.number, last), entry)
        }
      },
      done() {
        for (const { p, last } of placed) p.durable = last
        for (const { p } of placed) p.readers.wake(false)
      },
    })
    for (const { p } of placed) p.readers.wake(true)
    return durable
  }

  return {
    async append(topic, partition, records, opts = {}) {
      const p = find(topic, partition)
      if (opts.basis !== undefined && opts.basis !== basis)
        throw new Conflict('what this append builds on was taken back')
      checkRecords(records)
      const after = opts.expectLast ?? p.last
      // Callers may change their bytes once this returns.
      const entry = entryOf(records)
      await appendAll([{ topic, partition, after, entry }], opts.patient === true)
      return after + records.length
    },

    async appendTogether(appends, opts = {}) {
      await appendAll(appends, opts.patient === true)
    },

    basis: () => basis,
    pipelined: true,

    async read(topic, partition, after, limits, signal) {
      const p = find(topic, partition)
      checkLimits(after, limits)
      const { submitted = false } = limits
      const deadline = clock.monotonic() + limits.waitMsMax
      while (!signal?.aborted && !closed) {
        const from = Math.max(after, p.floor)
        const upTo = submitted ? p.last : p.durable
        const found = upTo > from ? readUpTo(p, from, upTo, limits) : []
        if (found.length > 0) return found
        const waitMs = deadline - clock.monotonic()
        if (waitMs <= 0) break
        // Submitted records that have left the tail can be read when they are durable.
        await p.readers.wait({ submitted: submitted && upTo <= from }, waitMs, signal)
      }
      return []
    },

    async at(topic, partition, seq) {
      const p = find(topic, partition)
      if (!Number.isSafeInteger(seq) || seq <= p.floor || seq > p.durable) return null
      const one = { recordsMax: 1, bytesMax: 1, waitMsMax: 0 }
      const [record] = readUpTo(p, seq - 1, p.durable, one)
      return record?.seq === seq ? record : null
    },

    async trim(topic, partition, upTo) {
      const p = find(topic, partition)
      checkTrim(upTo)
      const step = p.trimming.then(() => trimTo(p, Math.min(upTo, p.durable)))
      p.trimming = step.catch(() => undefined)
      await step
    },

    async last(topic, partition) {
      return find(topic, partition).durable
    },

    async usage() {
      return env.usage()
    },

    async replace(topic, partition, seq, bytes) {
      const p = find(topic, partition)
      checkRecords([bytes])
      const [entry] = env.db.getRange(rangeOf(p, seq - 1, p.durable, 1))
      if (entry === undefined || seq <= p.floor) return
      const key = Buffer.from(entry.key as Buffer)
      const records = slabRecordsOf(entry.value)
      const index = seq - (seqOfKey(key) - records.length) - 1
      if (index < 0) return
      records[index] = bytes
      const refused = env.refusal(diskBytes(KEY_BYTES, entryBytes(records), PAGE_BYTES))
      if (refused) throw refused
      const changed = entryOf(records)
      await env.submit({
        bytes: diskBytes(KEY_BYTES, changed.length, PAGE_BYTES),
        apply: () => env.put(key, changed),
        done() {
          // Readers right behind the writer have it from there.
          p.tail = openTail(p.last, tailBytesMax)
        },
      })
    },

    compact: () => env.compact(),

    async close() {
      closed = true
      for (const p of [...partitions.values()].flat()) p.readers.wakeAll()
      await env.close()
    },
  }
}

/** In memory of its own. */
const entryOf = (records: readonly Uint8Array[]): Uint8Array =>
  packInto(Buffer.allocUnsafe(entryBytes(records)), records)
