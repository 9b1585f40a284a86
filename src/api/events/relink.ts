// Has the accounts of a visitor counted anew when the account of one of its events was corrected.

import type { StoredEvent } from '../../domain/event.ts'
import type { Annotate } from '../../ingress/annotate.ts'
import { type AccountUseNeeds, readAccountUse } from '../../reads/account-use.ts'
import type { PlacedRow } from '../../reads/events.ts'

export interface RelinkNeeds extends AccountUseNeeds {
  readonly annotate: Annotate
}

/** `found`: as it was before. To be called when every read shows the new account. */
export type Relink = (found: PlacedRow, linkedId: StoredEvent['linkedId']) => Promise<void>

export function openRelink({ annotate, ...needs }: RelinkNeeds): Relink {
  return async ({ event, partition }, linkedId) => {
    // What could not be decided is no visit of anybody.
    if (event.linkedId === linkedId || event.evaluationError !== null) return
    const { workspace, env, requestId, visitorId, identity } = event
    const from = identity.holder ?? visitorId
    const account = event.linkedId
    const use = account === null ? null : await readAccountUse(needs, { workspace, env: env, from, account })
    const drop = use === null || use.isUsed ? null : account
    if (drop === null && linkedId === null) return
    const recount = { visitorId: from, add: linkedId, drop, lastSeenAt: use?.lastSeenAt ?? 0 }
    await annotate(partition, { workspace, env, requestId, changes: {}, recount })
  }
}
