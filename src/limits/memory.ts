// The limits in the memory of one process: for one process, or while the shared ones cannot be asked.
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { checkTake, counterName } from './checks.ts'
import type { Limits, RateRule, Taken, Window } from './limits.ts'

export interface MemoryLimitsConfig {
  readonly clock: Clock
  /** Counters held at a time; beyond that the one used longest ago is forgotten, and starts again from nothing. */
  readonly countersMax?: number
}

const COUNTERS_MAX = 100_000

interface Counter {
  /** Fixed: the number of the window and the units in it. */
  window: number
  used: number
  /** Sliding: the millisecond of every unit, oldest first from `head` on. */
  stamps: number[]
  head: number
}

export async function openMemoryLimits({ clock, countersMax = COUNTERS_MAX }: MemoryLimitsConfig): Promise<Limits> {
  const counters = new Map<string, Counter>()
  let closed = false

  /** The counter, now the one used last. */
  const find = (name: string): Counter => {
    const counter = counters.get(name) ?? { window: -1, used: 0, stamps: [], head: 0 }
    counters.delete(name)
    counters.set(name, counter)
    if (counters.size > countersMax) counters.delete(counters.keys().next().value as string)
    return counter
  }

  const takeAll = (key: string, rules: readonly RateRule[], cost: number): Taken => {
    const now = Math.floor(clock.now())
    const places = rules.map((rule) => {
      const counter = find(`${key} ${counterName(rule)}`)
      turn(counter, rule, now)
      return { counter, rule }
    })
    const retryAfterMs = Math.max(...places.map(({ counter, rule }) => waitOf(counter, rule, cost, now)))
    if (retryAfterMs === 0) for (const { counter, rule } of places) add(counter, rule, cost, now)
    return {
      allowed: retryAfterMs === 0,
      retryAfterMs,
      windows: places.map(({ counter, rule }) => describe(counter, rule, now)),
    }
  }

  return {
    async take(key, rules, cost = 1) {
      if (closed) throw new Unavailable('the limits are closed')
      checkTake(key, rules, cost)
      return takeAll(key, rules, cost)
    },
    async close() {
      closed = true
      counters.clear()
    },
  }
}

/** Forgets what is outside of the window by now. */
function turn(counter: Counter, { kind, windowMs }: RateRule, now: number): void {
  if (kind === 'fixed') {
    const window = Math.floor(now / windowMs)
    if (counter.window !== window) counter.used = 0
    counter.window = window
    return
  }
  const { stamps } = counter
  // The clock was set back: what it counted in the future tells nothing.
  if ((stamps.at(-1) ?? 0) > now) counter.head = stamps.length
  while (counter.head < stamps.length && (stamps[counter.head] as number) <= now - windowMs) counter.head += 1
  if (counter.head * 2 > stamps.length) {
    counter.stamps = stamps.slice(counter.head)
    counter.head = 0
  }
  counter.used = counter.stamps.length - counter.head
}

/** Milliseconds until the rule allows it; a cost above the limit is told to wait for one window. */
function waitOf(counter: Counter, { kind, limit, windowMs }: RateRule, cost: number, now: number): number {
  const over = counter.used + cost - limit
  if (over <= 0) return 0
  if (kind === 'fixed') return (counter.window + 1) * windowMs - now
  const leaving = over <= counter.used ? counter.stamps[counter.head + over - 1] : undefined
  return leaving === undefined ? windowMs : leaving + windowMs - now
}

function add(counter: Counter, { kind }: RateRule, cost: number, now: number): void {
  counter.used += cost
  if (kind === 'sliding') for (let unit = 0; unit < cost; unit += 1) counter.stamps.push(now)
}

function describe(counter: Counter, { kind, limit, windowMs }: RateRule, now: number): Window {
  const newest = counter.stamps.at(-1)
  const emptyAt = newest === undefined ? now : newest + windowMs
  return {
    limit,
    remaining: Math.max(limit - counter.used, 0),
    resetAt: kind === 'fixed' ? (counter.window + 1) * windowMs : emptyAt,
  }
}
