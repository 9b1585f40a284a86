// /v1/rules: writes go through the control plane and answer once evaluators decide by them; reads come from the kv.

import type { Propagation } from '../../control/propagation.ts'
import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import type { Env } from '../../domain/event.ts'
import type { RandomBytes } from '../../domain/ids.ts'
import type { RuleAction } from '../../domain/rule.ts'
import type { Static } from '../../domain/schema.ts'
import { isoTime } from '../../events/present.ts'
import type { HttpHeader } from '../../http/message.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Sealer } from '../../lib/sealed.ts'
import type { RuleStats } from '../../reads/rule-stats.ts'
import type { Caller } from '../../records/auth.ts'
import type { RuleCommandChanges, RuleHead, RuleMaxima } from '../../records/commands.ts'
import { readRule, readRuleSlots, readRulesetRevision, type StoredRule } from '../../records/rules.ts'
import { sealAction, sealAddresses } from '../../records/slack-addresses.ts'
import { type ParseContext, parseConditions } from '../../rules/parse.ts'
import { parseAction } from '../../rules/parse-action.ts'
import { callerPlaceOf, commandOf, newId } from '../callers.ts'
import { KEEP_ALL } from '../idempotency.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { RuleCreateBody, RuleListQuery, RuleUpdateBody } from './bodies.ts'
import { parseContext, textsIn } from './context.ts'
import { RULE_DOCS } from './docs.ts'
import { openListedRules } from './listed.ts'
import { PRESENTED_FIELDS, presentRule } from './present.ts'

/** Every shard holds all that is live or monitor, compiled, and whoever reads rules holds the rest as well. */
export const RULE_MAXIMA = { rulesMax: 5_000, activeMax: 1_000, bytesMax: 64 * 1024 * 1024 } satisfies RuleMaxima

export interface RulesNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
  /** Seals addresses that are secrets. */
  readonly sealer: Pick<Sealer, 'seal'>
  readonly awaitPropagation: Propagation['awaitPropagation']
  readonly clock: Clock
  readonly random: RandomBytes
  readonly ruleStats: (workspace: string, env: Env, ruleId: string) => Promise<RuleStats>
  readonly maxima?: RuleMaxima
}

const NO_SIDE_EFFECTS: RuleAction = { verdict: 'allow' }
const NO_TEXTS: ReadonlySet<string> = new Set()

export function ruleRoutes(needs: RulesNeeds): ApiRoute[] {
  const { kv, submit, awaitPropagation, clock, random, sealer, ruleStats, maxima = RULE_MAXIMA } = needs
  const listed = openListedRules(kv)

  return [
    keyed({
      method: 'POST',
      doc: RULE_DOCS.create,
      path: '/v1/rules',
      access: 'rules:write',
      body: RuleCreateBody,
      once: KEEP_ALL,
      async handle({ caller, body, seed }) {
        const startedAt = clock.monotonic()
        const context = await parseContext(kv, caller, body)
        const conditions = parseConditions(body.conditions, context)
        const action = sealAction(
          sealer,
          parseAction({ ...context, action: body.action, sideEffects: body.sideEffects }),
        )
        const { rule, revision } = writtenRule(
          await submit({
            ...commandOf(caller),
            type: 'rule.create',
            data: {
              id: newId({ seed }, 'rul', random),
              name: body.name,
              conditions,
              action,
              priority: body.priority ?? null,
              status: body.status ?? 'draft',
              maxima,
            },
          }),
        )
        const reached = await awaitPropagation({ ...callerPlaceOf(caller), revision, startedAt })
        const { id, priority, status, createdAt } = rule
        return {
          status: 201,
          headers: [etag(rule)],
          body: { id, name: rule.name, priority, status, createdAt: isoTime(createdAt), ...reached },
        }
      },
    }),

    keyed({
      method: 'GET',
      doc: RULE_DOCS.list,
      path: '/v1/rules',
      access: 'rules:read',
      query: RuleListQuery,
      async handle({ caller, query: { status, limit = PAGE_LIMIT_DEFAULT, offset = 0 } }) {
        const { workspace, env } = callerPlaceOf(caller)
        const slots = await readRuleSlots(kv, workspace, env)
        const found = status === undefined ? slots : slots.filter((slot) => slot.status === status)
        const data = await listed(workspace, env, found.slice(offset, offset + limit))
        return { body: { data, total: found.length } }
      },
    }),

    keyed({
      method: 'GET',
      doc: RULE_DOCS.fields,
      path: '/v1/rules/fields',
      access: 'rules:read',
      handle: () => ({ body: { data: PRESENTED_FIELDS, total: PRESENTED_FIELDS.length } }),
    }),

    keyed({
      method: 'GET',
      doc: RULE_DOCS.one,
      path: '/v1/rules/:ruleId',
      access: 'rules:read',
      async handle({ caller, params }) {
        const { workspace, env } = callerPlaceOf(caller)
        const rule = await existingRule(kv, caller, params.ruleId)
        const stats = await ruleStats(workspace, env, rule.id)
        return { headers: [etag(rule)], body: presentRule(rule, stats) }
      },
    }),

    keyed({
      method: 'PUT',
      doc: RULE_DOCS.update,
      path: '/v1/rules/:ruleId',
      access: 'rules:write',
      headers: ['if-match'],
      body: RuleUpdateBody,
      bodyMayBeEmpty: true,
      async handle({ caller, params, body, header }) {
        const startedAt = clock.monotonic()
        const context = await parseContext(kv, caller, body)
        const known = body.conditions === undefined ? NO_TEXTS : await literalsOf(caller, params.ruleId)
        const changes = sealChanges(sealer, parseChanges(body, { ...context, known }))
        const expectVersion = ifMatch(header('if-match'))
        const before = await existingRule(kv, caller, params.ruleId)
        const { rule, revision } =
          Object.keys(changes).length === 0
            ? await unchanged(caller, before, expectVersion)
            : writtenRule(
                await submit({
                  ...commandOf(caller),
                  ...(expectVersion === null ? {} : { expectVersion }),
                  type: 'rule.update',
                  data: { id: before.id, changes, maxima },
                }),
              )
        const reached = await awaitPropagation({ ...callerPlaceOf(caller), revision, startedAt })
        const { id, status, priority, updatedAt } = rule
        return {
          headers: [etag(rule)],
          body: { id, name: rule.name, status, priority, updatedAt: isoTime(updatedAt), ...reached },
        }
      },
    }),

    keyed({
      method: 'DELETE',
      doc: RULE_DOCS.remove,
      path: '/v1/rules/:ruleId',
      access: 'rules:write',
      headers: ['if-match'],
      async handle({ caller, params, header }) {
        const startedAt = clock.monotonic()
        const expectVersion = ifMatch(header('if-match'))
        const { id } = await existingRule(kv, caller, params.ruleId)
        const { revision = 0 } = accepted(
          await submit({
            ...commandOf(caller),
            ...(expectVersion === null ? {} : { expectVersion }),
            type: 'rule.delete',
            data: { id },
          }),
        )
        // The answer promises that the rule is out of force, so it waits like the other writes do.
        await awaitPropagation({ ...callerPlaceOf(caller), revision, startedAt })
        return { body: { deleted: true, ruleId: id } }
      },
    }),
  ]

  /** The texts that a rule compares with now; none where there is no such rule. */
  async function literalsOf(caller: Caller, ruleId = ''): Promise<ReadonlySet<string>> {
    const { workspace, env } = callerPlaceOf(caller)
    const rule = RULE_ID.test(ruleId) ? await readRule(kv, workspace, env, ruleId) : null
    return rule === null ? NO_TEXTS : textsIn(rule.conditions)
  }

  async function unchanged(caller: Caller, rule: StoredRule, expectVersion: number | null) {
    if (expectVersion !== null && expectVersion !== rule.version) {
      throw new ApiError('conflict', { message: 'The rule has changed since it was read.' })
    }
    const { workspace, env } = callerPlaceOf(caller)
    return { rule, revision: (await readRulesetRevision(kv, workspace, env)) ?? 0 }
  }
}

