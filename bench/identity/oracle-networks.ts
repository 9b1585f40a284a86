// How likely a device comes from an address, and with a time zone and languages: homes that change theirs now and then,
// carriers, places away, journeys, VPN exits. What kind of network an address is of can be read off it here.

import { hash32 } from '../../src/domain/ids.ts'
import { isMobile } from './devices.ts'
import type { Platform } from './hardware.ts'
import { SAME_OTHER_PLACE, SESSION_MS, STICKY_MS } from './life.ts'
import { COUNTRIES, LIST_WEIGHTS, type Place } from './networks.ts'
import type { Rates } from './parameters.ts'

const DAY_MS = 86_400_000
/** Chance of one address where all of a country are alike likely, and of the parts of one over IPv6 that are drawn. */
const ANY_ADDRESS = 1 / (65_536 * 254)
const ANY_IN_SUBNET = 1 / 254
const ANY_V6 = 2 ** -48
const ANY_V6_IN_SUBNET = 2 ** -16
/** What one device's own part of an address is worth on its day. */
const OWN_PART_AGREES = 1e9

export interface Address {
  readonly ip: string
  readonly kind: 'home' | 'carrier' | 'away' | 'vpn'
  /** The country's first octet; null where the address does not tell. */
  readonly octet: number | null
  readonly v6: boolean
  /** What a household shares until its lease ends, and what mostly stays then. */
  readonly line: string
  readonly subnet: string
  /** The device's own part for a day; empty over IPv4. */
  readonly own: string
  readonly carrier: number
  readonly region: number
}

/** Where a household or a fleet was seen at home. */
export interface Home {
  line: string
  subnet: string
  sinceMs: number
  lastMs: number
  moved: boolean
}

/** What is known of where one device comes from. */
export interface Whereabouts {
  readonly platform: Platform
  readonly place: Place
  readonly isFleet: boolean
  readonly home: { readonly known: Home | null; readonly v6: boolean | null }
  /** The last visit; null before the first. */
  readonly last: { readonly ip: string; readonly atMs: number } | null
  /** Visits from places away, by address. */
  readonly away: ReadonlyMap<string, number>
  readonly carrier: number | null
  readonly region: number | null
  readonly vpn: number
  readonly travels: number
  /** The journey it was on. */
  readonly journey: { readonly zone: string; readonly ip: string | null } | null
  readonly own: { readonly day: number; readonly part: string } | null
}

export interface From {
  readonly address: Address
  /** Null where it is hidden. */
  readonly zone: string | null
  readonly atMs: number
}

const zoneShare = (zones: readonly string[], zone: string): number =>
  zones.includes(zone) ? (zone === zones[0] ? 0.5 : 0) + 0.5 / zones.length : 0

/** Chance of a list of languages in a country. */
export function languagesShare(country: string, languages: readonly string[]): number {
  const lists = COUNTRIES.find(([code]) => code === country)?.[4] ?? []
  const weights = LIST_WEIGHTS.slice(0, lists.length)
  const at = lists.indexOf(languages.join())
  return at < 0 ? 0 : (weights[at] as number) / weights.reduce((sum, weight) => sum + weight, 0)
}

const WEIGHTS_SUM = COUNTRIES.reduce((sum, [, weight]) => sum + weight, 0)

/** Chance that somebody lives in such a place; what is null tells nothing. */
export function placeShare(octet: number | null, zone: string | null, languages: readonly string[] | null): number {
  let share = 0
  for (const [country, weight, first, zones] of COUNTRIES) {
    if (octet !== null && octet !== first) continue
    const speaks = languages === null ? 1 : languagesShare(country, languages)
    share += (weight / WEIGHTS_SUM) * (zone === null ? 1 : zoneShare(zones, zone)) * speaks
  }
  return share
}

