// Visitors that the engine found to be one device: merged as people merge them, but that nothing people said is changed by it, and no
// list has them by another name. Told again, late, or of somebody gone, it does nothing.

import type { Env } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import type { KvKey } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import {
  ALIASES_MAX,
  aliasKey,
  CORRECTION_OF,
  type Correction,
  correctionKey,
  groupOf,
  type Healed,
  healedKey,
  mergedKey,
} from '../records/aliases.ts'
import { encodeAliasing } from '../records/identification.ts'
import { scanAll, tenantScope, under } from '../records/scopes.ts'
import { readWorkspace } from '../records/workspaces.ts'
import type { Change, CommandOf, Read } from './change.ts'
import { isForgotten } from './corrections.ts'

export async function applyVisitorHeal(command: CommandOf<'visitor.heal'>, seq: number, read: Read): Promise<Change> {
  const { workspace, at, data } = command
  const env = must(command.env, 'an environment')
  const { visitorId, requestId, confidence, partitions } = data
  const nothing: Change = { outcome: { ok: true, seq, at }, effects: [] }
  if ((await readWorkspace(read, workspace)) === null) return nothing
  const [survivor, ...aliases] = await groupOf(read, workspace, env, data.survivor)
  const [own, ...others] = await groupOf(read, workspace, env, visitorId)
  // People merged it meanwhile, or this is the second time.
  if (own !== visitorId || others.length > 0 || own === survivor) return nothing
  if (aliases.length + 1 > ALIASES_MAX) return nothing
  const ids = [survivor, ...aliases, visitorId]
  if (await isForgotten(read, { workspace, env }, ids)) return nothing
  if (await wereParted(read, workspace, env, visitorId, ids)) return nothing
  const healedBy = { requestId, confidence }
  const healed: Healed = { ...healedBy, survivor, at }
  return {
    outcome: { ok: true, seq, at },
    effects: [
      {
        scope: tenantScope(workspace, env),
        put: [
          { key: aliasKey(visitorId), value: survivor },
          { key: mergedKey(survivor), value: [...aliases, visitorId] },
          { key: healedKey(visitorId), value: healed },
        ],
      },
    ],
    orders: [visitorId, survivor].map((id) => ({
      partition: homePartition(id, partitions),
      bytes: encodeAliasing({ workspace, env, visitorId: id, survivor, at, healedBy }),
    })),
    audit: { resource: 'visitor', id: survivor, action: 'heal', before: null, after: { visitorId, ...healedBy } },
  }
}

/** Whether somebody said of the visitor and one of these that they are two devices. */
async function wereParted(read: Read, workspace: string, env: Env, visitorId: string, ids: readonly string[]) {
  const scope = tenantScope(workspace, env)
  const keys: KvKey[] = []
  for await (const { key } of scanAll(read, scope, CORRECTION_OF, under(visitorId))) {
    keys.push(correctionKey(Number(key[1].slice(visitorId.length + 1))))
  }
  const found = await read.get<Correction>(scope, keys)
  return found.some((entry) => {
    if (!entry || entry.value.same) return false
    const [one, other] = entry.value.visitors
    return ids.includes(one) && ids.includes(other)
  })
}
