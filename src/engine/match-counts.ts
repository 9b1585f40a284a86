// How often rules matched since the last checkpoint, and when last.

import type { DecidedItem } from '../events/record.ts'

export interface MatchCount {
  /** workspace/env/ruleId */
  readonly id: string
  readonly matched: number
  readonly monitored: number
  readonly lastMatchAt: number
}

export interface MatchCounts {
  add(item: Pick<DecidedItem, 'workspace' | 'env' | 'matches' | 'acceptedAt'>): void
  /** What was added since the last call. */
  take(): readonly MatchCount[]
}

export function createMatchCounts(): MatchCounts {
  let counts = new Map<string, MatchCount>()
  return {
    add({ workspace, env, matches, acceptedAt }) {
      for (const [ruleId, live] of matches) {
        const id = `${workspace}/${env}/${ruleId}`
        const count = counts.get(id) ?? { id, matched: 0, monitored: 0, lastMatchAt: 0 }
        counts.set(id, {
          id,
          matched: count.matched + live,
          monitored: count.monitored + 1 - live,
          lastMatchAt: live === 1 ? Math.max(count.lastMatchAt, acceptedAt) : count.lastMatchAt,
        })
      }
    },
    take() {
      const taken = [...counts.values()]
      counts = new Map()
      return taken
    },
  }
}