/** Reads addresses as `networks.ts` writes them. */
export function addressReader(rates: Rates): (ip: string) => Address {
  const regions = Math.max(1, Math.round(rates['carriers.regions']))
  const perRegion = Math.max(2, Math.round(rates['carriers.addresses'] / regions))
  const carriers = new Map<string, { octet: number; carrier: number }>()
  for (const [country, , octet] of COUNTRIES) {
    for (let carrier = 0; carrier < Math.max(1, Math.round(rates['carriers.perCountry'])); carrier++) {
      const name = hash32(`${country}/carrier/${carrier}`)
      const key =
        name / 2 ** 32 < rates['network.ipv6'] ? `2600:${(name & 0xffff).toString(16)}` : `${octet}/${name & 255}`
      if (!carriers.has(key)) carriers.set(key, { octet, carrier })
    }
  }
  const nowhere = { own: '', carrier: -1, region: -1 }
  return (ip) => {
    if (ip.includes(':')) {
      const [head = '', tail = ''] = ip.split('::')
      const before = head.split(':')
      const behind = tail === '' ? [] : tail.split(':')
      const groups = [...before, ...Array<string>(Math.max(0, 8 - before.length - behind.length)).fill('0'), ...behind]
      const subnet = groups.slice(0, 3).join(':')
      const line = groups.slice(0, 4).join(':')
      const own = groups.slice(4).join(':')
      if (groups[0] !== '2600') return { ...nowhere, ip, kind: 'home', octet: null, v6: true, line, subnet, own }
      const { octet = null, carrier = -1 } = carriers.get(`2600:${groups[1]}`) ?? {}
      const region = Number.parseInt(groups[2] as string, 16) >> 2
      return { ip, kind: 'carrier', octet, v6: true, line, subnet, own: '', carrier, region }
    }
    const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number)
    const rest = { ...nowhere, ip, v6: false, line: ip, subnet: `${a}.${b}.${c}` }
    if (a === 45 && b === 83) return { ...rest, kind: 'vpn', octet: null }
    const octet = a - (a % 4)
    if (a % 4 === 0) return { ...rest, kind: 'home', octet }
    if (a % 4 === 2) return { ...rest, kind: 'away', octet }
    const { carrier = -1 } = carriers.get(`${octet}/${b}`) ?? {}
    return { ...rest, kind: 'carrier', octet, carrier, region: Math.floor((c * 64 + (d - 1) / 3) / perRegion) }
  }
}

export interface Networks {
  /** Chance of address and zone for a device that is known, or one of a household that is. */
  chance(of: Whereabouts, from: From): number
  /** The same for somebody of whom nothing is known but that he lives in the address's country. */
  strangers(platform: Platform, address: Address): number
}

