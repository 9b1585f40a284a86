// What the caller of identify gets for an event (decisions §2): ids for a public key, the whole Event for a secret one.
// A pure function of the event, so that a replayed nonce and an adopted decision answer with the same bytes.

import type { StoredEvent } from '../domain/event.ts'
import type { KeyKind, Workspace } from '../domain/workspace.ts'
import { isoTime, presentEvent } from '../events/present.ts'
import { signToken } from './token.ts'

export type ResultWorkspace = Pick<Workspace, 'id' | 'plan' | 'settings' | 'tokenSecret'>

/** The JSON body of the 200. */
export function presentResult(event: StoredEvent, workspace: ResultWorkspace, keyKind: KeyKind): string {
  const storageToken = signToken(workspace.tokenSecret, event.workspace, event.env, {
    visitorId: event.identity.holder ?? event.visitorId,
    generation: event.identity.generation,
    issuedAt: event.timestamp,
  })
  if (keyKind === 'secret') return JSON.stringify({ ...presentEvent(event, workspace.plan), storageToken })
  const timestamp = isoTime(event.timestamp)
  const result: Record<string, unknown> = {
    requestId: event.requestId,
    visitorId: event.visitorId,
    visitorFound: event.visitorFound,
    confidence: event.confidence,
    firstSeenAt: isoTime(event.firstSeenAt),
    lastSeenAt: event.lastSeenAt === event.timestamp ? timestamp : isoTime(event.lastSeenAt),
    timestamp,
    storageToken,
  }
  if (workspace.settings.clientResult === 'verdict') {
    result.verdict = event.verdict
    result.challengeType = event.challengeType
  }
  return JSON.stringify(result)
}
