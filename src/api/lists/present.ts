// Lists and their entries as the contract shows them, and which rules name a list.

import { foldListName } from '../../domain/list.ts'
import { isoTime } from '../../events/present.ts'
import type { StoredEntry, StoredList } from '../../records/lists.ts'
import type { StoredRule } from '../../records/rules.ts'
import { listsNamed } from '../../rules/leaves.ts'

export const presentListedList = ({ id, name, type, entryCount, createdAt, updatedAt }: StoredList) => ({
  id,
  name,
  type,
  entryCount,
  createdAt: isoTime(createdAt),
  updatedAt: isoTime(updatedAt),
})

export const presentList = (list: StoredList) => ({
  id: list.id,
  name: list.name,
  type: list.type,
  description: list.description,
  ttl: list.ttl,
  entryCount: list.entryCount,
  createdAt: isoTime(list.createdAt),
  updatedAt: isoTime(list.updatedAt),
})

export const presentEntry = (value: string, { addedAt, expiresAt, source, ruleId, reason }: StoredEntry) => ({
  value,
  addedAt: isoTime(addedAt),
  expiresAt: expiresAt === null ? null : isoTime(expiresAt),
  source,
  ruleId,
  reason,
})

/** Ids of the rules, whatever their status, whose conditions or side effects name the list. */
export function rulesNaming(rules: readonly StoredRule[], list: StoredList): string[] {
  const name = foldListName(list.name)
  return rules
    .filter(
      ({ conditions, action }) =>
        listsNamed(conditions).has(name) ||
        (action.sideEffects ?? []).some((effect) => 'list' in effect && foldListName(effect.list) === name),
    )
    .map(({ id }) => id)
}
