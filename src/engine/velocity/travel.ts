// Whether somebody could have come here from where they were: places of addresses, as far as those can be trusted.

import type { IpFacts, Signals } from '../../domain/event.ts'
import type { AddressFacts } from '../../ipintel/addresses.ts'
import type { GeoPlace } from './counters.ts'

/** Airliners cruise at about 900 km/h (the ground speed that comparable services take as the bound, too). */
const KMH_MAX = 900
/** Databases of cities are often wrong by a few hundred kilometres, mostly within one country: nearer says nothing. */
const KM_MIN = 500
const EARTH_RADIUS_KM = 6371
const MS_PER_HOUR = 3_600_000

const radians = (degrees: number): number => (degrees * Math.PI) / 180

/** Great-circle distance (haversine). */
export function kmBetween(a: Pick<GeoPlace, 'lat' | 'lng'>, b: Pick<GeoPlace, 'lat' | 'lng'>): number {
  const lat = Math.sin(radians(b.lat - a.lat) / 2) ** 2
  const lng = Math.sin(radians(b.lng - a.lng) / 2) ** 2
  const h = lat + Math.cos(radians(a.lat)) * Math.cos(radians(b.lat)) * lng
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(h)))
}

/** Whether a traveller was too fast between the two, whichever came first. */
export function isImpossible(a: GeoPlace, b: GeoPlace): boolean {
  const km = kmBetween(a, b)
  return km >= KM_MIN && km * MS_PER_HOUR > KMH_MAX * Math.abs(a.at - b.at)
}

/** Where the event's user is, or null: the address of a VPN, proxy, relay or data centre is where that stands. */
export function placeOf(
  at: number,
  { lat, lng }: Pick<IpFacts, 'lat' | 'lng'>,
  signals: Pick<Signals, 'vpn' | 'proxy' | 'tor'>,
  address: Pick<AddressFacts, 'hosting' | 'relay' | 'vpn' | 'tor' | 'isPrivate'>,
): GeoPlace | null {
  if (lat === null || lng === null) return null
  if (address.hosting !== null || address.relay !== null || address.vpn !== null) return null
  if (address.tor || address.isPrivate) return null
  if ([signals.vpn, signals.proxy, signals.tor].some(({ state }) => state === 'detected')) return null
  return { at, lat, lng }
}
