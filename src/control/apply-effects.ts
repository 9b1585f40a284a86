// What rules decided about lists, applied once however often it is told.

import { foldListName, normaliseEntry, normaliseNewEntry } from '../domain/list.ts'
import type { KvKey } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import type { ListEffect } from '../records/list-commands.ts'
import { readListsNamed } from '../records/lists.ts'
import { auditEffects } from './audit-effects.ts'
import type { Change, CommandOf, Read } from './change.ts'
import { readStored, tenantOf, writtenEntries } from './list-changes.ts'
import { type Addition, draftEntries, type EntriesWritten } from './list-entries.ts'
import { erasedOf, listedAs } from './memberships.ts'

const EFFECTS = 'list-effects'

export async function applyListEffects(command: CommandOf<'list.effects'>, seq: number, read: Read): Promise<Change> {
  const { deployment, partition, effects, entriesMax } = command.data
  const tenant = tenantOf(command)
  const placeKey: KvKey = [EFFECTS, `${deployment}/${partition}`]
  const [entry] = await read.get<readonly [number, number]>(tenant.scope, [placeKey])
  const [lastSeq, lastPart] = entry?.value ?? [0, 0]
  const place = [command.data.seq, command.data.part] as const
  const isRepeated = place[0] < lastSeq || (place[0] === lastSeq && place[1] <= lastPart)
  if (isRepeated) return { outcome: { ok: true, seq, at: command.at }, effects: [] }

  const named = await readListsNamed(
    read,
    tenant.workspace,
    tenant.env,
    effects.map(({ list }) => list),
  )
  const byList = new Map<string, ListEffect[]>()
  let skipped = 0
  for (const effect of effects) {
    const list = named.get(foldListName(effect.list))
    const normalise = effect.remove ? normaliseEntry : normaliseNewEntry
    const value = list === undefined ? null : normalise(list.type, effect.value)
    if (list === undefined || value === null) skipped += 1
    else byList.set(list.id, [...(byList.get(list.id) ?? []), { ...effect, value }])
  }
  const finished: EntriesWritten[] = []
  for (const [id, some] of byList) {
    const list = must(await readStored(read, tenant, id), 'a list that has a name')
    const values = some.map(({ value }) => value)
    const erased = await erasedOf(read, tenant, list.type, values)
    const as = await listedAs(read, tenant.scope, list.type, values)
    const draft = await draftEntries(read, tenant.scope, list, [...values.map(as), ...values], {
      atMs: command.at,
      entriesMax,
    })
    for (const effect of some) {
      const value = as(effect.value)
      // Whom the engine found to be another is on lists as before.
      if (effect.remove) for (const one of new Set([effect.value, value])) draft.remove(one)
      else if (erased.has(effect.value) || !draft.add(additionOf({ ...effect, value }))) skipped += 1
    }
    finished.push(draft.finish(seq))
  }
  // Commands of earlier versions may be about several lists.
  const [only] = finished
  const { at, actor } = command
  const audit =
    only === undefined || finished.length > 1 ? [] : await auditEffects(read, tenant.scope, only, { at, actor, seq })
  return writtenEntries(command, seq, read, finished, { skipped, put: [{ key: placeKey, value: place }, ...audit] })
}

const additionOf = ({ value, ttl, reason, ruleId, requestId }: ListEffect): Addition => ({
  value,
  ...(ttl === undefined ? {} : { ttl }),
  ...(reason === undefined ? {} : { reason }),
  source: 'rule',
  ruleId,
  requestId,
})
