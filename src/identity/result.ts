// What the caller of identify gets for an event (src/docs/contract.md, Identification): ids for a public key, the whole Event for a secret one.
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
  if (keyKind === 'secret') {
    return `${JSON.stringify(presentEvent(event, workspace.plan)).slice(0, -1)},"storageToken":"${storageToken}"}`
  }
  const timestamp = isoTime(event.timestamp)
  const firstSeenAt = isoTime(event.firstSeenAt)
  const lastSeenAt = event.lastSeenAt === event.timestamp ? timestamp : isoTime(event.lastSeenAt)
  // By hand, as JSON.stringify writes it: nothing in it needs escaping, and most answers are of this kind.
  const ids = `{"requestId":"${event.requestId}","visitorId":"${event.visitorId}","visitorFound":${event.visitorFound}`
  const times = `"firstSeenAt":"${firstSeenAt}","lastSeenAt":"${lastSeenAt}","timestamp":"${timestamp}"`
  const all = `${ids},"confidence":${event.confidence},${times},"storageToken":"${storageToken}"`
  if (workspace.settings.clientResult !== 'verdict') return `${all}}`
  return `${all},"verdict":${JSON.stringify(event.verdict)},"challengeType":${JSON.stringify(event.challengeType)}}`
}
