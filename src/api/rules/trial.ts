// Rules tried before they count: one event through conditions, a rule or the whole ruleset, and what a monitored rule would have done.

import { ApiError, invalid } from '../../domain/errors.ts'
import type { Env, RuleMatch, Verdict } from '../../domain/event.ts'
import { requestTime } from '../../domain/ids.ts'
import type { ConditionGroup, Rule } from '../../domain/rule.ts'
import { strict, Type } from '../../domain/schema.ts'
import { type FieldValue, field } from '../../events/fields.ts'
import { GivenEvent, readGiven } from '../../events/given.ts'
import { isoTime, scoresVisible } from '../../events/present.ts'
import type { Kv } from '../../kv/kv.ts'
import type { EventReads } from '../../reads/events.ts'
import type { ReadMonitor } from '../../reads/monitor.ts'
import type { Caller } from '../../records/auth.ts'
import { type Ruleset, readRuleset, readRulesetRevision } from '../../records/rules.ts'
import { parseConditions } from '../../rules/parse.ts'
import { type ListMember, noLists } from '../../rules/predicate.ts'
import { askedLists, type ListQuestion, openTrial, type TraceItem } from '../../rules/trial.ts'
import { callerPlaceOf } from '../callers.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { parseContext } from './context.ts'
import { existingRule, RULE_ID } from './routes.ts'
import { RULE_TRIAL_DOCS } from './trial-docs.ts'

export interface RuleTrialNeeds {
  readonly kv: Kv
  readonly events: Pick<EventReads, 'byId'>
  readonly monitor: ReadMonitor
  /** Looks values up in lists as they are now; without it there are no lists. */
  readonly lookUp?: (workspace: string, env: Env, asked: readonly ListQuestion[]) => Promise<ListMember>
}

const MONITOR_DAYS = 7
const MONITOR_DAYS_MAX = 90
/** Conditions shown at most, and bytes of what they compare with. */
const TRACE_ITEMS_MAX = 1_000
const TRACE_BYTES_MAX = 1_048_576
const RULESETS_HELD_MAX = 8

const SimulateBody = Type.Object(
  {
    requestId: Type.Optional(Type.String({ maxLength: 64 })),
    event: Type.Optional(GivenEvent),
    // Checked by the parser of rules, whose errors name the member.
    conditions: Type.Optional(Type.Unknown()),
    ruleId: Type.Optional(Type.String({ maxLength: 64 })),
  },
  strict,
)
const MonitorQuery = Type.Object(
  { days: Type.Optional(Type.Integer({ minimum: 1, maximum: MONITOR_DAYS_MAX })) },
  strict,
)

type Read = (path: string) => FieldValue

