// Commands about rules. Each keeps the record, its slot in the order of evaluation and the counts in step.

import type { Env } from '../domain/event.ts'
import type { RuleAction, RuleStatus } from '../domain/rule.ts'
import type { KvKey, Put, Scope } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import { readAuditEntry } from '../records/audit.ts'
import type { Command, RuleCommandChanges, RuleHead, RuleMaxima } from '../records/commands.ts'
import {
  PRIORITY_MAX,
  RULE,
  RULE_ORDER,
  RULESET,
  type RuleSlot,
  type RulesetMeta,
  ruleBytes,
  ruleKey,
  ruleOrderKey,
  type StoredRule,
} from '../records/rules.ts'
import { scanAll, tenantScope } from '../records/scopes.ts'
import { type Change, type CommandOf, type Read, refuse } from './change.ts'

const DEFAULT_PRIORITY_STEP = 10

interface Before {
  readonly workspace: string
  readonly env: Env
  readonly meta: Required<RulesetMeta>
  readonly rule: StoredRule | null
}

export async function applyRuleCreate(command: CommandOf<'rule.create'>, seq: number, read: Read): Promise<Change> {
  const { id, name, conditions, action, status, maxima } = command.data
  const before = await readBefore(command, id, read)
  if (before === null) return refuse(seq, 'not_found')
  // Ids are drawn for each request: this one was repeated because nobody knew what had become of it.
  if (before.rule !== null) {
    return {
      outcome: { ok: true, seq, at: command.at, rule: headOf(before.rule), revision: before.meta.revision },
      effects: [],
    }
  }
  const full = limitReached(before, { name, conditions, action, status }, maxima)
  if (full !== null) return refuse(seq, 'resource_limit_reached', full)
  const priority = command.data.priority ?? (await nextPriority(before, read))
  if (priority > PRIORITY_MAX) {
    return refuse(
      seq,
      'conflict',
      `After the highest priority there is no room up to ${PRIORITY_MAX}; send a priority.`,
    )
  }
  const rule: StoredRule = {
    id,
    name,
    conditions,
    action,
    priority,
    status,
    createdAt: command.at,
    updatedAt: command.at,
    version: seq,
  }
  return changed(before, rule, command, seq)
}

export async function applyRuleUpdate(command: CommandOf<'rule.update'>, seq: number, read: Read): Promise<Change> {
  const { id, changes, maxima } = command.data
  const before = await readBefore(command, id, read)
  const old = before?.rule ?? null
  if (before === null || old === null) return refuse(seq, 'not_found')
  if (isStale(command, old)) return refuse(seq, 'conflict', 'The rule has changed since it was read.')
  const { sideEffects: _, ...fields } = changes
  const rule: StoredRule = {
    ...old,
    ...fields,
    action: mergeAction(old.action, changes),
    // Two writers' clocks may differ; a rule never seems to become older.
    updatedAt: Math.max(old.updatedAt, command.at),
    version: seq,
  }
  const full = limitReached(before, rule, maxima)
  if (full !== null) return refuse(seq, 'resource_limit_reached', full)
  return changed(before, rule, command, seq)
}

export async function applyRuleDelete(command: CommandOf<'rule.delete'>, seq: number, read: Read): Promise<Change> {
  const before = await readBefore(command, command.data.id, read)
  if (before === null || before.rule === null) return refuse(seq, 'not_found')
  if (isStale(command, before.rule)) return refuse(seq, 'conflict', 'The rule has changed since it was read.')
  return changed(before, null, command, seq)
}

/** The rule as an earlier version had it, under a new version. */
export async function applyRuleRollback(command: CommandOf<'rule.rollback'>, seq: number, read: Read): Promise<Change> {
  const { id, version, maxima } = command.data
  const before = await readBefore(command, id, read)
  const old = before?.rule ?? null
  if (before === null || old === null) return refuse(seq, 'not_found')
  const { workspace, env } = before
  const entry = await readAuditEntry(read, workspace, env, { resource: 'rule', id, seq: version })
  if (entry === null || entry.after === null) return refuse(seq, 'not_found', 'This rule has no such version.')
  if (isStale(command, old)) return refuse(seq, 'conflict', 'The rule has changed since it was read.')
  const { name, conditions, action, priority, status } = entry.after as StoredRule
  const updatedAt = Math.max(old.updatedAt, command.at)
  const rule: StoredRule = { ...old, name, conditions, action, priority, status, updatedAt, version: seq }
  const full = limitReached(before, rule, maxima)
  if (full !== null) return refuse(seq, 'resource_limit_reached', full)
  return changed(before, rule, command, seq)
}

