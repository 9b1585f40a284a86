// What the counters kept of one visitor come to at a moment, for whoever reads them outside of a decision.

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { countEvents, countSeenWith, noCounters, unpackCounters } from './counters.ts'
import { ACCOUNTS, COUNTRIES, IPS } from './tally.ts'

/** By the names that `velocity` has for a visitor: how many events, and how many different things they were seen with. */
export interface HeldCounts {
  readonly events: { readonly '5m': number; readonly '1h': number; readonly '24h': number }
  readonly ips: { readonly '24h': number }
  readonly countries: { readonly '24h': number }
  readonly linkedIds: { readonly '24h': number }
}

/** `packed`: as a visitor's record has them; empty where nothing is counted. Windows end with `at`, milliseconds. */
export function heldCountsAt(packed: Uint8Array, at: number): HeldCounts {
  const counters = packed.length === 0 ? noCounters() : unpackCounters(packed)
  const events = (windowMs: number) => countEvents(counters, at, windowMs)
  const seen = (set: number) => countSeenWith([counters], set, at)
  return {
    events: { '5m': events(5 * MINUTE_MS), '1h': events(HOUR_MS), '24h': events(DAY_MS) },
    ips: { '24h': seen(IPS) },
    countries: { '24h': seen(COUNTRIES) },
    linkedIds: { '24h': seen(ACCOUNTS) },
  }
}