export function ruleTrialRoutes({ kv, events, monitor, lookUp }: RuleTrialNeeds): ApiRoute[] {
  const held = new Map<string, Ruleset>()

  /** null: accepted, but not decided yet. */
  async function storedEvent({ workspace, env }: Caller, requestId: string): Promise<Read | null> {
    if (requestTime(requestId) === null) throw invalid('requestId', 'This is no request id.')
    const event = await events.byId(workspace.id, env, requestId)
    if (event === null) throw new ApiError('not_found', { message: 'There is no such event.' })
    return event === 'pending' ? null : (path) => field(path)?.read(event) ?? null
  }

  async function rulesetOf(caller: Caller): Promise<Ruleset> {
    const { workspace, env } = callerPlaceOf(caller)
    const name = `${workspace}/${env}`
    const known = held.get(name)
    if (known !== undefined && known.revision === (await readRulesetRevision(kv, workspace, env))) return known
    const ruleset = await readRuleset(kv, workspace, env, known)
    if (ruleset === null) throw new ApiError('not_found')
    held.delete(name)
    held.set(name, ruleset)
    if (held.size > RULESETS_HELD_MAX) held.delete(held.keys().next().value as string)
    return ruleset
  }

  async function memberOf(caller: Caller, groups: readonly ConditionGroup[], read: Read): Promise<ListMember> {
    if (lookUp === undefined) return noLists
    const { workspace, env } = callerPlaceOf(caller)
    return lookUp(
      workspace,
      env,
      groups.flatMap((group) => [...askedLists(group, read)]),
    )
  }

  return [
    keyed({
      method: 'POST',
      doc: RULE_TRIAL_DOCS.simulate,
      path: '/v1/rules/simulate',
      access: 'rules:read',
      body: SimulateBody,
      async handle({ caller, body }) {
        const { requestId, event, conditions, ruleId } = body
        if (requestId !== undefined && event !== undefined) throw invalid('event', 'Send requestId or event, not both.')
        if (conditions !== undefined && ruleId !== undefined) {
          throw invalid('ruleId', 'Send conditions or ruleId, not both.')
        }
        if (ruleId !== undefined && !RULE_ID.test(ruleId)) throw invalid('ruleId', 'This is no rule id.')
        const group =
          conditions === undefined ? null : parseConditions(conditions, await parseContext(kv, caller, body))
        const { workspace, env } = caller
        const given = event === undefined ? null : readGiven(event, workspace.id, env)
        if (given === null && requestId === undefined) throw invalid('requestId', 'Send requestId or event.')
        const whole = given ?? (await storedEvent(caller, requestId ?? ''))
        if (whole === null) {
          return { status: 202, headers: [['Retry-After', '1']], body: { requestId, status: 'pending' } }
        }
        const read: Read = scoresVisible(workspace.plan) ? whole : withoutScores(whole)
        if (group !== null) {
          const trial = openTrial(read, await memberOf(caller, [group], read))
          return { body: outcome(trial.holds(group), null, [], [], shorten(trial.trace(group))) }
        }
        const isWhole = ruleId === undefined
        const rules: readonly Rule[] = isWhole
          ? (await rulesetOf(caller)).rules.filter(({ status }) => status === 'live' || status === 'monitor')
          : [{ ...(await existingRule(kv, caller, ruleId)), status: 'live' }]
        const groups = rules.map((rule) => rule.conditions)
        const trial = openTrial(read, await memberOf(caller, groups, read))
        const { verdict, matchedRules, monitorMatches } = decide(rules, trial.holds)
        const traces = function* () {
          for (const { id, conditions } of rules) {
            for (const item of trial.trace(conditions)) yield isWhole ? { ruleId: id, ...item } : item
          }
        }
        return { body: outcome(matchedRules.length > 0, verdict, matchedRules, monitorMatches, shorten(traces())) }
      },
    }),

    keyed({
      method: 'GET',
      doc: RULE_TRIAL_DOCS.monitor,
      path: '/v1/rules/:ruleId/monitor',
      access: 'rules:read',
      query: MonitorQuery,
      async handle({ caller, params, query: { days = MONITOR_DAYS } }) {
        const { workspace, env } = callerPlaceOf(caller)
        const rule = await existingRule(kv, caller, params.ruleId)
        const { since, ...report } = await monitor(workspace, env, rule, days)
        return { body: { ...report, since: isoTime(since) } }
      },
    }),
  ]
}

const withoutScores =
  (read: Read): Read =>
  (path) =>
    field(path)?.category === 'scores' ? null : read(path)

interface Decided {
  readonly verdict: Verdict | null
  readonly matchedRules: readonly RuleMatch[]
  readonly monitorMatches: readonly RuleMatch[]
}

/** As a decision does it: the first live rule that matches decides, all of them are asked. `rules` are in their order. */
function decide(rules: readonly Rule[], holds: (group: ConditionGroup) => boolean): Decided {
  const matchedRules: RuleMatch[] = []
  const monitorMatches: RuleMatch[] = []
  let liveCount = 0
  for (const { id, name, priority, action, status, conditions } of rules) {
    if (status === 'live') liveCount++
    if (!holds(conditions)) continue
    const deciding = status === 'live' && matchedRules.length === 0
    const match = { id, name, priority, verdict: action.verdict, deciding }
    if (status === 'live') matchedRules.push(match)
    else monitorMatches.push(match)
  }
  const verdict = matchedRules[0]?.verdict ?? (liveCount === 0 ? null : 'allow')
  return { verdict, matchedRules, monitorMatches }
}

type Trace = TraceItem & { readonly ruleId?: string }

function shorten(items: Iterable<Trace>): { readonly trace: readonly Trace[]; readonly truncated: boolean } {
  const trace: Trace[] = []
  let bytes = 0
  for (const item of items) {
    bytes += JSON.stringify(item).length
    if (trace.length === TRACE_ITEMS_MAX || bytes > TRACE_BYTES_MAX) return { trace, truncated: true }
    trace.push(item)
  }
  return { trace, truncated: false }
}

const outcome = (
  matched: boolean,
  verdict: Verdict | null,
  matchedRules: readonly RuleMatch[],
  monitorMatches: readonly RuleMatch[],
  { trace, truncated }: ReturnType<typeof shorten>,
) => ({ matched, verdict, matchedRules, monitorMatches, trace, ...(truncated ? { truncated } : {}) })
