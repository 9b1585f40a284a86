// Time zones compared by what a clock in them shows, since names have aliases and neighbours share their hours.

const QUARTER_MS = 900_000
const FORMATS_MAX = 64
const OFFSETS_MAX = 8_192
const COUNTRIES_MAX = 512

// Making a formatter takes 100 µs and formatting 3: zones and quarters of an hour repeat, so both are kept. Offsets change
// only where a quarter begins.
const formats = new Map<string, Intl.DateTimeFormat | null>()
const offsets = new Map<string, number | null>()
const zonesByCountry = new Map<string, readonly string[]>()

function bounded<V>(map: Map<string, V>, key: string, value: V, entriesMax: number): V {
  if (map.size >= entriesMax) map.clear()
  map.set(key, value)
  return value
}

function formatOf(zone: string): Intl.DateTimeFormat | null {
  const known = formats.get(zone)
  if (known !== undefined) return known
  let format: Intl.DateTimeFormat | null = null
  try {
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
  } catch {
    // No such zone: whatever a client may send.
  }
  return bounded(formats, zone, format, FORMATS_MAX)
}

function measure(zone: string, atMs: number): number | null {
  const text = formatOf(zone)?.format(atMs)
  if (text === undefined) return null
  const [, sign, hours = '0', minutes = '0'] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(text) ?? []
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}

/** Minutes a zone is ahead of UTC at an instant; null when there is no such zone. */
export function offsetMinutes(zone: string, atMs: number): number | null {
  const key = `${Math.floor(atMs / QUARTER_MS)} ${zone}`
  const known = offsets.get(key)
  return known === undefined ? bounded(offsets, key, measure(zone, atMs), OFFSETS_MAX) : known
}

/** Newer engines have the method, older ones the member. */
interface Zoned extends Intl.Locale {
  readonly timeZones?: readonly string[]
  getTimeZones?(): readonly string[] | undefined
}

/** The zones of a country; empty when it is not known. */
export function zonesOf(country: string): readonly string[] {
  const known = zonesByCountry.get(country)
  if (known !== undefined) return known
  const locale: Zoned = new Intl.Locale(`und-${country}`)
  return bounded(zonesByCountry, country, locale.getTimeZones?.() ?? locale.timeZones ?? [], COUNTRIES_MAX)
}

const DIFFERENT_MINUTES = 60

/**
 * Whether a clock in `zone` differs by an hour or more from every clock it could show where the address is: in the zone of
 * its coordinates and in all zones of its country. null when one side is not known.
 */
export function zoneDiffers(
  zone: string,
  place: { readonly country: string | null; readonly timezone: string | null },
  atMs: number,
): boolean | null {
  if (place.country === null && place.timezone === null) return null
  const shown = offsetMinutes(zone, atMs)
  if (shown === null) return null
  let isKnown = false
  const near = (other: string): boolean => {
    const offset = offsetMinutes(other, atMs)
    if (offset === null) return false
    isKnown = true
    return Math.abs(offset - shown) < DIFFERENT_MINUTES
  }
  if (place.timezone !== null && near(place.timezone)) return false
  if (place.country !== null && zonesOf(place.country).some(near)) return false
  return isKnown ? true : null
}