export const RULE_ID = /^rul_[0-9A-Za-z]{20}$/

/** Throws validation_error naming `at`: one and the same for an id that is unknown, of a rule deleted, or another environment's. */
export async function refuseUnknownRule(kv: Pick<Kv, 'get'>, caller: Caller, ruleId: string | undefined, at: string) {
  if (ruleId === undefined) return
  const { workspace, env } = callerPlaceOf(caller)
  if ((await readRule(kv, workspace, env, ruleId)) === null) throw invalid(at, 'No such rule.')
}

/** Throws ApiError not_found. */
export async function existingRule(kv: Pick<Kv, 'get'>, caller: Caller, ruleId = ''): Promise<StoredRule> {
  const { workspace, env } = callerPlaceOf(caller)
  const rule = RULE_ID.test(ruleId) ? await readRule(kv, workspace, env, ruleId) : null
  if (rule === null) throw new ApiError('not_found')
  return rule
}

function sealChanges(sealer: Pick<Sealer, 'seal'>, changes: RuleCommandChanges): RuleCommandChanges {
  const { action, sideEffects } = changes
  return {
    ...changes,
    ...(action === undefined ? {} : { action: sealAction(sealer, action) }),
    ...(sideEffects === undefined ? {} : { sideEffects: sealAddresses(sealer, sideEffects) }),
  }
}

function parseChanges(body: Static<typeof RuleUpdateBody>, context: ParseContext): RuleCommandChanges {
  const { action, conditions, sideEffects, ...plain } = body
  const parsed =
    action === undefined && sideEffects === undefined
      ? undefined
      : parseAction({ ...context, action, sideEffects, current: NO_SIDE_EFFECTS })
  // What a partial action keeps of the rule is for the owner to say: the rule may have changed by then.
  const effects = parsed?.sideEffects
  return {
    ...plain,
    ...(conditions === undefined ? {} : { conditions: parseConditions(conditions, context) }),
    ...(action === undefined || parsed === undefined ? {} : { action: parsed }),
    ...(action === undefined && effects !== undefined ? { sideEffects: effects } : {}),
  }
}

export function writtenRule(outcome: Parameters<typeof accepted>[0]): {
  readonly rule: RuleHead
  readonly revision: number
} {
  const { rule, revision } = accepted(outcome)
  if (rule === undefined || revision === undefined) throw new Error('the outcome of a rule command without a rule')
  return { rule, revision }
}

export const etag = ({ version }: Pick<RuleHead, 'version'>): HttpHeader => ['ETag', `"${version}"`]

const ETAG = /^(?:W\/)?"[\x21\x23-\x7e]*"$/
/** No object ever has it: what asks for it meets a conflict. */
const NO_VERSION = 0

/** The version an If-Match asks for; null when any will do. An ETag that is none of ours is one that no object has. */
export function ifMatch(header: string): number | null {
  if (header === '' || header === '*') return null
  const tags = header.split(',').map((tag) => tag.trim())
  if (!tags.every((tag) => ETAG.test(tag))) throw invalid('If-Match', 'Must be an ETag or *.')
  const versions = tags.flatMap((tag) => /^"(\d{1,15})"$/.exec(tag)?.[1] ?? [])
  if (versions.length > 1) throw invalid('If-Match', 'Must name one version.')
  return Number(versions[0] ?? NO_VERSION)
}
