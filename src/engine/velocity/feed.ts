// What every partition counted lately, gathered where the threads are told: of partitions decided here from their owners, of
// others over the bus, and out of the log whatever the bus lost.

import { type Bus, pollEveryMs } from '../../bus/bus.ts'
import { decodeEventsRecord } from '../../events/record.ts'
import type { Kv } from '../../kv/kv.ts'
import { type Clock, nextBeat } from '../../lib/clock.ts'
import type { Log, Seq } from '../../log/log.ts'
import { ENGINE_POSITION, partitionScope } from '../../records/partitions.ts'
import type { CounterDelta, CounterNews } from './board.ts'
import { flattenRecord } from './counted.ts'

export interface CounterFeedNeeds {
  readonly log: Pick<Log, 'read' | 'last'>
  readonly kv: Pick<Kv, 'position'>
  readonly bus: Pick<Bus, 'publish' | 'subscribe' | 'isLossy'>
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  /** Unlike that of any other process. */
  readonly id: string
  readonly partitions: number
  readonly onError: (error: unknown) => void
}

/** What one thread was told. */
export interface ToldCounters {
  /** The number of the next one to be told; 0: nothing yet, and what the thread holds is not to be trusted. */
  next: number
  storedTo: readonly number[]
  /** The partitions it decides: it knows best what they count. */
  readonly own: Set<number>
}
export const newToldCounters = (): ToldCounters => ({ next: 0, storedTo: [], own: new Set() })

/** Notes that the thread is given a turn, behind the news that go with it. */
export function noteTurn(told: ToldCounters, task: { readonly do: string; readonly partition: number }): void {
  if (task.do === 'open') told.own.add(task.partition)
  // Of what it counted since its last checkpoint nothing is left, and nothing was told.
  if (task.do === 'forget' && told.own.delete(task.partition)) told.next = 0
}

export interface CounterFeed {
  /** A record of decisions is in the log, right behind the record `after`. */
  decided(partition: number, after: Seq, seq: Seq, counted: Float64Array): void
  /** A checkpoint as of `seq` is committed. */
  stored(partition: number, seq: Seq): void
  /** Until it is called, what is read from the kv may be as old as it is now. */
  hold(): () => void
  /** null: nothing new. */
  news(told: ToldCounters): CounterNews | null
  stop(): void
}

interface Message {
  readonly from: string
  readonly partition: number
  readonly after: Seq
  readonly seq: Seq
  readonly storedTo: Seq
  readonly counted: Uint8Array
}

/** On which engines tell each other what they counted. */
export const COUNTED_SUBJECT = 'counted'
/** News of about 50,000 events are kept for threads that have nothing to do, as numbers; beyond, they load anew. */
const NUMBERS_KEPT = 350_000
const READ = { recordsMax: 64, bytesMax: 16_777_216, waitMsMax: 0 }
/** A lost message costs at most twice so long: what is in the log and was not told by the next look was lost. */
const POLL_MS = 1_000

