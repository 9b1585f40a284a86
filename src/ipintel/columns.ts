// Databases of places and networks as CSV or TSV: both ends of a range, then what is said of it. The layouts are those of
// ip-location-db, DB-IP Lite and IPtoASN, told apart by separator and number of columns.

import { geoText, networkText } from './facts.ts'
import { readSourceLines, splitFields } from './lines.ts'
import type { RangesBuilder } from './ranges.ts'
import { addSpan, endsSpan } from './spans.ts'

export type DatabaseKind = 'geo' | 'asn'

/** start, end, AS number, country, name: separated by tabs. */
const IPTOASN = { asn: 2, country: 3, name: 4 }
/** start, end, country, state, state, city, postcode, latitude, longitude, zone */
const CITY_COLUMNS = 10
/** start, end, continent, country, state, city, latitude, longitude */
const DBIP_CITY_COLUMNS = 8

function textOf(fields: readonly string[], kind: DatabaseKind, tabs: boolean): string | null {
  if (kind === 'asn')
    return tabs ? networkText(fields[IPTOASN.asn], fields[IPTOASN.name]) : networkText(fields[2], fields[3])
  if (tabs) return geoText({ country: fields[IPTOASN.country] })
  if (fields.length >= CITY_COLUMNS) {
    const [, , country, region, , city, , lat, lng, timezone] = fields
    return geoText({ country, region, city, lat, lng, timezone })
  }
  if (fields.length === DBIP_CITY_COLUMNS) {
    const [, , , country, region, city, lat, lng] = fields
    return geoText({ country, region, city, lat, lng })
  }
  return geoText({ country: fields[2] })
}

/** Adds the ranges of the lines. Throws BadSource when too few of them can be read. */
export function addColumns(ranges: RangesBuilder, bytes: Buffer, kind: DatabaseKind): void {
  let isFirst = true
  // Lines say the same of many ranges, one after the other: what was made of the rest of a line is kept for a while.
  const values = new Map<string, number>()

  function valueFor(fields: readonly string[], tabs: boolean): number {
    const key = fields.slice(2).join('\t')
    const known = values.get(key)
    if (known !== undefined) return known
    const text = textOf(fields, kind, tabs)
    const value = text === null ? 0 : ranges.intern(text)
    if (values.size >= 65_536) values.clear()
    values.set(key, value)
    return value
  }

  readSourceLines(bytes, (line) => {
    const isHeader = isFirst
    isFirst = false
    if (line.startsWith('#')) return true
    const tabs = line.includes('\t')
    const fields = splitFields(line, tabs ? '\t' : ',')
    if (fields.length < 3) return false
    const span = endsSpan((fields[0] as string).trim(), (fields[1] as string).trim())
    if (span === null) return isHeader && /[a-z]/i.test(fields[0] as string)
    const value = valueFor(fields, tabs)
    // Of ranges that nobody has announced nothing is said.
    if (value !== 0) addSpan(ranges, span, value)
    return true
  })
}
