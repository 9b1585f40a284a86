// What rules did, when everything is quiet: each change of a list that was decided happened once, each line was logged, and
// neither an erased visitor nor one who became another's alias is on a list.

import { aliasKey, healedKey } from '../../src/records/aliases.ts'
import { LIST_DELTA, type ListDelta } from '../../src/records/list-deltas.ts'
import { LIST_ENTRY } from '../../src/records/lists.ts'
import { scanAll, tenantScope } from '../../src/records/scopes.ts'
import type { Facts } from './checks.ts'
import type { DecidedEvent } from './decided.ts'
import { peek } from './model-kv.ts'

const SCOPE = tenantScope('ws_model', 'live')

export async function checkLists({ raw, kv, changes, decided, logged, problem, lostPartition }: Facts): Promise<void> {
  const happened = new Map<string, number>()
  for await (const { value } of scanAll<ListDelta>(raw.kv, SCOPE, LIST_DELTA)) {
    for (const { added, removed } of value.changes) {
      // Rules here only add, and forgetting only removes: a merge lets an entry pass to the survivor.
      if (removed.length > 0) continue
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
  const survivorOf = (id: string) => (peek(kv, SCOPE, aliasKey(id)) as string | undefined) ?? id
  // Of several events of one visitor in one record the last speaks for all, and so it does of those who were one visitor then.
  const together = new Map<string, string>()
  const oneOf = (id: string): string => (together.has(id) ? oneOf(together.get(id) as string) : id)
  for (const { draft } of changes) {
    if (draft.type !== 'visitor.merge') continue
    const [into, from] = [oneOf(draft.data.survivor), oneOf(draft.data.visitorId)]
    if (into !== from) together.set(from, into)
  }
  for (const { item } of decided.events()) {
    for (const effect of item.effects ?? []) {
      if (effect.type !== 'heal') continue
      const [into, from] = [oneOf(effect.survivor), oneOf(effect.visitorId)]
      if (into !== from) together.set(from, into)
    }
  }
  const ofRules = ({ item }: DecidedEvent) => (item.effects ?? []).filter(({ type }) => type !== 'heal')
  const placeOf = (event: DecidedEvent) => {
    const { partition, record } = event
    const visitors = ofRules(event).map((effect) => ('value' in effect ? oneOf(effect.value) : ''))
    return `${partition}/${record.seq}/${visitors.join()}`
  }
  const withEffects = decided.events().filter((event) => ofRules(event).length > 0)
  const spokenFor = new Set(withEffects.filter(({ item }) => happened.has(item.requestId)).map(placeOf))
  for (const event of withEffects) {
    if (event.partition === lostPartition || spokenFor.has(placeOf(event))) continue
    problem('no side effect is lost', `${event.item.requestId} did not put ${event.item.visitorId} on the list`)
  }
  for (const { partition, item } of withEffects) {
    if (partition !== lostPartition && !logged.has(item.requestId)) problem('no line of a rule is lost', item.requestId)
  }
  for (const id of listed) {
    // What the engine found changes no list.
    const isHealed = peek(kv, SCOPE, healedKey(id)) !== undefined
    if (survivorOf(id) !== id && !isHealed) problem('an alias is on no list', id)
  }
  for (const { erasure } of decided.erasures()) {
    if (erasure.env === 'live' && listed.has(erasure.visitorId)) {
      problem('an erased visitor is on no list', erasure.visitorId)
    }
  }
}
