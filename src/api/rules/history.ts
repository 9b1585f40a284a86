// What became of rules: the audit log, the versions of one rule, and the way back to one of them.

import type { Propagation } from '../../control/propagation.ts'
import type { Submitter } from '../../control/submit.ts'
import { ApiError } from '../../domain/errors.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import type { ApiKey, Workspace } from '../../domain/workspace.ts'
import { isoTime } from '../../events/present.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { readLast, writeCursor } from '../../reads/cursor.ts'
import type { StoredAlert } from '../../records/alerts.ts'
import {
  AUDITED,
  type AuditFilter,
  readAudit,
  readAuditEntry,
  readAuditSeqs,
  type StoredAuditEntry,
} from '../../records/audit.ts'
import type { Caller } from '../../records/auth.ts'
import type { RuleMaxima, WebhookHead } from '../../records/commands.ts'
import type { StoredList } from '../../records/lists.ts'
import type { StoredPerson } from '../../records/people.ts'
import type { StoredRule } from '../../records/rules.ts'
import { type Actor, openActors } from '../actors.ts'
import { presentAuditedKey, presentWorkspace } from '../admin/present.ts'
import { presentAlert } from '../alerts/routes.ts'
import { callerPlaceOf, commandOf } from '../callers.ts'
import { presentAuditedPerson } from '../console/present.ts'
import { presentList } from '../lists/present.ts'
import type { PacedSteps } from '../paced-steps.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { PAGE_CHARS_MAX, PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { Written } from '../slices.ts'
import { presentAuditedWebhook } from '../webhooks/present.ts'
import { refuseStored } from './context.ts'
import { RULE_DOCS } from './docs.ts'
import { presentDefinition } from './present.ts'
import { etag, existingRule, ifMatch, RULE_ID, RULE_MAXIMA, writtenRule } from './routes.ts'

export interface RuleHistoryNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
  readonly awaitPropagation: Propagation['awaitPropagation']
  readonly clock: Clock
  readonly turns: PacedSteps
  readonly maxima?: RuleMaxima
}

const PAGE = { limit: PAGE_LIMIT, cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })) }
const PageQuery = Type.Object(PAGE, strict)
const AuditQuery = Type.Object(
  {
    ...PAGE,
    resource: Type.Optional(oneOf(AUDITED)),
    id: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_]{1,64}$', maxLength: 64 })),
  },
  strict,
)
const RollbackBody = Type.Object({ version: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) }, strict)

