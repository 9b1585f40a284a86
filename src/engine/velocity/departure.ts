// How the events of a visitor are taken out of the counters of others when it is erased: by the keys that its own counters keep, and
// by the times these have.

import type { Counters } from './counters.ts'
import { dropHash, hashesIn } from './distinct.ts'
import { type MomentCell, noMoments, removeCell, removeMoment } from './moments.ts'
import { tracesIn } from './traces.ts'

/** What an erased visitor takes with it. */
export interface Departure {
  readonly visitor: number
  /** Counters it leaves, with its events at most in each, and of those of an account the addresses that nobody else brought. */
  readonly keys: readonly { readonly key: number; readonly events: number; readonly ips: readonly number[] }[]
  /** When its events were, wherever they are counted, as exactly as its own counters tell. */
  readonly times: readonly number[]
  readonly cells: readonly MomentCell[]
}

/**
 * Of a visitor by its own counters; null: it is counted nowhere else. `of`: the counters of a key, null where there are none. An
 * address stays with an account when somebody else of the account was seen at it.
 */
export function departureOf(visitor: number, own: Counters, of: (key: number) => Counters | null): Departure | null {
  const { traces } = own
  if (traces === null || traces.length === 0) return null
  const all = tracesIn(traces)
  const addresses = all.filter(({ ip }) => ip !== 0)
  const keys = all.map(({ key, ip, events }) => {
    if (ip !== 0) return { key, events, ips: [] }
    const others = visitorsOf(of(key), visitor)
    const isShared = (ipKey: number) => [...visitorsOf(of(ipKey), visitor)].some((other) => others.has(other))
    return { key, events, ips: addresses.filter((one) => !isShared(one.key)).map((one) => one.ip) }
  })
  const moments = [own.latest, own.earlier].flatMap((stretch) => (stretch === null ? [] : [stretch.moments]))
  return {
    visitor,
    keys,
    times: moments.flatMap(({ times }) => times),
    cells: moments.flatMap(({ cells }) => cells),
  }
}

function visitorsOf(counters: Counters | null, but: number): Set<number> {
  const all = [counters?.latest, counters?.earlier].flatMap((stretch) => hashesIn(stretch?.sets[0] ?? []))
  return new Set(all.filter((one) => one !== but))
}

/** Takes a visitor out of the counters of a key. Changes the given counters. */
export function removeVisitor(counters: Counters, key: number, { visitor, keys, times, cells }: Departure): void {
  const { events = 0, ips = [] } = keys.find((one) => one.key === key) ?? {}
  let left = events
  for (const stretch of [counters.latest, counters.earlier]) {
    const [visitors, addresses] = stretch?.sets ?? []
    if (stretch == null || visitors === undefined || !dropHash(visitors, visitor)) continue
    const isEmpty = visitors.length === 0
    if (isEmpty) stretch.moments = noMoments()
    else {
      // Somebody else may have been there at the moment of an event that is counted elsewhere: no more than its own go.
      for (const at of times) if (left > 0) left -= removeMoment(stretch.moments, at)
      for (const cell of cells) left -= removeCell(stretch.moments, { ...cell, count: Math.min(left, cell.count) })
    }
    if (addresses === undefined) continue
    if (isEmpty) addresses.length = 0
    else for (const ip of ips) dropHash(addresses, ip)
  }
  if (counters.place !== null && times.includes(counters.place.at)) counters.place = null
}

/** As a decided erasure carries it, and as numbers on their way to other partitions. */
export const packDeparture = ({ visitor, keys, times, cells }: Departure): readonly number[] => [
  ...[visitor, keys.length, times.length],
  ...keys.flatMap(({ key, events, ips }) => [key, events, ips.length, ...ips]),
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
    keys: some(keys, () => ({ key: next(), events: next(), ips: some(next(), next) })),
    times: some(times, next),
    cells: some(Math.floor((packed.length - at) / 3), () => ({ from: next(), width: next(), count: next() })),
  }
}
