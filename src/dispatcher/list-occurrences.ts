// From a change of a list to what subscribers are told of its entries.

import type { Env } from '../domain/event.ts'
import type { EventType } from '../domain/webhook.ts'
import { isoTime } from '../events/present.ts'
import { derivedUlid } from '../records/deliveries.ts'
import type { ListChange, ListDelta } from '../records/list-deltas.ts'
import type { Matchable } from './occurrences.ts'

export interface ListMatchable extends Matchable {
  readonly value: string
  readonly isVisitor: boolean
}

/** Entries that were not there before, and those whose time was over. */
export function listOccurrences(
  { workspace, env }: { readonly workspace: string; readonly env: Env },
  delta: ListDelta,
  wants: (type: EventType) => boolean,
): ListMatchable[] {
  const found: ListMatchable[] = []
  for (const list of delta.changes) {
    const isVisitor = list.type === 'visitor'
    const add = (type: EventType, value: string, data: Readonly<Record<string, unknown>>, ruleId: string | null) => {
      const what = `${workspace}/${env}/list/${delta.seq}/${list.id}/${type}/${value}`
      const eventId = `evt_${derivedUlid(delta.at, what)}`
      const plainData = plainOf(list, value, type === 'list.entry.added' ? 'added' : 'expired')
      const occurrence = {
        eventId,
        type,
        at: delta.at,
        plainData,
        data: { listId: list.id, listName: list.name, value, ...data },
      }
      found.push({ occurrence, verdict: null, ruleId, botDetected: null, value, isVisitor })
    }
    for (const entry of wants('list.entry.added') ? list.added : []) {
      const { value, expiresAt, source, ruleId, requestId } = entry
      const until = expiresAt === null ? null : isoTime(expiresAt)
      if (entry.isNew) add('list.entry.added', value, { expiresAt: until, source, ruleId, requestId }, ruleId)
    }
    for (const { value, addedAt, expiresAt, ttl } of wants('list.entry.expired') ? list.expired : []) {
      const given = ttl ?? Math.round((expiresAt - addedAt) / 1_000)
      add('list.entry.expired', value, { addedAt: isoTime(addedAt), ttl: given }, null)
    }
  }
  return found
}

const plainOf = ({ id, name }: ListChange, entry: string, change: string) => ({
  requestId: null,
  visitorId: null,
  verdict: null,
  signals: null,
  list: { id, name },
  entry,
  change,
})