export function ruleHistoryRoutes(needs: RuleHistoryNeeds): ApiRoute[] {
  const { kv, submit, awaitPropagation, clock, turns, maxima = RULE_MAXIMA } = needs

  /** Of entries before `end`; it ends with the entry that makes it long enough. */
  async function page(
    caller: Caller,
    filter: AuditFilter,
    query: Static<typeof PageQuery>,
    show: (entry: StoredAuditEntry, actor: Actor) => unknown,
    end: number | null = null,
  ) {
    const { workspace, env } = callerPlaceOf(caller)
    const { tokenSecret } = caller.workspace
    const question = JSON.stringify(['audit', workspace, env, filter])
    const before = query.cursor === undefined ? end : Number(readLast(tokenSecret, question, query.cursor))
    const actors = openActors(kv, workspace)
    const data: Written[] = []
    let chars = 0
    const last = await readAudit(
      kv,
      workspace,
      env,
      filter,
      query.limit ?? PAGE_LIMIT_DEFAULT,
      before,
      async (entry) => {
        const actor = await actors(entry.actor)
        const text = await turns.take(() => JSON.stringify(show(entry, actor)))
        data.push(new Written(text))
        chars += text.length
        return chars <= PAGE_CHARS_MAX
      },
    )
    return {
      data,
      hasMore: last !== null,
      nextCursor: last === null ? null : writeCursor(tokenSecret, question, String(last)),
    }
  }

  return [
    keyed({
      method: 'GET',
      doc: RULE_DOCS.audit,
      path: '/v1/audit',
      access: 'rules:read',
      query: AuditQuery,
      async handle({ caller, query }) {
        const { resource, id } = query
        if (id !== undefined && resource === undefined) {
          throw new ApiError('validation_error', { field: 'resource', message: 'Needed together with id.' })
        }
        const filter = { ...(resource === undefined ? {} : { resource }), ...(id === undefined ? {} : { id }) }
        const body = await page(caller, filter, query, (entry, actor) => ({
          at: isoTime(entry.at),
          ...actor,
          resource: entry.resource,
          id: entry.id,
          action: entry.action,
          before: shown(entry.before, entry),
          after: shown(entry.after, entry),
        }))
        return { body }
      },
    }),

    keyed({
      method: 'GET',
      doc: RULE_DOCS.versions,
      path: '/v1/rules/:ruleId/versions',
      access: 'rules:read',
      query: PageQuery,
      async handle({ caller, params, query }) {
        const { ruleId: id = '' } = params
        const { workspace, env } = callerPlaceOf(caller)
        // Of a rule that is gone they are what is left.
        const seqs = RULE_ID.test(id) ? await readAuditSeqs(kv, workspace, env, 'rule', id) : []
        if (seqs.length === 0) throw new ApiError('not_found')
        const show = (entry: StoredAuditEntry, { actor }: Actor) => ({
          version: seqs.indexOf(entry.seq) + 1,
          etag: etag({ version: entry.seq })[1],
          at: isoTime(entry.at),
          actor,
          action: entry.action,
          rule: shown(entry.after, entry),
        })
        // What was added since then has no number yet.
        const end = (seqs.at(-1) ?? 0) + 1
        return { body: await page(caller, { resource: 'rule', id }, query, show, end) }
      },
    }),

    keyed({
      method: 'POST',
      doc: RULE_DOCS.rollback,
      path: '/v1/rules/:ruleId/rollback',
      access: 'rules:write',
      headers: ['if-match'],
      body: RollbackBody,
      async handle({ caller, params, body, header }) {
        const startedAt = clock.monotonic()
        const expectVersion = ifMatch(header('if-match'))
        const { id } = await existingRule(kv, caller, params.ruleId)
        const { workspace, env } = callerPlaceOf(caller)
        const seqs = await readAuditSeqs(kv, workspace, env, 'rule', id)
        // Versions were once numbered by their place in the log of changes, and still go by that where no version has the number.
        const seq = seqs[body.version - 1] ?? body.version
        const known = await readAuditEntry(kv, workspace, env, { resource: 'rule', id, seq })
        const version = known?.after as StoredRule | null | undefined
        if (!version) throw new ApiError('not_found', { message: 'This rule has no such version.' })
        await refuseStored(kv, caller, version)
        const { rule, revision } = writtenRule(
          await submit({
            ...commandOf(caller),
            ...(expectVersion === null ? {} : { expectVersion }),
            type: 'rule.rollback',
            data: { id, version: seq, maxima },
          }),
        )
        const reached = await awaitPropagation({ ...callerPlaceOf(caller), revision, startedAt })
        const { name, status, priority, updatedAt } = rule
        return {
          headers: [etag(rule)],
          body: { id, name, status, priority, updatedAt: isoTime(updatedAt), ...reached },
        }
      },
    }),
  ]
}

function shown(object: unknown, { resource, action }: StoredAuditEntry) {
  if (object === null || (resource === 'list' && action === 'entries')) return object
  if (resource === 'workspace') return presentWorkspace(object as Workspace)
  if (resource === 'person') return presentAuditedPerson(object as StoredPerson)
  if (resource === 'key') return presentAuditedKey(object as ApiKey)
  if (resource === 'rule') return presentDefinition(object as StoredRule)
  if (resource === 'list') return presentList(object as StoredList)
  if (resource === 'alert') return presentAlert(object as StoredAlert)
  return resource === 'webhook' ? presentAuditedWebhook(object as WebhookHead) : object
}
