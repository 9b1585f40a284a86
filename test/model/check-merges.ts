// What must hold of merges when everything is quiet: whoever stands for another does so in the records of its partition too, and
// behind the order for it no visit is the alias's any more.

import type { Env } from '../../src/domain/event.ts'
import { homePartition } from '../../src/domain/ids.ts'
import { fromRow } from '../../src/events/row.ts'
import { aliasKey, mergedKey } from '../../src/records/aliases.ts'
import { decodeAliasing } from '../../src/records/identification.ts'
import { partitionScope, visitorKey } from '../../src/records/partitions.ts'
import { tenantScope } from '../../src/records/scopes.ts'
import { unpackHeldVisitor } from '../../src/records/visitors.ts'
import type { Facts } from './checks.ts'
import { PARTITIONS } from './deployment.ts'
import { peek } from './model-kv.ts'

export function checkMerges(facts: Facts): void {
  const { changes, kv, workspace, decided, lostPartition, problem } = facts
  for (const { draft, outcome } of changes) {
    if (draft.type !== 'visitor.merge' || outcome?.ok !== true || draft.env === null) continue
    const { env, data } = draft
    // Whoever is erased is nobody any more, and all that were one with it neither.
    const isErased = (id: string) => decided.erasureOf(`${env}/${id}`) !== undefined
    // Or may be, where an order is never decided.
    const isLost = (id: string) => homePartition(id, PARTITIONS) === lostPartition
    if ([data.survivor, data.visitorId].some((id) => isErased(id) || isLost(id))) continue
    const scope = tenantScope(workspace.id, env)
    const survivorOf = (id: string) => (peek(kv, scope, aliasKey(id)) as string | undefined) ?? id
    const survivor = survivorOf(data.survivor)
    if (survivorOf(data.visitorId) !== survivor)
      problem('an answered merge is kept', `${data.visitorId} is ${survivorOf(data.visitorId)}, not ${survivor}`)
    if (survivorOf(survivor) !== survivor) problem('a survivor is no alias', survivor)
    checkRecord(facts, env, survivor, survivor)
    const aliases = (peek(kv, scope, mergedKey(survivor)) as readonly string[] | undefined) ?? []
    for (const id of [data.survivor, data.visitorId]) {
      if (id === survivor) continue
      if (!aliases.includes(id)) problem('a survivor knows its aliases', `${survivor}: ${id}`)
      checkAlias(facts, env, id, survivor)
    }
  }
}

export function checkRecord({ kv, workspace, problem }: Facts, env: Env, id: string, survivor: string): void {
  const scope = partitionScope(homePartition(id, PARTITIONS))
  const held = peek(kv, scope, visitorKey(workspace.id, env, id)) as Uint8Array | undefined
  if (held !== undefined && unpackHeldVisitor(held).survivor !== survivor)
    problem('the record of whoever was merged names the survivor', `${id}: ${unpackHeldVisitor(held).survivor}`)
}

export function checkAlias(facts: Facts, env: Env, alias: string, survivor: string): void {
  const { log, decided, problem } = facts
  checkRecord(facts, env, alias, survivor)
  const partition = homePartition(alias, PARTITIONS)
  const orderedAt = log.side('identifications', partition).archive.find(({ bytes }) => {
    const order = readOrder(bytes)
    // Before that it may have been a survivor itself.
    return order?.visitorId === alias && order.env === env && order.survivor !== alias
  })
  for (const { item, cells } of decided.eventsBy(`${env}/${alias}`)) {
    if (item.seq < (orderedAt?.seq ?? 0)) continue
    const event = fromRow(cells() as Parameters<typeof fromRow>[0])
    if (event.visitorId === alias && event.evaluationError === null)
      problem('behind the order every visit is the survivor’s', `${item.requestId} is ${alias}’s`)
  }
}

function readOrder(bytes: Uint8Array) {
  try {
    return decodeAliasing(bytes)
  } catch {
    return null
  }
}
