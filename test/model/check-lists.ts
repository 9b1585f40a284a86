// What rules did to lists, when everything is quiet: each side effect that was decided happened once, and no erased visitor is
// on a list.

import { LIST_DELTA, type ListDelta } from '../../src/records/list-deltas.ts'
import { LIST_ENTRY } from '../../src/records/lists.ts'
import { scanAll, tenantScope } from '../../src/records/scopes.ts'
import type { Facts } from './checks.ts'
import type { DecidedEvent } from './decided.ts'

const SCOPE = tenantScope('ws_model', 'live')

export async function checkLists({ raw, decided, problem, lostPartition }: Facts): Promise<void> {
  const happened = new Map<string, number>()
  for await (const { value } of scanAll<ListDelta>(raw.kv, SCOPE, LIST_DELTA)) {
    for (const { added } of value.changes) {
      for (const { requestId } of added)
        if (requestId !== null) happened.set(requestId, (happened.get(requestId) ?? 0) + 1)
    }
  }
  const listed = new Set<string>()
  for await (const { key } of scanAll(raw.kv, SCOPE, LIST_ENTRY)) listed.add(key[1].slice(key[1].indexOf('/') + 1))

  for (const [requestId, times] of happened) {
    if (times > 1) problem('a side effect happens once', `${requestId} happened ${times} times`)
    if (decided.eventsOf(requestId).length === 0) problem('a side effect was decided', requestId)
  }
  // Of several events of one visitor in one record the last speaks for all.
  const placeOf = ({ partition, record, item }: DecidedEvent) => `${partition}/${record.seq}/${item.visitorId}`
  const withEffects = decided.events().filter(({ item }) => (item.effects ?? []).length > 0)
  const spokenFor = new Set(withEffects.filter(({ item }) => happened.has(item.requestId)).map(placeOf))
  for (const event of withEffects) {
    if (event.partition === lostPartition || spokenFor.has(placeOf(event))) continue
    problem('no side effect is lost', `${event.item.requestId} did not put ${event.item.visitorId} on the list`)
  }
  for (const { erasure } of decided.erasures()) {
    if (erasure.env === 'live' && listed.has(erasure.visitorId)) {
      problem('an erased visitor is on no list', erasure.visitorId)
    }
  }
}
