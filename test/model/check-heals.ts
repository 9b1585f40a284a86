// What must hold of visitors that the engine found to be one, when everything is quiet: each is the other's, unless people said
// otherwise before or it was gone; and nobody whom people parted is one with whom it was parted from.

import { forgottenKey } from '../../src/control/corrections.ts'
import type { Env } from '../../src/domain/event.ts'
import { homePartition } from '../../src/domain/ids.ts'
import { aliasKey, CORRECTION, type Correction, healedKey, mergedKey } from '../../src/records/aliases.ts'
import { tenantScope } from '../../src/records/scopes.ts'
import { checkAlias, checkRecord } from './check-merges.ts'
import type { Facts } from './checks.ts'
import { visitorOf } from './decided.ts'
import { PARTITIONS } from './deployment.ts'
import { peek } from './model-kv.ts'

export function checkHeals(facts: Facts): void {
  const { kv, workspace, decided, lostPartition, problem } = facts
  for (const { item } of decided.events()) {
    for (const effect of item.effects ?? []) {
      if (effect.type !== 'heal') continue
      const { env } = item
      const { visitorId, survivor: other } = effect
      const scope = tenantScope(workspace.id, env)
      const at = <T>(key: readonly [string, string]) => peek(kv, scope, key) as T | undefined
      const survivorOf = (id: string) => at<string>(aliasKey(id)) ?? id
      const survivor = survivorOf(other)
      const ids = [visitorId, other, survivor, survivorOf(visitorId)]
      const isGone = (id: string) =>
        decided.erasureOf(visitorOf({ env, visitorId: id })) !== undefined ||
        at(forgottenKey(workspace.id, env, id)) !== undefined
      const isLost = (id: string) => homePartition(id, PARTITIONS) === lostPartition
      if (ids.some(isGone)) {
        for (const id of ids.filter(isGone))
          if (at(healedKey(id)) !== undefined) problem('nobody who is gone is healed', id)
        continue
      }
      if (ids.some(isLost)) continue
      // It was merged by people, or with somebody else before; or others were merged into it.
      const isOnesOwn = survivorOf(visitorId) === visitorId && at(mergedKey(visitorId)) === undefined
      if (isOnesOwn && survivor !== visitorId && !wasParted(facts, env, visitorId))
        problem('a decided heal is kept', `${visitorId} of ${item.requestId} is not ${survivor}`)
      const why = at<{ readonly survivor: string }>(healedKey(visitorId))
      if (why === undefined || isOnesOwn) continue
      checkRecord(facts, env, survivorOf(visitorId), survivorOf(visitorId))
      checkAlias(facts, env, visitorId, survivorOf(visitorId))
    }
  }
  checkParted(facts)
}

/** Corrections of an environment that say that two are not one. */
function parted({ kv, workspace }: Facts, env: Env): Correction[] {
  const scope = tenantScope(workspace.id, env)
  const keys = [...(kv.scopes.get(scope)?.collections.get(CORRECTION)?.keys() ?? [])]
  return keys.map((key) => peek(kv, scope, [CORRECTION, key]) as Correction).filter(({ same }) => !same)
}

const wasParted = (facts: Facts, env: Env, id: string): boolean =>
  parted(facts, env).some(({ visitors }) => visitors.includes(id))

function checkParted(facts: Facts): void {
  const { kv, workspace, changes, problem } = facts
  // Unless they said later that it is one all the same.
  if (changes.some(({ draft }) => draft.type === 'visitor.merge')) return
  for (const env of ['live', 'test'] as const) {
    const scope = tenantScope(workspace.id, env)
    for (const { visitors } of parted(facts, env)) {
      const [one, other] = visitors.map((id) => (peek(kv, scope, aliasKey(id)) as string | undefined) ?? id)
      if (one === other) problem('whom people parted stays apart', `${visitors}: ${one}`)
    }
  }
}
