// What rules see of an event's counters, this event included, and where its visitor and account were before. Changes nothing
// that others hold.

import type { Velocity } from '../../domain/event.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { Board } from './board.ts'
import { type Counted, hashSeen, ipKey, linkedKey } from './counted.ts'
import {
  addEvent,
  addPlace,
  type Counters,
  countEvents,
  countSeenWith,
  type GeoPlace,
  noCounters,
  unpackCounters,
} from './counters.ts'
import { addTraces } from './traces.ts'

const FIVE_MINUTES_MS = 5 * MINUTE_MS

/** A visitor's sets, in the order they are added. */
export const IPS = 0
export const COUNTRIES = 1
export const ACCOUNTS = 2
/** Those of an address, and those of an account. */
const VISITORS = 0
const ITS_IPS = 1

/** What is known of an event before anybody knows who it is. */
export interface EventCountsOf {
  readonly at: number
  /** When it came, by the clock. */
  readonly acceptedAt: number
  readonly ip: number
  readonly ipKey: number
  /** 0 and null: the event names no account. */
  readonly linkedKey: number
  readonly account: number | null
}

/** `tenant`: `<workspace>/<env>`. */
export const eventCountsOf = (
  tenant: string,
  { at, acceptedAt }: Pick<EventCountsOf, 'at' | 'acceptedAt'>,
  ip: string,
  linkedId: string | null,
): EventCountsOf => ({
  at,
  acceptedAt,
  ip: hashSeen(ip),
  ipKey: ipKey(tenant, ip),
  linkedKey: linkedId === null ? 0 : linkedKey(tenant, linkedId),
  account: linkedId === null ? null : hashSeen(linkedId),
})

export interface EventTally {
  readonly velocity: Velocity
  /** Where the visitor and the account were, by the events known so far. */
  readonly places: readonly GeoPlace[]
  /** The visitor's, with this event in them but for its place. */
  readonly counters: Counters
  /** The visitor as other counters see it. */
  readonly visitor: number
}

function eventsOf(all: readonly Counters[], at: number, windowMs: number): number {
  let events = 0
  for (const counters of all) events += countEvents(counters, at, windowMs)
  return events
}

/** A visitor, and where it is now. */
export interface PlacedEvent {
  readonly visitorId: string
  readonly country: string | null
}

/** A visitor's counters before an event: those of the record that was recognised, null for a new one, and of all merged with it. */
export interface EventBefore {
  readonly packed: Uint8Array | null
  readonly others: readonly Counters[]
}

const NOWHERE: readonly GeoPlace[] = []
/** Of the event that is counted now: few visitors were merged with others. */
const alone: Counters[] = []

export function tallyEvent(
  { at, ip, ipKey, linkedKey, account }: EventCountsOf,
  { visitorId, country }: PlacedEvent,
  { packed, others }: EventBefore,
  board: Pick<Board, 'of' | 'seen'>,
): EventTally {
  const visitor = hashSeen(visitorId)
  const own = packed === null || packed.length === 0 ? noCounters() : unpackCounters(packed)
  const ofIp = board.of(ipKey)
  const ofAccount = linkedKey === 0 ? null : board.of(linkedKey)
  let places = own.place === null ? NOWHERE : [own.place]
  if (ofAccount !== null) for (const { place } of ofAccount) if (place !== null) places = [...places, place]
  addEvent(own, at, [ip, country === null ? null : hashSeen(country), account])
  alone[0] = own
  const all = others.length === 0 ? alone : [own, ...others]
  return {
    velocity: {
      'visitor.events.5m': eventsOf(all, at, FIVE_MINUTES_MS),
      'visitor.events.1h': eventsOf(all, at, HOUR_MS),
      'visitor.events.24h': eventsOf(all, at, DAY_MS),
      'visitor.ips.24h': countSeenWith(all, IPS, at),
      'visitor.countries.24h': countSeenWith(all, COUNTRIES, at),
      'visitor.linkedIds.24h': countSeenWith(all, ACCOUNTS, at),
      'ip.events.5m': 1 + eventsOf(ofIp, at, FIVE_MINUTES_MS),
      'ip.events.1h': 1 + eventsOf(ofIp, at, HOUR_MS),
      'ip.events.24h': 1 + eventsOf(ofIp, at, DAY_MS),
      'ip.visitors.24h': board.seen(ipKey, VISITORS, at, visitor),
      'linkedId.visitors.24h': ofAccount === null ? null : board.seen(linkedKey, VISITORS, at, visitor),
      'linkedId.ips.24h': ofAccount === null ? null : board.seen(linkedKey, ITS_IPS, at, ip),
    },
    places,
    counters: own,
    visitor,
  }
}

/** What the event adds to the counters of others, seen at `place`; null: nowhere, or nowhere to be trusted. Completes the visitor's. */
export function finishTally(
  { at, acceptedAt, ip, ipKey, linkedKey }: EventCountsOf,
  { counters, visitor }: Pick<EventTally, 'counters' | 'visitor'>,
  place: GeoPlace | null,
): Counted {
  if (place !== null) addPlace(counters, place)
  const counted = { at, ipKey, linkedKey, visitor, ip, lat: place?.lat ?? null, lng: place?.lng ?? null }
  counters.traces ??= []
  addTraces(counters.traces, counted, acceptedAt)
  return counted
}
