// What a database says of an address, in the form a table keeps it: one text per distinct place or network, cleaned, with
// the time zone of its coordinates.

import timezoneAt from 'tz-lookup'
import { cleanText } from './lines.ts'

/** Where an address is. */
export interface Geo {
  /** Two capital letters. */
  readonly country: string | null
  readonly region: string | null
  readonly city: string | null
  readonly lat: number | null
  readonly lng: number | null
  /** IANA name. */
  readonly timezone: string | null
}

/** Who announces an address. */
export interface Network {
  readonly asn: number
  readonly name: string | null
}

type Raw = Readonly<Partial<Record<keyof Geo, unknown>>>

const ASN_MAX = 4_294_967_294
const zoneIsKnown = new Map<string, boolean>()

function isZone(name: string): boolean {
  const known = zoneIsKnown.get(name)
  if (known !== undefined) return known
  let isKnown = true
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: name })
  } catch {
    isKnown = false
  }
  if (zoneIsKnown.size < 1_024) zoneIsKnown.set(name, isKnown)
  return isKnown
}

function degrees(value: unknown, limit: number): number | null {
  if (value === '' || value === null || value === undefined) return null
  const number = Number(value)
  return Math.abs(number) <= limit ? Math.round(number * 10_000) / 10_000 : null
}

/** The text of a place; null when nothing is said that could be used. */
export function geoText(raw: Raw): string | null {
  const country = typeof raw.country === 'string' && /^[A-Z]{2}$/.test(raw.country) ? raw.country : null
  const [lat, lng] = [degrees(raw.lat, 90), degrees(raw.lng, 180)]
  const isPlaced = lat !== null && lng !== null
  if (country === null && !isPlaced) return null
  const said = cleanText(raw.timezone)
  const timezone = said !== null && isZone(said) ? said : isPlaced ? timezoneAt(lat, lng) : null
  const at = isPlaced ? [lat, lng] : [null, null]
  return JSON.stringify([country, cleanText(raw.region), cleanText(raw.city), ...at, timezone])
}

export function readGeo(text: string): Geo {
  const [country, region, city, lat, lng, timezone] = JSON.parse(text) as [
    string | null,
    string | null,
    string | null,
    number | null,
    number | null,
    string | null,
  ]
  return { country, region, city, lat, lng, timezone }
}

/** The text of a network, from a number or `AS13335`; null when that is none. */
export function networkText(asn: unknown, name: unknown): string | null {
  const digits = /^(?:AS)?(\d{1,10})$/i.exec(String(asn))?.[1]
  const number = Number(digits ?? 0)
  return number < 1 || number > ASN_MAX ? null : `${number} ${cleanText(name) ?? ''}`
}

export function readNetwork(text: string): Network {
  const gap = text.indexOf(' ')
  return { asn: Number(text.slice(0, gap)), name: text.slice(gap + 1) || null }
}
