// /v1/visitors: one visitor by id, another one merged into it, and its erasure.

import { hash } from 'node:crypto'
import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import type { Env } from '../../domain/event.ts'
import { strict, Type } from '../../domain/schema.ts'
import { isoTime } from '../../events/present.ts'
import { countAccounts } from '../../identity/linked-accounts.ts'
import type { VisitorState } from '../../identity/visitor.ts'
import type { ErasedVisitor } from '../../ingress/erase.ts'
import type { VisitorReads } from '../../reads/visitors.ts'
import type { Caller } from '../../records/auth.ts'
import { commandOf } from '../callers.ts'
import { type ApiRoute, keyed, type RouteReply } from '../routes.ts'
import { VISITOR_DOCS } from './docs.ts'
import type { Erasures } from './erase.ts'

export function presentVisitor(visitor: VisitorState, lists: readonly string[]) {
  return {
    visitorId: visitor.id,
    firstSeenAt: isoTime(visitor.firstSeenAt),
    lastSeenAt: isoTime(visitor.lastSeenAt),
    totalVisits: visitor.totalVisits,
    devices: visitor.devices.map(({ platform, browser, gpu }) => ({ platform, browser, gpu })),
    ips: visitor.ips,
    linkedAccounts: countAccounts(visitor.accounts),
    lists,
    previousVerdicts: visitor.verdicts,
  }
}

export interface VisitorsNeeds {
  readonly visitors: VisitorReads
  /** Of one id and whatever was merged into it. */
  readonly erasures: Erasures
  readonly submit: Submitter['submit']
  readonly partitions: number
  readonly entriesMax: number
  /** Names of the lists a visitor is on. */
  readonly listsOf: (workspace: string, env: Env, visitorId: string) => Promise<string[]>
}

/** It waits for the owners of partitions, and then for the control plane, which may both be taken over meanwhile. */
const ERASE_DEADLINE_MS = 30_000

const MergeBody = Type.Object({ visitorId: Type.String({ pattern: '^pv_[0-9A-Za-z]{20}$', maxLength: 23 }) }, strict)

export function visitorRoutes({
  visitors,
  erasures,
  submit,
  partitions,
  entriesMax,
  listsOf,
}: VisitorsNeeds): ApiRoute[] {
  async function existing({ workspace, env }: Caller, visitorId: string, field?: string): Promise<VisitorState> {
    const visitor = await visitors.byId(workspace.id, env, visitorId)
    if (visitor === null) throw new ApiError('not_found', field === undefined ? {} : { field })
    return visitor
  }

  async function show(caller: Caller, visitorId: string): Promise<RouteReply> {
    const visitor = await existing(caller, visitorId)
    return { body: presentVisitor(visitor, await listsOf(caller.workspace.id, caller.env, visitor.id)) }
  }

  return [
    keyed({
      method: 'GET',
      doc: VISITOR_DOCS.one,
      path: '/v1/visitors/:visitorId',
      access: 'visitors:read',
      handle: ({ caller, params }) => show(caller, params.visitorId ?? ''),
    }),
    keyed({
      method: 'POST',
      doc: VISITOR_DOCS.merge,
      path: '/v1/visitors/:visitorId/merge',
      access: 'visitors:write',
      body: MergeBody,
      handle: async ({ caller, params, body }) => {
        const survivor = params.visitorId ?? ''
        if (body.visitorId === survivor) throw invalid('visitorId', 'A visitor cannot be merged into itself.')
        await existing(caller, survivor)
        await existing(caller, body.visitorId, 'visitorId')
        const data = { survivor, visitorId: body.visitorId, partitions, entriesMax }
        accepted(await submit({ ...commandOf(caller), type: 'visitor.merge', data }))
        return show(caller, survivor)
      },
    }),
    keyed({
      method: 'DELETE',
      doc: VISITOR_DOCS.remove,
      path: '/v1/visitors/:visitorId',
      access: 'visitors:delete',
      deadlineMs: ERASE_DEADLINE_MS,
      handle: async ({ caller, params }) => {
        const { workspace, env } = caller
        const visitorId = params.visitorId ?? ''
        // Of one that was answered too late, or not at all, the visitor is gone already.
        if (!(await erasures.isUnfinished(workspace.id, env, visitorId))) await existing(caller, visitorId)
        const note = async (one: ErasedVisitor) => {
          const data = { resource: 'erasure', id: one.erasureId, action: 'erase', before: null, about: null } as const
          const after = { erasureId: one.erasureId, visitorHash: hash('sha256', one.visitorId, 'hex') }
          accepted(await submit({ ...commandOf(caller), type: 'visitor.note', data: { ...data, after } }))
        }
        const [{ erasureId }] = await erasures.erase(workspace.id, env, visitorId, note)
        return { body: { deleted: true, visitorId, erasureId } }
      },
    }),
  ]
}
