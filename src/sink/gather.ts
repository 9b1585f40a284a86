// What a sink takes from the log: what is new in its partitions, or exactly what was marked.

import { rowsOf } from '../events/record.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log, LogRecord } from '../log/log.ts'
import type { LogRange, MarkedPlace } from './mark.ts'

export interface GatherNeeds {
  readonly log: Pick<Log, 'read' | 'last'>
  readonly clock: Clock
  /** How long events are gathered, milliseconds, before a batch below `batchRowsMax` is inserted. */
  readonly flushMsMax: number
  readonly batchRowsMax: number
}

export type Gathered = ReadonlyMap<number, readonly LogRecord[]>

const READ = { recordsMax: 1_024, bytesMax: 8_388_608 }
const BATCH_BYTES_MAX = 33_554_432
/** Records trickle in one by one: they gather instead of waking for each. */
const PAUSE_MS = 50
/** Where the places stand is looked up again so often while nothing comes. */
const IDLE_MS = 5_000

/**
 * Records behind the places until there are enough rows, or the oldest has waited long enough, or `signal` aborts; of each partition
 * that has any. A partition that cannot be read is told of and left out.
 */
export async function gather(
  { log, clock, flushMsMax, batchRowsMax }: GatherNeeds,
  places: readonly MarkedPlace[],
  failed: (partition: number, error: unknown) => void,
  signal: AbortSignal,
): Promise<Gathered> {
  const bytesMax = Math.ceil(Math.min(READ.bytesMax, BATCH_BYTES_MAX / places.length))
  const lost = new Set<number>()
  const gathered = new Map<number, LogRecord[]>()
  let rows = 0
  let bytes = 0

  async function take({ partition, position }: MarkedPlace, waitMsMax: number, ending: AbortSignal): Promise<boolean> {
    const records = gathered.get(partition) ?? []
    try {
      const after = records.at(-1)?.seq ?? position
      const more = await log.read('events', partition, after, { ...READ, bytesMax, waitMsMax }, ending)
      const lines = more.reduce((sum, record) => sum + countLines(rowsOf(record.bytes)), 0)
      for (const record of more) {
        records.push(record)
        bytes += record.bytes.length
      }
      rows += lines
      if (records.length > 0) gathered.set(partition, records)
      return more.length > 0
    } catch (error) {
      lost.add(partition)
      gathered.delete(partition)
      failed(partition, error)
      return false
    }
  }

  /** Whether anything came; of several partitions nobody waits once one of them has something. */
  async function takeAll(waitMsMax: number): Promise<boolean> {
    const its = places.filter(({ partition }) => !lost.has(partition))
    if (waitMsMax === 0) return (await Promise.all(its.map((place) => take(place, 0, signal)))).includes(true)
    const some = new AbortController()
    const end = () => some.abort()
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
    const came = await Promise.all(
      its.map(async (place) => {
        const came = await take(place, waitMsMax, some.signal)
        if (came) end()
        return came
      }),
    )
    signal.removeEventListener('abort', end)
    return came.includes(true)
  }

  if (!(await takeAll(Math.max(IDLE_MS, flushMsMax)))) return gathered
  const flushAt = clock.monotonic() + flushMsMax
  const leftMs = () => Math.max(0, Math.ceil(flushAt - clock.monotonic()))
  // Whoever was no longer waited for may have records as well, however busy another is.
  if (places.length > 1) await takeAll(0)
  for (;;) {
    const isFull = rows >= batchRowsMax || bytes >= BATCH_BYTES_MAX
    if (isFull || gathered.size === 0 || leftMs() === 0 || signal.aborted) return gathered
    await clock.sleep(Math.min(PAUSE_MS, leftMs()), signal)
    await takeAll(places.length > 1 ? 0 : leftMs())
  }
}

/** Exactly the records of a range. */
export async function readLogRange(
  log: Pick<Log, 'read' | 'last'>,
  { partition, after, upTo }: LogRange,
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

export function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}
