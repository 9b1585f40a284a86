// What questions to ClickHouse leave out: visitors whose erasure was answered and is not executed yet.

import type { Env, StoredEvent } from '../domain/event.ts'
import { ERASED_ID_SQL, erasedId } from '../records/erasures.ts'

/** `erasing`: of `listErasing`. A term and its parameter; both empty when there is nobody to leave out. */
export const unerased = (
  erasing: readonly string[],
): { readonly sql: string; readonly params: Readonly<Record<string, unknown>> } =>
  erasing.length === 0
    ? { sql: '', params: {} }
    : { sql: ` AND ${ERASED_ID_SQL} NOT IN {erasing:Array(String)}`, params: { erasing } }

/** The event, which may be of somebody else whom nothing may name any more. */
export function withoutErasing(event: StoredEvent, erasing: ReadonlySet<string>): StoredEvent {
  const { workspace, env, possible } = event
  if (possible === null || erasing.size === 0) return event
  return erasing.has(erasedId(workspace, env, possible.visitorId)) ? { ...event, possible: null } : event
}

/** Those of the ids that may still be asked for. */
export const stillNamed = (
  ids: readonly string[],
  [workspace, env]: readonly [string, Env],
  erasing: readonly string[],
) => (erasing.length === 0 ? ids : ids.filter((id) => !erasing.includes(erasedId(workspace, env, id))))
