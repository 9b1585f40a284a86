// /v1/visitors: one visitor by id, and its erasure.

import { ApiError } from '../domain/errors.ts'
import type { Env } from '../domain/event.ts'
import { isoTime } from '../events/present.ts'
import { countAccounts } from '../identity/linked-accounts.ts'
import type { VisitorState } from '../identity/visitor.ts'
import type { Erase } from '../ingress/erase.ts'
import type { VisitorReads } from '../reads/visitors.ts'
import { keyed, type Route } from './routes.ts'

function presentVisitor(visitor: VisitorState, lists: readonly string[]) {
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
  readonly erase: Erase
  /** Names of the lists a visitor is on. */
  readonly listsOf: (workspace: string, env: Env, visitorId: string) => Promise<string[]>
}

export function visitorRoutes({ visitors, erase, listsOf }: VisitorsNeeds): Route[] {
  return [
    keyed({
      method: 'GET',
      path: '/v1/visitors/:visitorId',
      access: 'visitors:read',
      handle: async ({ caller, params }) => {
        const { workspace, env } = caller
        const visitor = await visitors.byId(workspace.id, env, params.visitorId ?? '')
        if (visitor === null) throw new ApiError('not_found')
        return { body: presentVisitor(visitor, await listsOf(workspace.id, env, visitor.id)) }
      },
    }),
    keyed({
      method: 'DELETE',
      path: '/v1/visitors/:visitorId',
      access: 'visitors:delete',
      handle: async ({ caller, params }) => {
        const { workspace, env } = caller
        const visitorId = params.visitorId ?? ''
        if ((await visitors.byId(workspace.id, env, visitorId)) === null) throw new ApiError('not_found')
        return { body: { deleted: true, visitorId, erasureId: await erase(workspace.id, env, visitorId) } }
      },
    }),
  ]
}