/** Resolves when all that the kv does not have yet was read from the log. */
export async function openCounterFeed(needs: CounterFeedNeeds): Promise<CounterFeed> {
  const { log, kv, bus, clock, id, partitions, onError } = needs
  const everyPartition = Array.from({ length: partitions }, (_, partition) => partition)
  /** By partition: the newest record known, and the newest that the log had with the last look. */
  const heads: Seq[] = everyPartition.map(() => 0)
  const seen: Seq[] = everyPartition.map(() => 0)
  const storedTo: Seq[] = everyPartition.map(() => 0)
  let holds: readonly (readonly Seq[])[] = []
  const reading = new Map<number, Promise<void>>()
  let buffer: CounterDelta[] = []
  /** The number of the first in the buffer: they are numbered in the order in which they came. */
  let base = 1
  let numbers = 0
  const stopping = new AbortController()

  const floorOf = (partition: number): Seq => {
    let floor = storedTo[partition] as Seq
    for (const held of holds) floor = Math.min(floor, held[partition] as Seq)
    return floor
  }

  function prune(): void {
    let gone = 0
    for (const { partition, seq, counted } of buffer) {
      if (numbers <= NUMBERS_KEPT || seq > floorOf(partition)) break
      numbers -= Math.max(1, counted.length)
      gone++
    }
    if (gone === 0) return
    buffer = buffer.slice(gone)
    base += gone
  }

  function add(partition: number, seq: Seq, counted: Float64Array): void {
    if (seq <= (heads[partition] as Seq)) return
    heads[partition] = seq
    buffer.push({ partition, seq, counted })
    numbers += Math.max(1, counted.length)
    prune()
  }

  /** Takes from the log what is behind the newest record known. */
  function catchUp(partition: number): Promise<void> {
    const running = reading.get(partition)
    if (running !== undefined) return running
    const started = readOn(partition)
      .catch(onError)
      .finally(() => reading.delete(partition))
    reading.set(partition, started)
    return started
  }

  async function readOn(partition: number): Promise<void> {
    while (!stopping.signal.aborted) {
      const records = await log.read('events', partition, heads[partition] as Seq, READ)
      if (records.length === 0) return
      for (const { seq, bytes } of records) add(partition, seq, flattenRecord(decodeEventsRecord(bytes)))
    }
  }

  function take(partition: number, after: Seq, seq: Seq, counted: Float64Array): void {
    if (after > (heads[partition] as Seq)) void catchUp(partition)
    else add(partition, seq, counted)
  }

  function noteStored(partition: number, seq: Seq): void {
    storedTo[partition] = Math.max(storedTo[partition] as Seq, seq)
  }

  async function look(isFirst: boolean): Promise<void> {
    await Promise.all(
      everyPartition.map(async (partition) => {
        const position = await kv.position(partitionScope(partition), ENGINE_POSITION)
        if (position !== null) noteStored(partition, position)
        // What the kv had before this process began needs nobody to be told of; what it has later, whoever loaded before.
        if (isFirst) heads[partition] = Math.max(heads[partition] as Seq, position ?? 0)
        const last = await log.last('events', partition)
        const wasSeen = seen[partition] as Seq
        seen[partition] = last
        // Its owner is about to tell of what came since.
        if ((isFirst ? last : wasSeen) > (heads[partition] as Seq)) await catchUp(partition)
      }),
    )
  }

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      await nextBeat(clock, pollEveryMs(bus, POLL_MS), stopping.signal)
      if (!stopping.signal.aborted) await look(false).catch(onError)
    }
  }

  const unsubscribe = bus.subscribe(COUNTED_SUBJECT, (received) => {
    const message = received as Message
    const { from, partition, after, seq, counted } = message
    if (from === id || partition >= partitions) return
    noteStored(partition, message.storedTo)
    // Copied: its bytes are part of whatever came over the wire, and may begin where no number can. Not by `slice`, which copies
    // nothing when they are a Buffer.
    take(partition, after, seq, new Float64Array(new Uint8Array(counted).buffer))
  })
  try {
    await look(true)
  } catch (error) {
    unsubscribe()
    throw error
  }
  void poll()

  return {
    decided(partition, after, seq, counted) {
      take(partition, after, seq, counted)
      const bytes = new Uint8Array(counted.buffer, counted.byteOffset, counted.byteLength)
      bus.publish(COUNTED_SUBJECT, { from: id, partition, after, seq, storedTo: storedTo[partition], counted: bytes })
    },
    stored: noteStored,
    hold() {
      const held = [...storedTo]
      holds = [...holds, held]
      return () => {
        holds = holds.filter((one) => one !== held)
      }
    },
    news(told) {
      const floors = everyPartition.map(floorOf)
      const reset = told.next < base
      const deltas = buffer.slice(Math.max(0, told.next - base)).filter(({ partition }) => !told.own.has(partition))
      told.next = base + buffer.length
      const isSettled = (floor: Seq, p: number) => told.own.has(p) || floor === told.storedTo[p]
      if (deltas.length === 0 && !reset && floors.every(isSettled)) return null
      told.storedTo = floors
      return { deltas, storedTo: floors, reset }
    },
    stop() {
      stopping.abort()
      unsubscribe()
    },
  }
}
