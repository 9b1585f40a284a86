// What the operator is shown of workspaces and keys.

import { seededBytes } from '../../domain/ids.ts'
import { keyPrefix, makeKey } from '../../domain/keys.ts'
import type { ApiKey, Workspace } from '../../domain/workspace.ts'
import { isoTime } from '../../events/present.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { must } from '../../lib/must.ts'
import { isLive, keyDigest, keyKey } from '../../records/keys.ts'
import { SYSTEM } from '../../records/scopes.ts'
import type { Keeping, KeyedCall } from '../routes.ts'

export const presentWorkspace = ({
  id,
  name,
  plan,
  apiVersion,
  settings,
  createdAt,
}: Omit<Workspace, 'tokenSecret'>) => ({
  id,
  name,
  plan,
  apiVersion,
  settings,
  createdAt: isoTime(createdAt),
})

type ShownKey = ReturnType<typeof presentKey>
export const presentKey = (key: ApiKey) => ({
  id: key.id,
  kind: key.kind,
  environment: key.env,
  prefix: keyPrefix(key.kind, key.env),
  last4: key.last4,
  label: key.label,
  scopes: key.scopes,
  origins: key.origins,
  createdAt: isoTime(key.createdAt),
  expiresAt: key.expiresAt === null ? null : isoTime(key.expiresAt),
})

/** As the audit log shows it: until when it was valid, and what a rotation ended. */
export const presentAuditedKey = (key: ApiKey & { readonly revoked?: readonly string[] }) => ({
  ...presentKey(key),
  revokedAt: key.revokedAt === null ? null : isoTime(key.revokedAt),
  ...(key.revoked === undefined ? {} : { revoked: key.revoked }),
})

/**
 * The text of a key is not kept but derived once more, which needs the token that the first answer was given under. It is shown
 * only while the key is valid.
 */
export const withoutText = (
  { kv, clock }: { readonly kv: Pick<Kv, 'get'>; readonly clock: Pick<Clock, 'now'> },
  workspaceOf: (call: KeyedCall) => string,
): Keeping => ({
  keep(body) {
    const { key: _, ...shown } = body as ShownKey & { readonly key: string }
    return shown
  },
  async show(kept, call) {
    const { seed } = call
    const shown = kept as ShownKey
    const text = makeKey(shown.kind, shown.environment, seededBytes(must(seed, 'the seed of a repetition')))
    const [stored] = await kv.get<ApiKey>(SYSTEM, [keyKey(workspaceOf(call), shown.id)])
    const isValid = stored != null && isLive(stored.value, clock.now()) && stored.value.digest === keyDigest(text)
    return { ...shown, key: isValid ? text : null, replayed: true }
  },
})
