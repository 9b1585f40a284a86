// A ruleset on its way to a thread and its life there: encoded once per revision into shared memory, compiled once per
// revision by each thread that sees it, asked for every event.

import type { ChallengeType, Env, Facts, RuleMatch, StoredEvent, Verdict } from '../domain/event.ts'
import type { Rule } from '../domain/rule.ts'
import type { Workspace } from '../domain/workspace.ts'
import { scoresVisible } from '../events/present.ts'
import { LINES_MAX, type LogLine, type RuleEffect } from '../records/effects.ts'
import { type Blockable, compileBlocked } from './blocked.ts'
import { compileRules, type Mode } from './codegen.ts'
import { type MakeEffect, prepareEffects } from './effects.ts'
import { createLayout, type FieldVector, type ListMember, noLists } from './predicate.ts'
import { compileTemplate } from './template.ts'

/** What deciding needs of a workspace. */
export type SnapshotWorkspace = Pick<Workspace, 'id' | 'plan' | 'settings' | 'tokenSecret' | 'apiVersion'>

/** Cheap to send to a thread: the bytes are shared, not copied. */
export interface Snapshot {
  readonly workspace: string
  readonly env: Env
  /** Changes whenever anything inside does, the workspace's own settings included. */
  readonly revision: number
  readonly bytes: SharedArrayBuffer
}

export interface SnapshotInput {
  readonly workspace: SnapshotWorkspace
  readonly env: Env
  readonly revision: number
  /** Any rules of the environment; those neither live nor monitor are left out. */
  readonly rules: readonly Rule[]
}

export interface RulesOutcome {
  /** null only when no rule is live. */
  readonly verdict: Verdict | null
  /** Set exactly when the verdict is challenge. */
  readonly challengeType: ChallengeType | null
  readonly matchedRule: StoredEvent['matchedRule']
  readonly matchedRules: readonly RuleMatch[]
  readonly monitorMatches: readonly RuleMatch[]
  readonly logs: readonly LogLine[]
  /** Of the deciding rule. */
  readonly effects: readonly RuleEffect[]
  /** Side effects of the deciding rule that lacked the value they need. */
  readonly effectsSkipped: number
}

export interface EvaluateOptions {
  /** This visitor was not seen with this linkedId before. Default false. */
  readonly newDeviceForLinkedId?: boolean
}

export interface CompiledRuleset {
  readonly revision: number
  readonly workspace: SnapshotWorkspace
  readonly env: Env
  readonly liveCount: number
  /** Pure, synchronous, never throws. */
  evaluate(facts: Facts, options?: EvaluateOptions): RulesOutcome
  /** Whether a list that a live rule blocks by holds the visitor, the address or the email. */
  isBlocklisted(who: Blockable): boolean
}

interface Content {
  readonly workspace: SnapshotWorkspace
  readonly rules: readonly Rule[]
}

/** The order in which rules are asked: priority, then createdAt, then id. */
function byOrder(a: Rule, b: Rule): number {
  return a.priority - b.priority || a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}

export type Encode = (input: SnapshotInput) => Snapshot

/** Remembers the text of every rule object it is given, as long as that object lives: most of a ruleset stays as it was. */
export function createEncoder(): Encode {
  const texts = new WeakMap<Rule, string>()
  const textOf = (rule: Rule): string => {
    const known = texts.get(rule)
    if (known !== undefined) return known
    const text = JSON.stringify(rule)
    texts.set(rule, text)
    return text
  }
  return ({ workspace, env, revision, rules }) => {
    const { id, plan, settings, tokenSecret, apiVersion } = workspace
    const owner = JSON.stringify({ id, plan, settings, tokenSecret, apiVersion } satisfies SnapshotWorkspace)
    const active = rules.filter((rule) => rule.status === 'live' || rule.status === 'monitor').sort(byOrder)
    // The text of a Content.
    const encoded = new TextEncoder().encode(`{"workspace":${owner},"rules":[${active.map(textOf).join(',')}]}`)
    const bytes = new SharedArrayBuffer(encoded.byteLength)
    new Uint8Array(bytes).set(encoded)
    return { workspace: id, env, revision, bytes }
  }
}

export const encodeSnapshot: Encode = (input) => createEncoder()(input)

export interface OpenOptions {
  /** Default: no list exists. */
  readonly member?: ListMember
  readonly mode?: Mode
}

