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
  add(item: Pick<DecidedItem, 'requestId' | 'workspace' | 'env' | 'matches' | 'acceptedAt'>): void
  /** How many rules matched since they were last taken. */
  size(): number
  /** What was added since the last call. */
  take(): readonly MatchCount[]
}

export function createMatchCounts(): MatchCounts {
  let counts = new Map<string, { -readonly [Field in keyof MatchCount]: MatchCount[Field] }>()
  return {
    add({ requestId, workspace, env, matches, acceptedAt }) {
      if (matches.length === 0) return
      const at = requestTime(requestId) ?? acceptedAt
      const backdated = at < acceptedAt - BACKDATED_MS
      for (const [ruleId, live] of matches) {
        const id = `${workspace}/${env}/${ruleId}`
        let count = counts.get(id)
        if (count === undefined) {
          count = { id, matched: 0, monitored: 0, lastMatchAt: 0, backdated: false }
          counts.set(id, count)
        }
        count.matched += live
        count.monitored += 1 - live
        if (live === 0 || at <= count.lastMatchAt) continue
        count.lastMatchAt = at
        count.backdated = backdated
      }
    },
    size: () => counts.size,
    take() {
      const taken = [...counts.values()]
      counts = new Map()
      return taken
    },
  }
}
