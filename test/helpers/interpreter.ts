// The meaning of a condition, written down as plainly as possible from the contract: an interpreter that walks the tree and
// the event for every question, and shares nothing with the registry. Every compiled form must agree with it on everything.

import type { Facts, SignalName } from '../../src/domain/event.ts'
import type { ConditionGroup, Leaf } from '../../src/domain/rule.ts'

export interface World {
  readonly scores: boolean
  readonly member: (list: string, value: string) => boolean | null
  /** Instead of `valueAt`, for callers that ask for the same values again and again. */
  readonly read?: (path: string, facts: Facts) => unknown
}

const MOMENTS = ['firstSeenAt', 'lastSeenAt', 'timestamp']
const SIGNAL = /^signals\.([a-zA-Z]+)(\.detected)?$/

/** The value at a path, undefined or null when there is none. */
export function valueAt(path: string, facts: Facts): unknown {
  if (path.startsWith('tag.')) {
    let value: unknown = facts.tag
    for (const key of path.slice('tag.'.length).split('.')) {
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
      value = isObject && Object.keys(value as object).includes(key) ? (value as Record<string, unknown>)[key] : null
    }
    return typeof value === 'number' && !Number.isFinite(value) ? null : value
  }
  const value = ownValue(path, facts)
  // No text and an empty text are one, and so are no number and one that is none.
  if (value === '' || (typeof value === 'number' && !Number.isFinite(value))) return null
  return value
}

function ownValue(path: string, facts: Facts): unknown {
  const { device, ip, signals, url } = facts
  const signal = SIGNAL.exec(path)
  if (signal !== null) return signals[signal[1] as SignalName].state === 'detected'
  if (path.startsWith('velocity.')) {
    return (facts.velocity as Readonly<Record<string, number | null>> | null)?.[path.slice('velocity.'.length)]
  }
  const degrees = (x: number | null) =>
    ip.lat === null || ip.lng === null || x === null ? null : Math.round(x * 10_000) / 10_000
  const page = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#]*)([^?#]*)/i.exec(url ?? '')
  switch (path) {
    case 'ip':
      return ip.address
    case 'ip.asn':
      return ip.asn === 0 ? null : ip.asn
    case 'ip.lat':
      return degrees(ip.lat)
    case 'ip.lng':
      return degrees(ip.lng)
    case 'device.os':
      return device.platform
    case 'device.screen.w':
      return device.screen && device.screen.h > 0 && device.screen.w > 0 ? device.screen.w : null
    case 'device.screen.h':
      return device.screen && device.screen.h > 0 && device.screen.w > 0 ? device.screen.h : null
    case 'signals.bot.type':
      return signals.botType
    case 'signals.vpn.provider':
      return signals.vpnProvider
    case 'possibleVisitorId':
      return facts.possible?.visitorId || null
    case 'possibleConfidence':
      return facts.possible?.confidence ?? null
    case 'request.keyKind':
      return facts.keyKind
    case 'time.hourUtc':
      return new Date(facts.timestamp).getUTCHours()
    case 'url.host':
      return page?.[1]?.toLowerCase()
    case 'url.path':
      return page === null ? null : page[2] || '/'
    default: {
      let value: unknown = facts
      for (const key of path.split('.')) value = (value as Readonly<Record<string, unknown>> | null | undefined)?.[key]
      return value
    }
  }
}

export function matches(item: ConditionGroup | Leaf, facts: Facts, world: World): boolean {
  if (!('rules' in item)) return leafHolds(item, facts, world)
  return item.operator === 'AND'
    ? item.rules.every((inner) => matches(inner, facts, world))
    : item.rules.some((inner) => matches(inner, facts, world))
}

function leafHolds({ field: path, operator, value }: Leaf, facts: Facts, world: World): boolean {
  const hidden = path.startsWith('scores.') && !world.scores
  const { read = valueAt } = world
  const actual = hidden ? null : (read(path, facts) ?? null)

  if (operator === 'exists') return (actual !== null) === value
  if (actual === null) return false

  if (operator === 'in' || operator === 'not_in') {
    let inside: boolean
    if (typeof value === 'string') {
      const held = world.member(value.toLowerCase(), typeof actual === 'string' ? actual : '')
      if (held === null) return false
      inside = held
    } else {
      inside = (value as unknown[]).some((one) => one === actual)
    }
    return operator === 'in' ? inside : !inside
  }

  const wanted = MOMENTS.includes(path) ? Date.parse(value as string) : value
  switch (operator) {
    case 'equals':
      return actual === wanted
    case 'not_equals':
      return actual !== wanted
    case 'contains':
      if (Array.isArray(actual)) return actual.some((one) => one === wanted)
      return typeof actual === 'string' && typeof wanted === 'string' && actual.indexOf(wanted) >= 0
    default: {
      if (typeof actual !== 'number' || typeof wanted !== 'number') return false
      if (operator === 'gt') return actual > wanted
      if (operator === 'gte') return actual >= wanted
      if (operator === 'lt') return actual < wanted
      return actual <= wanted
    }
  }
}
