// Where the events of a visitor are counted besides its own record: the keys of those counters, which its own keep.

import { packNumber, putArray } from '../../lib/packing.ts'
import { VELOCITY_KEPT_MS } from '../../records/partitions.ts'

const HOUR_MS = 3_600_000
/** Longer than any counter keeps what nobody adds to. */
const KEPT_HOURS = VELOCITY_KEPT_MS / HOUR_MS + 1
/** Beyond it those used longest ago are forgotten, and what they count ages out by itself. As many as a set has members. */
const TRACES_MAX = 256

/** What a visitor left with one counter. */
interface Trace {
  /** The address as accounts see it; 0: the counter is an account's. */
  readonly ip: number
  /** Of the latest event. */
  readonly hour: number
  readonly events: number
}

/** By the key of the counter. */
export type CounterTraces = Map<number, Trace>

/** Where an event is counted; `linkedKey` 0: at no account. */
interface Place {
  readonly ipKey: number
  readonly linkedKey: number
  readonly ip: number
}

/** Notes where an event is counted. Changes the given traces; `acceptedAt` by the clock, whatever the event's time is. */
export function addTraces(traces: CounterTraces, { ipKey, linkedKey, ip }: Place, acceptedAt: number): void {
  const hour = Math.floor(acceptedAt / HOUR_MS)
  const note = (key: number, hash: number) => {
    const events = (traces.get(key)?.events ?? 0) + 1
    // The one used last is the last of the map.
    traces.delete(key)
    traces.set(key, { ip: hash, hour, events })
  }
  note(ipKey, ip)
  if (linkedKey !== 0) note(linkedKey, 0)
  for (const [key, one] of traces) {
    if (traces.size <= TRACES_MAX && one.hour > hour - KEPT_HOURS) return
    traces.delete(key)
  }
}

export function putTraces(traces: CounterTraces): void {
  putArray(4 * traces.size)
  for (const [key, { ip, hour, events }] of traces) {
    packNumber(key)
    packNumber(ip)
    packNumber(hour)
    packNumber(events)
  }
}

export function unpackTraces(flat: readonly number[]): CounterTraces {
  const traces: CounterTraces = new Map()
  for (let i = 0; i + 3 < flat.length; i += 4) {
    const number = (place: number) => flat[i + place] as number
    traces.set(number(0), { ip: number(1), hour: number(2), events: number(3) })
  }
  return traces
}
