// Rules as lists show them, kept by version: a line of a list needs the whole rule once, and a rule may be as long as a request.

import type { Env } from '../../domain/event.ts'
import type { Kv } from '../../kv/kv.ts'
import { openClock, type Watched } from '../../lib/clock-eviction.ts'
import { type RuleSlot, readRules } from '../../records/rules.ts'
import { presentListedRule } from './present.ts'

type Listed = ReturnType<typeof presentListedRule>

interface Kept extends Watched {
  readonly version: number
  readonly shown: Listed
}

/** About 500 bytes each. */
const KEPT_MAX = 20_000

/** Rules in the order of their slots; those that are gone by now are left out. */
export type ListRules = (workspace: string, env: Env, slots: readonly RuleSlot[]) => Promise<Listed[]>

export function openListedRules(kv: Pick<Kv, 'get'>): ListRules {
  const kept = new Map<string, Kept>()
  const makeRoom = openClock(kept, { entriesMax: KEPT_MAX, unusedMsMax: Number.POSITIVE_INFINITY })

  return async (workspace, env, slots) => {
    const keyOf = (id: string) => `${workspace}/${env}/${id}`
    const shown = new Map<string, Listed>()
    for (const { id, version } of slots) {
      const known = kept.get(keyOf(id))
      if (known?.version !== version) continue
      known.unusedSinceS = null
      shown.set(id, known.shown)
    }
    const unknown = slots.filter(({ id }) => !shown.has(id)).map(({ id }) => id)
    for (const rule of await readRules(kv, workspace, env, unknown)) {
      const line = presentListedRule(rule)
      shown.set(rule.id, line)
      kept.set(keyOf(rule.id), { version: rule.version, shown: line, unusedSinceS: 0 })
    }
    makeRoom(0, () => false)
    return slots.flatMap(({ id }) => shown.get(id) ?? [])
  }
}