/** Compiles a snapshot. Throws when its bytes are not of encodeSnapshot. */
export function openSnapshot(snapshot: Snapshot, { member = noLists, mode }: OpenOptions = {}): CompiledRuleset {
  const { workspace, rules } = JSON.parse(Buffer.from(snapshot.bytes).toString('utf8')) as Content
  const scores = scoresVisible(workspace.plan)
  const layout = createLayout({ scores })
  const match = compileRules(
    rules.map((rule) => rule.conditions),
    { layout, member, ...(mode === undefined ? {} : { mode }) },
  )
  const prepared = rules.map((rule) => prepare(rule, { scores }))
  const liveCount = prepared.filter((rule) => rule.live).length
  // Evaluation is synchronous, so one vector and one table of hits serve every event.
  const values: FieldVector = []
  const hits = new Int32Array(rules.length)

  return {
    revision: snapshot.revision,
    workspace,
    env: snapshot.env,
    liveCount,
    isBlocklisted: compileBlocked(rules, member),
    evaluate(facts, { newDeviceForLinkedId = false } = {}) {
      layout.fill(facts, values)
      const count = match(values, hits)
      let live = 0
      for (let i = 0; i < count; i++) if ((prepared[hits[i] as number] as Prepared).live) live++
      // Lists of their own size, as most events match a rule or two: one that grows makes room for sixteen at once.
      const matchedRules = live === 0 ? NO_MATCHES : new Array<RuleMatch>(live)
      const monitorMatches = count === live ? NO_MATCHES : new Array<RuleMatch>(count - live)
      let deciding: Prepared | null = null
      let logs: LogLine[] | null = null
      let before = 0
      for (let i = 0; i < count; i++) {
        const rule = prepared[hits[i] as number] as Prepared
        if (!rule.live) monitorMatches[i - before] = rule.match
        else matchedRules[before++] = deciding === null ? rule.decidingMatch : rule.match
        if (rule.live && deciding !== null) continue
        if (rule.live) deciding = rule
        for (const log of rule.logs) {
          logs ??= []
          if (logs.length === LINES_MAX) break
          logs.push({ ...log.line, message: log.render(facts) })
        }
      }
      const made = deciding === null ? NO_EFFECTS : deciding.effects
      const effects = made.length === 0 ? NO_DECIDED : made.flatMap((make) => make(facts) ?? [])
      const verdict = deciding?.verdict ?? (liveCount === 0 ? null : 'allow')
      return {
        verdict,
        challengeType:
          verdict === 'challenge' ? (deciding?.challengeType ?? defaultChallenge(facts, newDeviceForLinkedId)) : null,
        matchedRule: deciding?.matchedRule ?? null,
        matchedRules,
        monitorMatches,
        logs: logs ?? NO_LINES,
        effects,
        effectsSkipped: made.length - effects.length,
      }
    },
  }
}

/** Nobody adds to it. */
const NO_MATCHES: RuleMatch[] = []
const NO_LINES: readonly LogLine[] = []
const NO_EFFECTS: readonly MakeEffect[] = []
const NO_DECIDED: readonly RuleEffect[] = []

interface Prepared {
  readonly live: boolean
  readonly verdict: Verdict
  readonly challengeType: ChallengeType | null
  readonly match: RuleMatch
  readonly decidingMatch: RuleMatch
  readonly matchedRule: NonNullable<StoredEvent['matchedRule']>
  readonly logs: readonly {
    readonly line: Omit<LogLine, 'message'>
    readonly render: (facts: Facts) => string
  }[]
  readonly effects: readonly MakeEffect[]
}

function prepare(rule: Rule, options: { readonly scores: boolean }): Prepared {
  const { id, name, priority, action } = rule
  const { verdict } = action
  return {
    live: rule.status === 'live',
    verdict,
    challengeType: action.challengeType ?? null,
    match: { id, name, priority, verdict, deciding: false },
    decidingMatch: { id, name, priority, verdict, deciding: true },
    matchedRule: { id, name, priority },
    effects: prepareEffects(rule, options),
    logs: (action.sideEffects ?? []).flatMap((effect, index) => {
      if (effect.type !== 'log') return []
      const render = compileTemplate(effect.message ?? '{{rule.name}}', rule, options)
      return [{ line: { ruleId: id, index, level: effect.level ?? 'info' }, render }]
    }),
  }
}

function defaultChallenge({ signals, scores }: Facts, newDeviceForLinkedId: boolean): ChallengeType {
  if (signals.bot.state === 'detected' || scores.bot >= 0.5) return 'captcha'
  return scores.ato >= 0.5 || newDeviceForLinkedId ? 'otp' : 'captcha'
}

export interface CacheOptions extends Omit<OpenOptions, 'member'> {
  /** Default: no list exists. */
  readonly member?: (workspace: string, env: Env) => ListMember
}

export interface RulesetCache {
  /** The ruleset of a snapshot, compiled only when its revision is not the one held. */
  open(snapshot: Snapshot): CompiledRuleset
}

/** Holds one ruleset per workspace and environment; beyond `rulesetsMax` the least recently used is forgotten. */
export function createRulesetCache(rulesetsMax: number, { member, ...options }: CacheOptions = {}): RulesetCache {
  const held = new Map<string, CompiledRuleset>()
  let latest: { readonly snapshot: Snapshot; readonly ruleset: CompiledRuleset } | null = null
  return {
    open(snapshot) {
      if (latest !== null && latest.snapshot === snapshot) return latest.ruleset
      const key = `${snapshot.env}/${snapshot.workspace}`
      const known = held.get(key)
      const open = () =>
        openSnapshot(snapshot, { ...options, ...(member && { member: member(snapshot.workspace, snapshot.env) }) })
      const ruleset = known?.revision === snapshot.revision ? known : open()
      // A map keeps the order of insertion: moving an entry to the end makes the first one the least recently used.
      held.delete(key)
      held.set(key, ruleset)
      if (held.size > rulesetsMax) held.delete(held.keys().next().value as string)
      latest = { snapshot, ruleset }
      return ruleset
    },
  }
}
