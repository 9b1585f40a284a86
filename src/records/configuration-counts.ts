// How much configuration a deployment has: what a start tells, and what a restored deployment is held against.

import { ENVS } from '../domain/event.ts'
import type { Kv } from '../kv/kv.ts'
import { listAllKeys } from './keys.ts'
import { readLists } from './lists.ts'
import { readRuleSlots } from './rules.ts'
import { readWebhooks } from './webhooks.ts'
import { listWorkspaces } from './workspaces.ts'

export const COUNTED_NOUNS = ['workspaces', 'keys', 'rules', 'lists', 'webhooks'] as const

/** Keys are those that were not revoked. */
export type ConfigurationCounts = Readonly<Record<(typeof COUNTED_NOUNS)[number], number>>

/** Of all workspaces and environments. */
export async function countConfiguration(kv: Pick<Kv, 'scan'>): Promise<ConfigurationCounts> {
  const workspaces = await listWorkspaces(kv)
  const keys = (await listAllKeys(kv)).filter(({ revokedAt }) => revokedAt === null).length
  let [rules, lists, webhooks] = [0, 0, 0]
  for (const { id } of workspaces) {
    for (const env of ENVS) {
      rules += (await readRuleSlots(kv, id, env)).length
      lists += (await readLists(kv, id, env)).length
      webhooks += (await readWebhooks(kv, id, env)).length
    }
  }
  return { workspaces: workspaces.length, keys, rules, lists, webhooks }
}