async function readBefore(
  command: CommandOf<'rule.create' | 'rule.update' | 'rule.delete' | 'rule.rollback'>,
  id: string,
  read: Read,
): Promise<Before | null> {
  const { workspace } = command
  const env = must(command.env, 'an environment')
  const scope = tenantScope(workspace, env)
  const [entry, rule] = await read.get(scope, [RULESET, ruleKey(id)])
  if (!entry) return null
  const meta = entry.value as RulesetMeta
  const { bytes = await bytesOfAll(read, scope) } = meta
  return { workspace, env, meta: { ...meta, bytes }, rule: (rule?.value as StoredRule | undefined) ?? null }
}

async function bytesOfAll(read: Read, scope: Scope): Promise<number> {
  let bytes = 0
  for await (const { value } of scanAll<StoredRule>(read, scope, RULE)) bytes += ruleBytes(value)
  return bytes
}

const bytesOf = (rule: StoredRule | null): number => (rule === null ? 0 : ruleBytes(rule))

const isActive = (status: RuleStatus): boolean => status === 'live' || status === 'monitor'

const isStale = (command: { readonly expectVersion?: number }, rule: StoredRule): boolean =>
  command.expectVersion !== undefined && command.expectVersion !== rule.version

/** Says which maximum stands in the way of `after`, or null. What a rule already takes it may keep. */
function limitReached(
  { meta, rule: old }: Before,
  after: Pick<StoredRule, 'name' | 'conditions' | 'action' | 'status'>,
  { rulesMax, activeMax, bytesMax = Number.MAX_SAFE_INTEGER }: RuleMaxima,
): string | null {
  if (old === null && meta.rules >= rulesMax) return `An environment may have at most ${rulesMax} rules.`
  if (isActive(after.status) && !(old !== null && isActive(old.status)) && meta.active >= activeMax) {
    return `An environment may have at most ${activeMax} live or monitor rules.`
  }
  const grown = ruleBytes(after) - bytesOf(old)
  if (grown > 0 && meta.bytes + grown > bytesMax) {
    return `The rules of an environment may hold at most ${bytesMax} bytes together.`
  }
  return null
}

async function nextPriority({ workspace, env }: Before, read: Read): Promise<number> {
  const [last] = await read.scan<RuleSlot>(tenantScope(workspace, env), RULE_ORDER, { limit: 1, reverse: true })
  return (last?.value.priority ?? 0) + DEFAULT_PRIORITY_STEP
}

function mergeAction(old: RuleAction, { action, sideEffects }: RuleCommandChanges): RuleAction {
  const kept = sideEffects ?? action?.sideEffects ?? old.sideEffects
  const { sideEffects: _, ...rest } = action ?? old
  return kept === undefined ? rest : { ...rest, sideEffects: kept }
}

/** `after` null: the rule is removed. */
function changed(before: Before, after: StoredRule | null, { at, type }: RuleCommand, seq: number): Change {
  const { workspace, env, meta, rule: old } = before
  const put: Put[] = []
  const drop: KvKey[] = []
  if (after !== null) {
    const { id, priority, status, version } = after
    const slot: RuleSlot = { id, priority, status, version }
    put.push({ key: ruleKey(after.id), value: after }, { key: ruleOrderKey(after), value: slot })
  }
  if (old !== null && (after === null || after.priority !== old.priority)) drop.push(ruleOrderKey(old))
  if (old !== null && after === null) drop.push(ruleKey(old.id))
  const count = (rule: StoredRule | null) => (rule === null ? 0 : 1)
  const countActive = (rule: StoredRule | null) => (rule !== null && isActive(rule.status) ? 1 : 0)
  const ruleset: RulesetMeta = {
    revision: seq,
    rules: meta.rules - count(old) + count(after),
    active: meta.active - countActive(old) + countActive(after),
    bytes: meta.bytes - bytesOf(old) + bytesOf(after),
  }
  put.push({ key: RULESET, value: ruleset })
  return {
    outcome: { ok: true, seq, at, revision: seq, ...(after === null ? {} : { rule: headOf(after) }) },
    effects: [{ scope: tenantScope(workspace, env), put, drop }],
    rulesets: [{ workspace, env }],
    audit: {
      resource: 'rule',
      id: (after ?? must(old, 'a rule before or after its change')).id,
      action: type.slice('rule.'.length),
      before: old,
      after,
    },
  }
}

type RuleCommand = Extract<Command, { readonly type: `rule.${string}` }>

const headOf = ({ id, name, status, priority, createdAt, updatedAt, version }: StoredRule): RuleHead => ({
  id,
  name,
  status,
  priority,
  createdAt,
  updatedAt,
  version,
})
