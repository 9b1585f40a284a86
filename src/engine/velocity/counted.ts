// What one event adds to the counters of its address and its account: in the record of its decision, and as numbers on their
// way to whoever decides other partitions.

import { hash32, hash53Of } from '../../domain/ids.ts'
import type { DecidedItem } from '../../events/packed-items.ts'
import type { DecidedErasure } from '../../events/record.ts'
import { type Departure, unpackDeparture } from './departure.ts'

/** Which counters, and what they see. Hashes only: full addresses are kept no longer than retention allows. */
export interface Counted {
  readonly at: number
  readonly ipKey: number
  /** 0: the event names no account. */
  readonly linkedKey: number
  readonly visitor: number
  readonly ip: number
  /** Of an address whose place can be trusted; null: not known or not trusted. */
  readonly lat: number | null
  readonly lng: number | null
}

export const ipKey = (tenant: string, ip: string): number => hash53Of(tenant, '/ip/', ip)
export const linkedKey = (tenant: string, linkedId: string): number => hash53Of(tenant, '/linkedId/', linkedId)
export const hashSeen = hash32

export const isDeparture = (one: Counted | Departure): one is Departure => 'keys' in one

export function allCounterKeysOf(one: Counted | Departure): readonly number[] {
  if (isDeparture(one)) return one.keys.map(({ key }) => key)
  return one.linkedKey === 0 ? [one.ipKey] : [one.ipKey, one.linkedKey]
}

/** As a decided item carries it. */
export const packCounted = ({ at, ipKey, linkedKey, visitor, ip, lat, lng }: Counted): readonly (number | null)[] =>
  lat === null ? [at, ipKey, linkedKey, visitor, ip] : [at, ipKey, linkedKey, visitor, ip, lat, lng]

export function unpackCounted(packed: readonly (number | null)[]): Counted {
  const [at, ipKey, linkedKey, visitor, ip, lat = null, lng = null] = packed as [number, number, number, number, number]
  return { at, ipKey, linkedKey, visitor, ip, lat, lng }
}

/** Numbers per event. */
const WIDTH = 7

/** NaN stands for null; where an event begins it says that the departure of a visitor follows, with its length. */
export function flattenRecord({
  items,
  erasure,
}: {
  readonly items: readonly Pick<DecidedItem, 'counted'>[]
  readonly erasure?: Pick<DecidedErasure, 'counted'>
}): Float64Array {
  const left = erasure?.counted
  let length = left === undefined ? 0 : 2 + left.length
  for (const { counted } of items) if (counted !== undefined) length += WIDTH
  const flat = new Float64Array(length)
  let at = 0
  for (const { counted } of items) {
    if (counted === undefined) continue
    for (let i = 0; i < WIDTH; i++) flat[at++] = counted[i] ?? Number.NaN
  }
  if (left !== undefined) {
    flat[at] = Number.NaN
    flat[at + 1] = left.length
    flat.set(left, at + 2)
  }
  return flat
}

const orNull = (x: number | undefined): number | null => (x === undefined || Number.isNaN(x) ? null : x)

export function unflatten(flat: Float64Array): (Counted | Departure)[] {
  const all: (Counted | Departure)[] = []
  for (let i = 0; i < flat.length; i += WIDTH) {
    if (Number.isNaN(flat[i])) {
      const end = i + 2 + (flat[i + 1] as number)
      all.push(unpackDeparture([...flat.subarray(i + 2, end)]))
      i = end - WIDTH
      continue
    }
    const number = (place: number) => flat[i + place] as number
    all.push({
      at: number(0),
      ipKey: number(1),
      linkedKey: number(2),
      visitor: number(3),
      ip: number(4),
      lat: orNull(flat[i + 5]),
      lng: orNull(flat[i + 6]),
    })
  }
  return all
}
