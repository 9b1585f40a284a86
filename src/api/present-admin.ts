// What the operator is shown of workspaces and keys.

import { ApiError } from '../domain/errors.ts'
import { seededBytes } from '../domain/ids.ts'
import { keyPrefix, makeKey } from '../domain/keys.ts'
import type { ApiKey, Workspace } from '../domain/workspace.ts'
import { isoTime } from '../events/present.ts'
import { must } from '../lib/must.ts'
import type { Keeping } from './idempotency.ts'

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

/** The text of a key is not kept but derived once more, which needs the token that the first answer was given under. */
export const WITHOUT_TEXT: Keeping = {
  keep(body) {
    const { key: _, ...shown } = body as ShownKey & { readonly key: string }
    return shown
  },
  show(kept, { seed }) {
    const shown = kept as ShownKey
    const key = makeKey(shown.kind, shown.environment, seededBytes(must(seed, 'the seed of a repetition')))
    if (key.endsWith(shown.last4)) return { ...shown, key }
    throw new ApiError('conflict', { message: 'This key was made, and can no longer be shown.' })
  },
}
