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

export async function isForgotten(
  read: Read,
  { workspace, env }: { readonly workspace: string; readonly env: Env },
  ids: readonly string[],
): Promise<boolean> {
  const found = await read.get(
    tenantScope(workspace, env),
    ids.map((id) => forgottenKey(workspace, env, id)),
  )
  return found.some((entry) => entry !== null)
}
