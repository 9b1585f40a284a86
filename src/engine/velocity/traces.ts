// Where the events of a visitor are counted besides its own record: the keys of those counters, which its own keep.

import { HOUR_MS } from '../../lib/durations.ts'
import { putNumbers } from '../../lib/packing.ts'
import { VELOCITY_KEPT_MS } from '../../records/partitions.ts'

/** Longer than any counter keeps what nobody adds to. */
const KEPT_HOURS = VELOCITY_KEPT_MS / HOUR_MS + 1
/** Beyond it those used longest ago are forgotten, and what they count ages out by itself. As many as a set has members. */
const TRACES_MAX = 256

/**
 * What a visitor left with counters, the one used last behind the others: a flat list, WIDTH numbers to a counter, as it is packed.
 * Behind the key of the counter the address as accounts see it (0: the counter is an account's), the hour of the latest
 * event, and how many events there were.
 */
export type CounterTraces = number[]

const WIDTH = 4
const IP = 1
const HOUR = 2
const EVENTS = 3

interface Trace {
  readonly key: number
  readonly ip: number
  readonly events: number
}

export function tracesIn(traces: CounterTraces): Trace[] {
  const all: Trace[] = []
  for (let i = 0; i < traces.length; i += WIDTH) {
    all.push({ key: traces[i] as number, ip: traces[i + IP] as number, events: traces[i + EVENTS] as number })
  }
  return all
}

/** Where an event is counted; `linkedKey` 0: at no account. */
interface Place {
  readonly ipKey: number
  readonly linkedKey: number
  readonly ip: number
}

function note(traces: CounterTraces, key: number, ip: number, hour: number): void {
  const last = traces.length - WIDTH
  let place = last
  while (place >= 0 && traces[place] !== key) place -= WIDTH
  const events = place < 0 ? 1 : (traces[place + EVENTS] as number) + 1
  if (place < 0) {
    traces.push(key, ip, hour, events)
    return
  }
  if (place < last) traces.copyWithin(place, place + WIDTH)
  traces[last] = key
  traces[last + IP] = ip
  traces[last + HOUR] = hour
  traces[last + EVENTS] = events
}

/** Notes where an event is counted. Changes the given traces; `acceptedAt` by the clock, whatever the event's time is. */
export function addTraces(traces: CounterTraces, { ipKey, linkedKey, ip }: Place, acceptedAt: number): void {
  const hour = Math.floor(acceptedAt / HOUR_MS)
  note(traces, ipKey, ip, hour)
  if (linkedKey !== 0) note(traces, linkedKey, 0, hour)
  let gone = 0
  while (gone < traces.length) {
    const isFull = traces.length - gone > TRACES_MAX * WIDTH
    if (!isFull && (traces[gone + HOUR] as number) > hour - KEPT_HOURS) break
    gone += WIDTH
  }
  if (gone > 0) traces.splice(0, gone)
}

export const putTraces = (traces: CounterTraces): void => putNumbers(traces)
