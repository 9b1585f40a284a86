// Says of an event whose account it has, and has the accounts of its visitor counted with it.

import type { StoredEvent } from '../../domain/event.ts'
import type { Annotate } from '../../ingress/annotate.ts'
import { type AccountUse, type AccountUseNeeds, readAccountUse } from '../../reads/account-use.ts'
import type { PlacedRow } from '../../reads/events.ts'
import type { AnnotatedChanges, Recount } from '../../records/annotations.ts'

export interface RelinkNeeds extends AccountUseNeeds {
  readonly annotate: Annotate
}

export interface Relinked extends AnnotatedChanges {
  readonly linkedId: StoredEvent['linkedId']
}

/** `found`: as it was before. Says all of `changes`. Fails with Unavailable before anything is said when ClickHouse cannot tell who has the former account. */
export type Relink = (found: PlacedRow, changes: Relinked) => Promise<void>

export function openRelink({ annotate, ...needs }: RelinkNeeds): Relink {
  return async ({ event, partition }, changes) => {
    const { workspace, env, requestId, visitorId, identity } = event
    const said = { workspace, env, requestId }
    // What could not be decided is no visit of anybody.
    if (event.evaluationError !== null) return annotate(partition, { ...said, changes })
    const from = identity.holder ?? visitorId
    const { linkedId } = changes
    const former = event.linkedId === linkedId ? null : event.linkedId
    const askUse = async (except: string | null): Promise<AccountUse | null> =>
      former === null ? null : readAccountUse(needs, { workspace, env, from, account: former, except })
    const recounted = (add: string | null, use: AccountUse | null): { readonly recount?: Recount } => {
      const drop = use === null || use.isUsed ? null : former
      if (add === null && drop === null) return {}
      return { recount: { visitorId: from, add, drop, lastSeenAt: use?.lastSeenAt ?? 0 } }
    }
    // The owner changes the event and the accounts in one step, so that nobody who dies or gives up leaves one without the other.
    const use = await askUse(requestId)
    await annotate(partition, { ...said, changes, ...recounted(linkedId, use) })
    if (use === null || !use.isUsed) return
    // Of two corrections at once each saw the other's event with the account: whoever asks after both are announced sees neither.
    const since = recounted(null, await askUse(null))
    if (since.recount !== undefined) await annotate(partition, { ...said, changes: {}, ...since })
  }
}
