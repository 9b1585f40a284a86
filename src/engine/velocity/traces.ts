// Where the events of a visitor are counted besides its own record, and how they are taken out again when it is erased: by the keys
// that its own counters keep, and by the times these have.

import { VELOCITY_KEPT_MS } from '../../records/partitions.ts'
import type { Counted } from './counted.ts'
import type { Counters } from './counters.ts'
import { type Cell, removeCell, removeMoment } from './moments.ts'

const HOUR_MS = 3_600_000
/** Longer than any counter keeps what nobody adds to. */
const KEPT_HOURS = VELOCITY_KEPT_MS / HOUR_MS + 1
/** Beyond it those used longest ago are forgotten, and what they count ages out by itself. As many as a set has members. */
const TRACES_MAX = 256

/** By the key of a counter: the address as accounts see it (0: the key is an account's), and the hour of the latest visit. */
export type Traces = Map<number, { readonly ip: number; readonly hour: number }>

/** Notes where an event is counted. Changes the given traces; `acceptedAt` by the clock, whatever the event's time is. */
export function addTraces(traces: Traces, { ipKey, linkedKey, ip }: Counted, acceptedAt: number): void {
  const hour = Math.floor(acceptedAt / HOUR_MS)
  const note = (key: number, hash: number) => {
    // The one used last is the last of the map.
    traces.delete(key)
    traces.set(key, { ip: hash, hour })
  }
  note(ipKey, ip)
  if (linkedKey !== 0) note(linkedKey, 0)
  for (const [key, one] of traces) {
    if (traces.size <= TRACES_MAX && one.hour > hour - KEPT_HOURS) return
    traces.delete(key)
  }
}

export const packTraces = (traces: Traces): readonly number[] =>
  [...traces].flatMap(([key, { ip, hour }]) => [key, ip, hour])

export function unpackTraces(flat: readonly number[]): Traces {
  const traces: Traces = new Map()
  for (let i = 0; i + 2 < flat.length; i += 3) {
    traces.set(flat[i] as number, { ip: flat[i + 1] as number, hour: flat[i + 2] as number })
  }
  return traces
}

/** What an erased visitor takes with it. */
export interface Departure {
  readonly visitor: number
  /** Counters it leaves, and of those of an account the addresses that nobody else brought. */
  readonly keys: readonly { readonly key: number; readonly ips: readonly number[] }[]
  /** When its events were, as exactly as its own counters tell. */
  readonly times: readonly number[]
  readonly cells: readonly Cell[]
}

/**
 * Of a visitor by its own counters; null: it is counted nowhere else. `of`: the counters of a key, null where there are none. An
 * address stays with an account when somebody else of the account was seen at it.
 */
export function departureOf(visitor: number, own: Counters, of: (key: number) => Counters | null): Departure | null {
  const { traces } = own
  if (traces === null || traces.size === 0) return null
  const addresses = [...traces].filter(([, { ip }]) => ip !== 0)
  const keys = [...traces].map(([key, { ip }]) => {
    if (ip !== 0) return { key, ips: [] }
    const others = visitorsOf(of(key), visitor)
    const isShared = (ipKey: number) => [...visitorsOf(of(ipKey), visitor)].some((other) => others.has(other))
    return { key, ips: addresses.filter(([ipKey]) => !isShared(ipKey)).map(([, { ip: hash }]) => hash) }
  })
  const moments = [own.latest, own.earlier].flatMap((stretch) => (stretch === null ? [] : [stretch.moments]))
  return {
    ...{ visitor, keys },
    times: moments.flatMap(({ times }) => times),
    cells: moments.flatMap(({ cells }) => cells),
  }
}

function visitorsOf(counters: Counters | null, but: number): Set<number> {
  const all = [counters?.latest, counters?.earlier].flatMap((stretch) => [...(stretch?.sets[0]?.keys() ?? [])])
  return new Set(all.filter((one) => one !== but))
}

/** Takes a visitor out of the counters of a key. Changes the given counters. */
export function removeVisitor(counters: Counters, ips: readonly number[], { visitor, times, cells }: Departure): void {
  for (const stretch of [counters.latest, counters.earlier]) {
    const [visitors, addresses] = stretch?.sets ?? []
    if (stretch == null || visitors === undefined || !visitors.delete(visitor)) continue
    const isEmpty = visitors.size === 0
    if (isEmpty) stretch.moments = { times: [], cells: [] }
    else {
      for (const at of times) removeMoment(stretch.moments, at)
      for (const cell of cells) removeCell(stretch.moments, cell)
    }
    if (isEmpty) addresses?.clear()
    else for (const ip of ips) addresses?.delete(ip)
  }
  if (counters.place !== null && times.includes(counters.place.at)) counters.place = null
}

/** As a decided erasure carries it, and as numbers on their way to other partitions. */
export const packDeparture = ({ visitor, keys, times, cells }: Departure): readonly number[] => [
  ...[visitor, keys.length, times.length],
  ...keys.flatMap(({ key, ips }) => [key, ips.length, ...ips]),
  ...times,
  ...cells.flatMap(({ from, width, count }) => [from, width, count]),
]

export function unpackDeparture(packed: readonly number[]): Departure {
  let at = 0
  const next = () => packed[at++] as number
  const some = <T>(count: number, read: () => T): T[] => Array.from({ length: count }, read)
  const [visitor, keys, times] = [next(), next(), next()]
  return {
    visitor,
    keys: some(keys, () => ({ key: next(), ips: some(next(), next) })),
    times: some(times, next),
    cells: some(Math.floor((packed.length - at) / 3), () => ({ from: next(), width: next(), count: next() })),
  }
}
