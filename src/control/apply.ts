// What one command does to the records: a function of the command, its place in `changes` and the records before it.
// No clock, no randomness, no settings, so that applying the same topic again gives the same records and refusals.

import type { Env } from '../domain/event.ts'
import type { Put } from '../kv/kv.ts'
import { auditPuts } from '../records/audit.ts'
import { COMMAND_OUTCOME, type Command, type CommandOutcome, homeScope, OUTCOME_TTL_MS } from '../records/commands.ts'
import { tenantScope } from '../records/scopes.ts'
import { applyAlertCreate, applyAlertDelete, applyAlertUpdate } from './apply-alerts.ts'
import { applyListEffects } from './apply-effects.ts'
import { applyVisitorHeal } from './apply-heals.ts'
import { applyKeyCreate, applyKeyRevoke, applyKeyRotate } from './apply-keys.ts'
import {
  applyListCreate,
  applyListDelete,
  applyListEntries,
  applyListExpire,
  applyListForget,
  applyListUpdate,
} from './apply-lists.ts'
import { applyVisitorNote } from './apply-notes.ts'
import { applyPersonAccess, applyPersonCreate, applyPersonRemove, applyPersonUpdate } from './apply-people.ts'
import { applyRuleCreate, applyRuleDelete, applyRuleRollback, applyRuleUpdate } from './apply-rules.ts'
import { applyVisitorSplit } from './apply-splits.ts'
import { applyVisitorMerge } from './apply-visitors.ts'
import {
  applyWebhookCreate,
  applyWebhookDelete,
  applyWebhookDisable,
  applyWebhookRotate,
  applyWebhookUpdate,
} from './apply-webhooks.ts'
import { applyWorkspaceCreate, applyWorkspaceToken, applyWorkspaceUpdate } from './apply-workspaces.ts'
import type { Change, Effect, Order, Read, WebhookChange } from './change.ts'

export interface Applied {
  readonly outcome: CommandOutcome
  /**
   * In the order they must be committed. The last one is in the command's home scope and holds the outcome: while it
   * is missing the command counts as not applied, and repeating it finds the earlier scopes done.
   */
  readonly effects: readonly (Required<Effect> & { readonly home: boolean })[]
  readonly keysChanged: boolean
  readonly rulesets: readonly { readonly workspace: string; readonly env: Env }[]
  readonly lists: readonly { readonly workspace: string; readonly env: Env }[]
  readonly webhooks: readonly WebhookChange[]
  readonly orders: readonly Order[]
  /** As `Change` has it. */
  readonly early: NonNullable<Change['early']> | null
}

export async function apply(command: Command, seq: number, read: Read): Promise<Applied> {
  const change = withAudit(await changeOf(command, seq, read), command, seq)
  const home = homeScope(command)
  const own = change.effects.find((effect) => effect.scope === home)
  const outcome: Put = { key: [COMMAND_OUTCOME, command.id], value: change.outcome, ttlMs: OUTCOME_TTL_MS }
  const others = change.effects.filter((effect) => effect.scope !== home)
  return {
    outcome: change.outcome,
    effects: [
      ...others.map(({ scope, put = [], drop = [] }) => ({ scope, put, drop, home: false })),
      { scope: home, put: [...(own?.put ?? []), outcome], drop: own?.drop ?? [], home: true },
    ],
    keysChanged: change.keysChanged ?? false,
    rulesets: change.rulesets ?? [],
    lists: change.lists ?? [],
    webhooks: change.webhooks ?? [],
    orders: change.orders ?? [],
    early: change.early ?? null,
  }
}

/** The entry is written by the same commit as what it tells of. */
function withAudit(change: Change, { workspace, env, at, actor }: Command, seq: number): Change {
  const { audit, effects, auditEnvs = env === null ? [] : [env] } = change
  if (audit === undefined) return change
  const put = auditPuts({ ...audit, at, actor, seq })
  const scopes = auditEnvs.map((one) => tenantScope(workspace, one))
  const untold = scopes.filter((scope) => !effects.some((effect) => effect.scope === scope))
  const told = effects.map((effect) =>
    scopes.includes(effect.scope) ? { ...effect, put: [...(effect.put ?? []), ...put] } : effect,
  )
  return { ...change, effects: [...told, ...untold.map((scope) => ({ scope, put }))] }
}

function changeOf(command: Command, seq: number, read: Read): Promise<Change> {
  switch (command.type) {
    case 'workspace.create':
      return applyWorkspaceCreate(command, seq, read)
    case 'workspace.update':
      return applyWorkspaceUpdate(command, seq, read)
    case 'workspace.token':
      return applyWorkspaceToken(command, seq, read)
    case 'key.create':
      return applyKeyCreate(command, seq, read)
    case 'key.revoke':
      return applyKeyRevoke(command, seq, read)
    case 'key.rotate':
      return applyKeyRotate(command, seq, read)
    case 'rule.create':
      return applyRuleCreate(command, seq, read)
    case 'rule.update':
      return applyRuleUpdate(command, seq, read)
    case 'rule.delete':
      return applyRuleDelete(command, seq, read)
    case 'rule.rollback':
      return applyRuleRollback(command, seq, read)
    case 'list.create':
      return applyListCreate(command, seq, read)
    case 'list.update':
      return applyListUpdate(command, seq, read)
    case 'list.delete':
      return applyListDelete(command, seq, read)
    case 'list.entries':
      return applyListEntries(command, seq, read)
    case 'list.expire':
      return applyListExpire(command, seq, read)
    case 'list.effects':
      return applyListEffects(command, seq, read)
    case 'list.forget':
      return applyListForget(command, seq, read)
    case 'webhook.create':
      return applyWebhookCreate(command, seq, read)
    case 'webhook.update':
      return applyWebhookUpdate(command, seq, read)
    case 'webhook.delete':
      return applyWebhookDelete(command, seq, read)
    case 'webhook.rotate':
      return applyWebhookRotate(command, seq, read)
    case 'webhook.disable':
      return applyWebhookDisable(command, seq, read)
    case 'alert.create':
      return applyAlertCreate(command, seq, read)
    case 'alert.update':
      return applyAlertUpdate(command, seq, read)
    case 'alert.delete':
      return applyAlertDelete(command, seq, read)
    case 'visitor.merge':
      return applyVisitorMerge(command, seq, read)
    case 'visitor.heal':
      return applyVisitorHeal(command, seq, read)
    case 'visitor.note':
      return applyVisitorNote(command, seq, read)
    case 'person.create':
      return applyPersonCreate(command, seq, read)
    case 'person.update':
      return applyPersonUpdate(command, seq, read)
    case 'person.access':
      return applyPersonAccess(command, seq, read)
    case 'person.remove':
      return applyPersonRemove(command, seq, read)
    case 'visitor.split':
      return applyVisitorSplit(command, seq, read)
  }
}