export function networksOf(rates: Rates): Networks {
  const leaseMs = rates['network.leaseDays'] * DAY_MS
  const leases = Array.from({ length: 24 }, (_, i) => leaseMs * (0.4 + (1.2 * (i + 0.5)) / 24))
  const perCarrier = Math.max(1, Math.round(rates['carriers.perCountry']))
  const regions = Math.max(1, Math.round(rates['carriers.regions']))
  const perRegion = Math.max(2, Math.round(rates['carriers.addresses'] / regions))
  const exits = Math.max(1, Math.round(rates['vpn.exits']))
  const vpnUse = rates['vpn.use']
  const leavesPerMs = rates['travel.perYear'] / (365 * DAY_MS)
  const returnsPerMs = 1 / (rates['travel.days'] * DAY_MS)

  /** Chance that no lease ends within a time, of a home whose leases end. */
  const lasts = (ms: number): number =>
    leases.reduce((sum, lease) => sum + Math.max(0, 1 - ms / lease), 0) / leases.length
  const outlasts = (ms: number): number => leases.filter((lease) => lease > ms).length / leases.length

  function sameAddress({ sinceMs, lastMs, moved }: Home, atMs: number): number {
    if (moved) {
      const before = outlasts(lastMs - sinceMs)
      return before === 0 ? 0 : outlasts(atMs - sinceMs) / before
    }
    const fixed = rates['network.static']
    return (fixed + (1 - fixed) * lasts(atMs - sinceMs)) / (fixed + (1 - fixed) * lasts(lastMs - sinceMs))
  }

  const anyHome = (v6: boolean): number => (v6 ? ANY_V6 : ANY_ADDRESS)

  function homeChance({ home, isFleet, place }: Whereabouts, { address, atMs }: From): number {
    const { v6, line, subnet, octet } = address
    if ((home.v6 !== null && home.v6 !== v6) || (octet !== null && octet !== place.octet)) return 0
    const { known } = home
    if (known === null) {
      const kind = isFleet ? 1 : v6 ? rates['network.ipv6'] : 1 - rates['network.ipv6']
      return kind * anyHome(v6)
    }
    const same = isFleet ? 1 : sameAddress(known, atMs)
    if (line === known.line) return same
    const near = subnet === known.subnet ? rates['network.sameSubnet'] * (v6 ? ANY_V6_IN_SUBNET : ANY_IN_SUBNET) : 0
    return (1 - same) * (near + (1 - rates['network.sameSubnet']) * anyHome(v6))
  }

  function awayChance({ away, isFleet, place }: Whereabouts, { address }: From): number {
    if (address.octet !== place.octet) return 0
    const other = isFleet ? 1 : SAME_OTHER_PLACE
    const times = away.get(address.ip)
    const repeated = [...away.values()].some((n) => n > 1)
    // Which of the places seen once is the usual one is open.
    const perPlace = repeated || away.size === 0 ? 0 : other / (other * away.size + 1 - other)
    const isKnown = repeated ? 1 : perPlace * away.size
    const here = times === undefined ? 0 : repeated ? Number(times > 1) : perPlace
    return here * other + (1 - isKnown) * other * ANY_ADDRESS + (1 - other) * ANY_ADDRESS
  }

  function carrierChance({ carrier, region, place }: Whereabouts, { address }: From): number {
    if (address.octet !== place.octet) return 0
    const its = carrier === null ? 1 / perCarrier : Number(carrier === address.carrier)
    const part = region === null ? 1 / regions : Number(region === address.region)
    return its * part * (address.v6 ? ANY_V6 / 4 : 1 / perRegion)
  }

  /** Not on a journey, not over a VPN. */
  function usual(of: Whereabouts, from: From): number {
    const { kind } = from.address
    if (of.isFleet) {
      if (kind === 'home') return rates['fleet.office'] * homeChance(of, from)
      return kind === 'away' ? (1 - rates['fleet.office']) * awayChance(of, from) : 0
    }
    const mobile = isMobile(of.platform)
    const home = rates[mobile ? 'network.mobileHome' : 'network.desktopHome']
    if (kind === 'home') return home * homeChance(of, from)
    const carrier = mobile ? rates['network.mobileCarrier'] : 0
    if (kind === 'carrier') return (1 - home) * carrier * carrierChance(of, from)
    return kind === 'away' ? (1 - home) * (1 - carrier) * awayChance(of, from) : 0
  }

  function chance(of: Whereabouts, from: From): number {
    const { address, zone, atMs } = from
    const { last, journey, place } = of
    const elapsedMs = last === null ? 0 : atMs - last.atMs
    const both = leavesPerMs + returnsPerMs
    const turned = last === null ? 0 : (of.travels * leavesPerMs * (1 - Math.exp(-both * elapsedMs))) / both
    const still = journey === null ? 0 : Math.exp(-returnsPerMs * elapsedMs)
    const gone = Math.min(turned, 1 - still)
    const there = 1 - still - gone
    const isThere = zone === null || zone === place.zone ? there : 0
    const isStill = journey !== null && (zone === null || zone === journey.zone) ? still : 0
    // Where a journey led to, and that address of all there are.
    const isGone = gone * placeShare(address.kind === 'away' ? address.octet : null, zone, null)

    const over = address.kind === 'vpn' ? 1 / exits : 0
    const onJourney = journey?.ip == null ? ANY_ADDRESS : Number(journey.ip === address.ip)
    const strange = address.kind === 'away' ? 1 : 0
    const plain =
      (isThere === 0 ? 0 : isThere * usual(of, from)) + isStill * strange * onJourney + isGone * strange * ANY_ADDRESS
    const moved = (1 - of.vpn * vpnUse) * plain + of.vpn * vpnUse * over * (isThere + isStill + isGone)
    if (last === null || elapsedMs >= STICKY_MS) return ownPart(of, from) * moved
    const sticks = elapsedMs < SESSION_MS ? 1 : rates['network.sticky']
    const stayed = address.ip === last.ip ? isThere + isStill + isGone : 0
    return sticks * stayed + (1 - sticks) * ownPart(of, from) * moved
  }

  /** Over IPv6 a device at home keeps its part of the address for a day. */
  function ownPart({ own }: Whereabouts, { address, atMs }: From): number {
    if (own === null || address.own === '' || own.day !== Math.floor(atMs / DAY_MS)) return 1
    return own.part === address.own ? OWN_PART_AGREES : 0
  }

  return {
    chance,
    strangers(platform, { kind, v6 }) {
      const over = rates['vpn.share'] * vpnUse
      if (kind === 'vpn') return over / exits
      const mobile = isMobile(platform)
      const home = rates[mobile ? 'network.mobileHome' : 'network.desktopHome']
      const carrier = mobile ? rates['network.mobileCarrier'] : 0
      const kinds = v6 ? rates['network.ipv6'] : 1 - rates['network.ipv6']
      if (kind === 'home') return (1 - over) * home * kinds * anyHome(v6)
      const ofCarrier = v6 ? ANY_V6 / 4 : 1 / perRegion
      if (kind === 'carrier') return (((1 - over) * (1 - home) * carrier) / perCarrier / regions) * ofCarrier
      return (1 - over) * (1 - home) * (1 - carrier) * ANY_ADDRESS
    },
  }
}
