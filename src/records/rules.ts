// Rules in the kv: the records, their order of evaluation, and the revision that names one state of them all.

import type { Env } from '../domain/event.ts'
import type { Rule, RuleStatus } from '../domain/rule.ts'
import type { Workspace } from '../domain/workspace.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { scanAll, tenantScope } from './scopes.ts'
import { WORKSPACE_COPY } from './workspaces.ts'

export const RULE = 'rule'
export const ruleKey = (id: string): KvKey => [RULE, id]

/** A rule with its version: the seq of the last command that changed it. */
export type StoredRule = Rule & { readonly version: number }

/** Ids sort in order of evaluation: priority, then creation time, then id. */
export const RULE_ORDER = 'rule-order'
export const PRIORITY_MIN = -(2 ** 31)
export const PRIORITY_MAX = 2 ** 31 - 1
const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')
export const ruleOrderKey = (rule: Pick<Rule, 'priority' | 'createdAt' | 'id'>): KvKey => [
  RULE_ORDER,
  `${hex(rule.priority - PRIORITY_MIN, 8)}${hex(rule.createdAt, 12)}${rule.id}`,
]
export interface RuleSlot {
  readonly id: string
  readonly priority: number
  readonly status: RuleStatus
  /** Of the rule, so that whoever knows that version need not read it. */
  readonly version: number
}

export const RULESET: KvKey = ['meta', 'ruleset']
export interface RulesetMeta {
  /** The seq of the last command that changed a rule of this environment or the workspace itself. */
  readonly revision: number
  readonly rules: number
  /** Those that are live or monitor. */
  readonly active: number
  /** Of all of them, as `ruleBytes` counts; absent where an earlier release wrote it last. */
  readonly bytes?: number
}

/** What a rule holds, UTF-8: its status and place may always change. */
export const ruleBytes = ({ name, conditions, action }: Pick<StoredRule, 'name' | 'conditions' | 'action'>): number =>
  Buffer.byteLength(JSON.stringify([name, conditions, action]))

export interface Ruleset {
  readonly revision: number
  /** The workspace as it was at this revision. */
  readonly workspace: Workspace
  /** In order of evaluation, all statuses. */
  readonly rules: readonly StoredRule[]
}

const RULES_PER_PAGE_MAX = 200
const READ_ATTEMPTS_MAX = 20

export async function readRule(kv: Pick<Kv, 'get'>, workspace: string, env: Env, id: string) {
  const [entry] = await kv.get<StoredRule>(tenantScope(workspace, env), [ruleKey(id)])
  return entry?.value ?? null
}

/** Rules by id, in the order asked for; those that are gone are left out. */
export async function readRules(kv: Pick<Kv, 'get'>, workspace: string, env: Env, ids: readonly string[]) {
  if (ids.length === 0) return []
  const entries = await kv.get<StoredRule>(tenantScope(workspace, env), ids.map(ruleKey))
  return entries.flatMap((entry) => (entry === null ? [] : [entry.value]))
}

/** Every rule's place, in order of evaluation. */
export async function readRuleSlots(kv: Pick<Kv, 'scan'>, workspace: string, env: Env): Promise<RuleSlot[]> {
  const slots: RuleSlot[] = []
  for await (const entry of scanAll<RuleSlot>(kv, tenantScope(workspace, env), RULE_ORDER)) slots.push(entry.value)
  return slots
}

/** The revision alone; null for an unknown workspace. */
export async function readRulesetRevision(kv: Pick<Kv, 'get'>, workspace: string, env: Env): Promise<number | null> {
  const [entry] = await kv.get<RulesetMeta>(tenantScope(workspace, env), [RULESET])
  return entry?.value.revision ?? null
}

/**
 * All rules of an environment at exactly one revision; null for an unknown workspace. Of `known`, an earlier answer, those that
 * have not changed are taken over. Throws when the rules change faster than they can be read.
 */
export async function readRuleset(
  kv: Pick<Kv, 'get' | 'scan'>,
  workspace: string,
  env: Env,
  known: Ruleset | null = null,
): Promise<Ruleset | null> {
  const scope = tenantScope(workspace, env)
  const rules = new Map(known?.rules.map((rule) => [rule.id, rule]))
  for (let attempt = 0; attempt < READ_ATTEMPTS_MAX; attempt++) {
    const [meta, copy] = await Promise.all([
      kv.get<RulesetMeta>(scope, [RULESET]),
      kv.get<Workspace>(scope, [WORKSPACE_COPY]),
    ])
    const revision = meta[0]?.value.revision
    const owner = copy[0]?.value
    if (revision === undefined || owner === undefined) return null
    const slots = await readRuleSlots(kv, workspace, env)
    const unknown = slots.filter(({ id, version }) => rules.get(id)?.version !== version).map(({ id }) => id)
    for (let at = 0; at < unknown.length; at += RULES_PER_PAGE_MAX) {
      const some = await readRules(kv, workspace, env, unknown.slice(at, at + RULES_PER_PAGE_MAX))
      for (const rule of some) rules.set(rule.id, rule)
    }
    if ((await readRulesetRevision(kv, workspace, env)) !== revision) continue
    const inForce = slots.flatMap(({ id }) => rules.get(id) ?? [])
    return { revision, workspace: owner, rules: inForce.sort(byEvaluation) }
  }
  throw new Error(`the rules of ${scope} change faster than they can be read`)
}

const byEvaluation = (a: Rule, b: Rule): number =>
  a.priority - b.priority || a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)
