// Where visits come from: countries with their languages and time zones, homes whose address changes now and then, phone
// carriers that share few addresses among many, VPN exits, hotels. Every address is a function of who and when.

import { hash32 } from '../../src/domain/ids.ts'
import { canonicalIp } from '../../src/domain/ip.ts'
import type { Rng } from '../../test/helpers/rng.ts'
import type { Rates } from './parameters.ts'
import { cumulate, draw } from './values.ts'

export interface Place {
  readonly country: string
  readonly zone: string
  /** As `navigator.languages` lists them. */
  readonly languages: readonly string[]
  readonly octet: number
}

export interface Home {
  readonly place: Place
  readonly key: string
  readonly v6: boolean
  /** Milliseconds; infinite for an address that never changes. */
  readonly leaseMs: number
  readonly phaseMs: number
}

type Row = readonly [code: string, weight: number, octet: number, zones: readonly string[], lists: readonly string[]]

// Weights and lists are assumptions: a service with customers in a dozen countries.
export const COUNTRIES: readonly Row[] = [
  [
    'US',
    30,
    68,
    ['America/New_York', 'America/Chicago', 'America/Los_Angeles', 'America/Denver'],
    ['en-US,en', 'en-US', 'en-US,en,es', 'es-US,es,en'],
  ],
  ['GB', 9, 72, ['Europe/London'], ['en-GB,en-US,en', 'en-GB,en', 'en-US,en']],
  ['DE', 10, 76, ['Europe/Berlin'], ['de-DE,de,en-US,en', 'de,en-US,en', 'en-US,en,de', 'tr-TR,tr,de']],
  ['FR', 7, 80, ['Europe/Paris'], ['fr-FR,fr,en-US,en', 'fr,en-US', 'en-US,en']],
  ['CZ', 6, 84, ['Europe/Prague'], ['cs-CZ,cs,en-US,en', 'cs,en', 'en-US,en', 'sk-SK,sk,cs']],
  ['PL', 5, 88, ['Europe/Warsaw'], ['pl-PL,pl,en-US,en', 'pl', 'uk-UA,uk,ru']],
  ['ES', 5, 92, ['Europe/Madrid'], ['es-ES,es', 'es-ES,es,en', 'ca-ES,ca,es']],
  ['BR', 8, 96, ['America/Sao_Paulo', 'America/Manaus'], ['pt-BR,pt,en-US,en', 'pt-BR,pt', 'en-US,en']],
  ['IN', 9, 104, ['Asia/Kolkata'], ['en-US,en', 'en-IN,en', 'hi-IN,hi,en', 'en-GB,en-US,en']],
  ['JP', 5, 108, ['Asia/Tokyo'], ['ja,en-US,en', 'ja-JP,ja', 'en-US,en']],
  ['ID', 4, 112, ['Asia/Jakarta', 'Asia/Makassar'], ['id-ID,id,en-US,en', 'en-US,en']],
  ['NL', 2, 116, ['Europe/Amsterdam'], ['nl-NL,nl,en-US,en', 'en-US,en', 'nl']],
]
/** Users of a country's first list, the next, and so on. */
export const LIST_WEIGHTS = [0.62, 0.22, 0.1, 0.06]
const DAY_MS = 86_400_000

const countries = cumulate(
  COUNTRIES,
  COUNTRIES.map(([, weight]) => weight),
)

export function drawPlace(r: Rng): Place {
  const [country, , octet, zones, lists] = draw(countries, r)
  // A country's people live mostly in its first zone.
  const zone = r.chance(0.5) ? (zones[0] as string) : r.pick(zones)
  return { country, zone, languages: drawLanguages(lists, r), octet }
}

const drawLanguages = (lists: readonly string[], r: Rng): string[] =>
  draw(cumulate(lists, LIST_WEIGHTS.slice(0, lists.length)), r).split(',')

/** What somebody of the same place may prefer instead. */
export function otherLanguages(place: Place, r: Rng): readonly string[] {
  const row = COUNTRIES.find(([code]) => code === place.country)
  return row === undefined ? place.languages : drawLanguages(row[4], r)
}

const hex = (value: number): string => (value & 0xffff).toString(16)

function canonical(text: string): string {
  const address = canonicalIp(text)
  if (address === null) throw new Error(`${text} is no address`)
  return address
}

export function makeHome(place: Place, key: string, rates: Rates, r: Rng): Home {
  const fixed = r.chance(rates['network.static'])
  const leaseMs = rates['network.leaseDays'] * DAY_MS * (0.4 + 1.2 * r.float())
  return {
    place,
    key,
    v6: r.chance(rates['network.ipv6']),
    leaseMs: fixed ? Number.POSITIVE_INFINITY : leaseMs,
    phaseMs: r.float() * leaseMs,
  }
}

/** The address of a device at home; over IPv6 the device's part changes daily, as privacy extensions have it. */
export function homeAddress(home: Home, device: number, atMs: number, rates: Rates, startMs: number): string {
  const leases = Number.isFinite(home.leaseMs) ? Math.floor((atMs - startMs + home.phaseMs) / home.leaseMs) : 0
  let moves = 0
  for (let i = 1; i <= leases; i++) {
    if (hash32(`${home.key}/move/${i}`) / 2 ** 32 >= rates['network.sameSubnet']) moves++
  }
  const subnet = hash32(`${home.key}/subnet/${moves}`)
  const host = hash32(`${home.key}/host/${leases}`)
  if (!home.v6) return `${home.place.octet}.${subnet & 255}.${(subnet >>> 8) & 255}.${1 + (host % 254)}`
  const own = hash32(`${device}/${Math.floor(atMs / DAY_MS)}`)
  const more = hash32(`${own}`)
  return canonical(
    `2a02:${hex(subnet)}:${hex(subnet >>> 16)}:${hex(host)}:${hex(own)}:${hex(own >>> 16)}:${hex(more)}:${hex(more >>> 16)}`,
  )
}

/** One of the addresses the carrier gives out where the phone is. `carrier` and `region` are the phone's own numbers. */
export function carrierAddress(place: Place, carrier: number, region: number, rates: Rates, r: Rng): string {
  const name = hash32(`${place.country}/carrier/${carrier}`)
  const regions = Math.max(1, Math.round(rates['carriers.regions']))
  if (name / 2 ** 32 < rates['network.ipv6']) {
    const part = (region % regions) * 4 + r.int(4)
    return canonical(
      `2600:${hex(name)}:${hex(part)}:${hex(r.int(65_536))}:${hex(r.int(65_536))}:${hex(r.int(65_536))}:1:1`,
    )
  }
  const perRegion = Math.max(2, Math.round(rates['carriers.addresses'] / regions))
  const index = (region % regions) * perRegion + r.int(perRegion)
  return `${place.octet + 1}.${name & 255}.${(index >> 6) & 255}.${1 + (index & 63) * 3}`
}

export function vpnAddress(rates: Rates, r: Rng): string {
  const exit = r.int(Math.max(1, Math.round(rates['vpn.exits'])))
  return `45.83.${(exit >> 5) & 255}.${1 + (exit & 31) * 7}`
}

/** A network nobody else of the population uses: an office of one's own, a café, a hotel. */
export const strangeAddress = (place: Place, r: Rng): string =>
  `${place.octet + 2}.${r.int(256)}.${r.int(256)}.${1 + r.int(254)}`
