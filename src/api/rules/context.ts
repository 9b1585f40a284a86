// What rules are checked against when they are written: the plan, the lists and webhooks that they name, and what they say already.

import { foldListName } from '../../domain/list.ts'
import type { ConditionGroup, RuleAction } from '../../domain/rule.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Caller } from '../../records/auth.ts'
import { readListsNamed } from '../../records/lists.ts'
import type { StoredRule } from '../../records/rules.ts'
import { tenantScope } from '../../records/scopes.ts'
import { webhookKey } from '../../records/webhooks.ts'
import { listNamesIn, type ParseContext, parseConditions, webhookIdsIn } from '../../rules/parse.ts'
import { parseAction } from '../../rules/parse-action.ts'
import { callerPlaceOf } from '../callers.ts'

/** What the conditions and effects of a body are checked against: the plan, and the lists that it names. */
export async function parseContext(kv: Pick<Kv, 'get'>, caller: Caller, body: unknown): Promise<ParseContext> {
  const { workspace, env } = callerPlaceOf(caller)
  const lists = await readListsNamed(kv, workspace, env, listNamesIn(body))
  const ids = webhookIdsIn(body)
  const found = ids.length === 0 ? [] : await kv.get(tenantScope(workspace, env), ids.map(webhookKey))
  const webhooks = new Set(ids.filter((_, i) => found[i] != null))
  return {
    plan: caller.workspace.plan,
    lists: (name) => lists.get(foldListName(name)) ?? null,
    webhooks: (id) => webhooks.has(id),
  }
}

/** The texts that conditions compare with. */
export const textsIn = (group: ConditionGroup): ReadonlySet<string> => new Set(textsOf(group))

const textsOf = (group: ConditionGroup): string[] =>
  group.rules.flatMap((one) =>
    'rules' in one ? textsOf(one) : [one.value].flat().filter((value) => typeof value === 'string'),
  )

/** Throws as for a body that says the same: what a rule was written with may be gone by now, or beyond the plan. */
export async function refuseStored(
  kv: Pick<Kv, 'get'>,
  caller: Caller,
  { conditions, action }: Pick<StoredRule, 'conditions' | 'action'>,
): Promise<void> {
  const context = await parseContext(kv, caller, { conditions, action })
  parseConditions(conditions, { ...context, known: textsIn(conditions) })
  parseAction({ ...context, action: withoutSecrets(action) })
}

/** Kept addresses are sealed, which no body may send; where they lead is in the open. */
const withoutSecrets = (action: RuleAction): RuleAction =>
  action.sideEffects === undefined
    ? action
    : {
        ...action,
        sideEffects: action.sideEffects.map((effect) =>
          effect.type === 'slack' ? { ...effect, url: new URL(effect.url).origin } : effect,
        ),
      }
