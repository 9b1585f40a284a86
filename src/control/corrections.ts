// What commands about visitors share: pairs that somebody labelled, and who is forgotten for good.

import type { Env } from '../domain/event.ts'
import type { KvKey, Put, Scope } from '../kv/kv.ts'
import {
  CORRECTION,
  CORRECTIONS,
  CORRECTIONS_MAX,
  type Correction,
  correctionKey,
  correctionOfKey,
} from '../records/aliases.ts'
import { erasedId } from '../records/erasures.ts'
import { tenantScope } from '../records/scopes.ts'
import type { Read } from './change.ts'

/** The newest are kept. */
export async function addCorrection(
  read: Read,
  scope: Scope,
  correction: Correction,
): Promise<{ put: Put[]; drop: KvKey[] }> {
  const [entry] = await read.get<number>(scope, [CORRECTIONS])
  const count = entry?.value ?? 0
  const full = count >= CORRECTIONS_MAX
  const [oldest] = full ? await read.scan<Correction>(scope, CORRECTION, { limit: 1 }) : []
  return {
    put: [
      { key: correctionKey(correction.seq), value: correction },
      ...correction.visitors.map((id) => ({ key: correctionOfKey(id, correction.seq), value: true })),
      { key: CORRECTIONS, value: full ? count : count + 1 },
    ],
    drop: oldest === undefined ? [] : correctionKeysOf(oldest.value),
  }
}

/** Where a correction lies. */
export const correctionKeysOf = ({ seq, visitors }: Correction): KvKey[] => [
  correctionKey(seq),
  ...visitors.map((id) => correctionOfKey(id, seq)),
]

/** Nobody is merged with, or split from, a visitor that is gone, however late the command comes. */
export const forgottenKey = (workspace: string, env: Env, visitorId: string): KvKey => [
  'forgotten',
  erasedId(workspace, env, visitorId),
]

interface Place {
  readonly workspace: string
  readonly env: Env
}

export const isForgotten = async (read: Read, place: Place, ids: readonly string[]): Promise<boolean> =>
  (await forgottenOf(read, place, ids)).size > 0

/** Those of `ids` that are gone for good. */
export async function forgottenOf(
  read: Read,
  { workspace, env }: Place,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const found = await read.get(
    tenantScope(workspace, env),
    ids.map((id) => forgottenKey(workspace, env, id)),
  )
  return new Set(ids.filter((_, i) => found[i] !== null))
}
