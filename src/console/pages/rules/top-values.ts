// The values a field had in the latest events, the most frequent first.

import type { Event } from '../../lib/types.ts'

export interface TopValue {
  readonly value: string
  readonly count: number
}

const SHOWN_MAX = 12
/** Members of an event whose path for rules is another than where they stand. */
const ELSEWHERE: Readonly<Record<string, string>> = { 'device.os': 'device.platform' }

export function topValues(events: readonly Event[], path: string): readonly TopValue[] {
  const counts = new Map<string, number>()
  for (const event of events) {
    for (const value of valuesAt(event, ELSEWHERE[path] ?? path)) counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count)
    .slice(0, SHOWN_MAX)
}

function valuesAt(event: unknown, path: string): readonly string[] {
  let at = event
  for (const name of path.split('.')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return []
    at = (at as Readonly<Record<string, unknown>>)[name]
  }
  const all = Array.isArray(at) ? at : [at]
  return all.filter((one) => typeof one === 'string' || typeof one === 'number').map(String)
}
