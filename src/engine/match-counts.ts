// How often rules matched since the last checkpoint, and when last: by the time of the events, which a sandbox sets.

import { requestTime } from '../domain/ids.ts'
import type { DecidedItem } from '../events/packed-items.ts'

export interface MatchCount {
  /** workspace/env/ruleId */
  readonly id: string
  readonly matched: number
  readonly monitored: number
  /** The latest event, 0 when none matched. */
  readonly lastMatchAt: number
  /** That event lies in the past: one that is stored already may be later. */
  readonly backdated: boolean
}

/** Between the stamp of an event and its acceptance lies no more than this, unless a sandbox travelled. */
const BACKDATED_MS = 60_000

export interface MatchCounts {
  /** `tenant`: `<workspace>/<env>/`. */
  add(item: Pick<DecidedItem, 'requestId' | 'matches' | 'acceptedAt'>, tenant: string): void
  /** How many rules matched since they were last taken. */
  size(): number
  /** What was added since the last call. */
  take(): readonly MatchCount[]
}

type Count = { -readonly [Field in keyof MatchCount]: MatchCount[Field] }

export function createMatchCounts(): MatchCounts {
  // By environment and rule: an id of both would be a text made for each match, to be looked up once.
  let counts = new Map<string, Map<string, Count>>()
  let size = 0

  function countOf(tenant: string, ruleId: string): Count {
    const known = counts.get(tenant)
    const count = known?.get(ruleId)
    if (count !== undefined) return count
    const rules = known ?? new Map<string, Count>()
    const made = { id: tenant + ruleId, matched: 0, monitored: 0, lastMatchAt: 0, backdated: false }
    counts.set(tenant, rules)
    rules.set(ruleId, made)
    size++
    return made
  }

  return {
    add({ requestId, matches, acceptedAt }, tenant) {
      if (matches.length === 0) return
      const at = requestTime(requestId) ?? acceptedAt
      const backdated = at < acceptedAt - BACKDATED_MS
      for (const [ruleId, live] of matches) {
        const count = countOf(tenant, ruleId)
        count.matched += live
        count.monitored += 1 - live
        if (live === 0 || at <= count.lastMatchAt) continue
        count.lastMatchAt = at
        count.backdated = backdated
      }
    },
    size: () => size,
    take() {
      const taken = [...counts.values()].flatMap((rules) => [...rules.values()])
      counts = new Map()
      size = 0
      return taken
    },
  }
}
