// Reads RFC 3339 moments. Date.parse alone takes local times, impossible days and other dialects.

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?([Zz]|[+-]\d{2}:\d{2})$/

/** Milliseconds since the epoch of an RFC 3339 text (seconds optional, finer fractions cut), or null when it is none. */
export function parseDatetime(text: string): number | null {
  const parts = RFC3339.exec(text)
  if (parts === null) return null
  const [year, month, day, hour, minute] = parts.slice(1, 6).map(Number) as [number, number, number, number, number]
  const second = Number(parts[6] ?? 0)
  const ms = Number((parts[7] ?? '').slice(0, 3).padEnd(3, '0'))
  if (hour > 23 || minute > 59 || second > 59) return null
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  date.setUTCHours(hour, minute, second, ms)
  // An impossible day or month rolls over instead of failing.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return null
  const zone = parts[8] as string
  if (zone.length === 1) return date.getTime()
  const offsetHours = Number(zone.slice(1, 3))
  const offsetMinutes = Number(zone.slice(4, 6))
  if (offsetHours > 23 || offsetMinutes > 59) return null
  const offsetMs = (offsetHours * 60 + offsetMinutes) * 60_000
  return zone[0] === '-' ? date.getTime() + offsetMs : date.getTime() - offsetMs
}
