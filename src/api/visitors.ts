// /v1/visitors: one visitor by id.

import { ApiError } from '../domain/errors.ts'
import { isoTime } from '../events/present.ts'
import { countAccounts } from '../identity/linked-accounts.ts'
import type { VisitorState } from '../identity/visitor.ts'
import type { VisitorReads } from '../reads/visitors.ts'
import { keyed, type Route } from './routes.ts'

function presentVisitor(visitor: VisitorState) {
  return {
    visitorId: visitor.id,
    firstSeenAt: isoTime(visitor.firstSeenAt),
    lastSeenAt: isoTime(visitor.lastSeenAt),
    totalVisits: visitor.totalVisits,
    devices: visitor.devices.map(({ platform, browser, gpu }) => ({ platform, browser, gpu })),
    ips: visitor.ips,
    linkedAccounts: countAccounts(visitor.accounts),
    lists: [],
    previousVerdicts: visitor.verdicts,
  }
}

export function visitorRoutes({ visitors }: { readonly visitors: VisitorReads }): Route[] {
  return [
    keyed({
      method: 'GET',
      path: '/v1/visitors/:visitorId',
      access: 'visitors:read',
      handle: async ({ caller, params }) => {
        const visitor = await visitors.byId(caller.workspace.id, caller.env, params.visitorId ?? '')
        if (visitor === null) throw new ApiError('not_found')
        return { body: presentVisitor(visitor) }
      },
    }),
  ]
}
