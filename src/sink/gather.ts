// What a sink takes from the log: what is new in its partitions, or exactly what was marked.

import { hasCommand, rowsOf } from '../events/record.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log, LogRecord, Seq } from '../log/log.ts'
import type { LogRange, MarkedPlace } from './mark.ts'
import { type Bytes, openBytes, type RowMemory } from './rows.ts'

export interface GatherNeeds {
  readonly log: Pick<Log, 'read' | 'last'>
  readonly clock: Clock
  /** How long events are gathered, milliseconds, before a batch below `batchRowsMax` is inserted. */
  readonly flushMsMax: number
  readonly batchRowsMax: number
}

/** What records of a partition say, up to the last of them. */
export interface Said {
  readonly upTo: Seq
  /** Lines for ClickHouse, and how many. */
  readonly rows: Uint8Array
  readonly rowCount: number
  /** Records that say more than that. */
  readonly commands: readonly Uint8Array[]
}

export type Gathered = ReadonlyMap<number, Said>

/** Takes records behind `after` in their order, and keeps nothing of the log's memory. */
function openSaid(after: Seq, rows: Bytes) {
  rows.clear()
  let upTo = after
  let rowCount = 0
  const commands: Uint8Array[] = []
  return {
    take({ seq, bytes }: LogRecord): void {
      const lines = rowsOf(bytes)
      rows.add(lines)
      rowCount += countLines(lines)
      if (hasCommand(bytes)) commands.push(Buffer.from(bytes))
      upTo = seq
    },
    upTo: () => upTo,
    get: (): Said => ({ upTo, rows: rows.all(), rowCount, commands }),
  }
}

type Gathering = ReturnType<typeof openSaid>

const READ = { recordsMax: 1_024, bytesMax: 8_388_608 }
const BATCH_BYTES_MAX = 33_554_432
/** Records trickle in one by one: they gather instead of waking for each. */
const PAUSE_MS = 50
/** Where the places stand is looked up again so often while nothing comes. */
const IDLE_MS = 5_000

/**
 * Records behind the places until there are enough rows, or the oldest has waited long enough, or `signal` aborts; of each partition
 * that has any. A partition that cannot be read is told of and left out. Rows lie in `memory`.
 */
export async function gather(
  { log, clock, flushMsMax, batchRowsMax }: GatherNeeds,
  memory: Pick<RowMemory, 'of'>,
  places: readonly MarkedPlace[],
  failed: (partition: number, error: unknown) => void,
  signal: AbortSignal,
): Promise<Gathered> {
  const bytesMax = Math.ceil(Math.min(READ.bytesMax, BATCH_BYTES_MAX / places.length))
  const gathering = new Map(
    places.map(({ partition, position }) => [partition, openSaid(position, memory.of(partition))]),
  )
  let bytes = 0

  async function take(partition: number, said: Gathering, waitMsMax: number, ending: AbortSignal): Promise<boolean> {
    try {
      const more = await log.read('events', partition, said.upTo(), { ...READ, bytesMax, waitMsMax }, ending)
      for (const record of more) {
        said.take(record)
        bytes += record.bytes.length
      }
      return more.length > 0
    } catch (error) {
      gathering.delete(partition)
      failed(partition, error)
      return false
    }
  }

  /** Whether anything came; of several partitions nobody waits once one of them has something. */
  async function takeAll(waitMsMax: number): Promise<boolean> {
    const its = [...gathering]
    if (waitMsMax === 0) return (await Promise.all(its.map((one) => take(...one, 0, signal)))).includes(true)
    const some = new AbortController()
    const end = () => some.abort()
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
    const came = await Promise.all(
      its.map(async (one) => {
        const came = await take(...one, waitMsMax, some.signal)
        if (came) end()
        return came
      }),
    )
    signal.removeEventListener('abort', end)
    return came.includes(true)
  }

  /** What there is of those that were read. */
  function all(): Gathered {
    return new Map(
      places.flatMap(({ partition, position }) => {
        const said = gathering.get(partition)?.get()
        return said !== undefined && said.upTo > position ? [[partition, said] as const] : []
      }),
    )
  }

  if (!(await takeAll(Math.max(IDLE_MS, flushMsMax)))) return all()
  const flushAt = clock.monotonic() + flushMsMax
  const leftMs = () => Math.max(0, Math.ceil(flushAt - clock.monotonic()))
  // Whoever was no longer waited for may have records as well, however busy another is.
  if (places.length > 1) await takeAll(0)
  for (;;) {
    const gathered = all()
    const rows = [...gathered.values()].reduce((sum, { rowCount }) => sum + rowCount, 0)
    const isFull = rows >= batchRowsMax || bytes >= BATCH_BYTES_MAX
    if (isFull || gathered.size === 0 || leftMs() === 0 || signal.aborted) return gathered
    await clock.sleep(Math.min(PAUSE_MS, leftMs()), signal)
    await takeAll(places.length > 1 ? 0 : leftMs())
  }
}

/** What exactly the records of a range say. */
export async function readLogRange(
  log: Pick<Log, 'read' | 'last'>,
  { partition, after, upTo }: LogRange,
): Promise<Said> {
  const said = openSaid(after, openBytes())
  let from = after
  while (from < upTo) {
    const more = await log.read('events', partition, from, { ...READ, waitMsMax: 0 })
    if (more.length === 0) {
      if ((await log.last('events', partition)) < upTo) {
        throw new Error(`events/${partition} ends before the marked ${upTo}`)
      }
      // What is not there although later records are was lost with the log: nobody can insert it any more.
      break
    }
    for (const record of more) if (record.seq <= upTo) said.take(record)
    from = more.at(-1)?.seq ?? upTo
  }
  return said.get()
}

export function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}
