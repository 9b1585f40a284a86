// Making keys: what may be said of one, and the command that stores it. A key's text is in the answer that made it and nowhere else.

import { KEYS_PER_WORKSPACE_MAX, newKey } from '../../control/bootstrap.ts'
import { accepted, type Submitter } from '../../control/submit.ts'
import { invalid } from '../../domain/errors.ts'
import type { Env } from '../../domain/event.ts'
import { type RandomBytes, seededBytes } from '../../domain/ids.ts'
import { makeKey } from '../../domain/keys.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import { type ApiKey, type KeyKind, SCOPES } from '../../domain/workspace.ts'
import { parseDatetime } from '../../lib/datetime.ts'
import { Unavailable } from '../../lib/failures.ts'
import type { KeyToMake } from '../../records/commands.ts'
import type { KeyDirectory } from '../../records/key-directory.ts'
import { presentKey } from './present.ts'

const LABEL_CHARS_MAX = 200
const ORIGINS_MAX = 50
const ORIGIN_CHARS_MAX = 300
export const KEY_KINDS: readonly KeyKind[] = ['public', 'secret']

export const keyDetails = {
  label: Type.Optional(Type.String({ minLength: 1, maxLength: LABEL_CHARS_MAX })),
  scopes: Type.Optional(Type.Array(oneOf(SCOPES), { minItems: 1, maxItems: SCOPES.length, uniqueItems: true })),
  origins: Type.Optional(
    Type.Array(Type.String({ maxLength: ORIGIN_CHARS_MAX }), { minItems: 1, maxItems: ORIGINS_MAX }),
  ),
  expiresAt: Type.Optional(Type.String({ maxLength: 40 })),
}
const Details = Type.Object({ kind: oneOf(KEY_KINDS), ...keyDetails }, strict)

export type KeyAbout = Pick<KeyToMake, 'kind' | 'label' | 'scopes' | 'origins' | 'expiresAt'>

/** Throws validation_error for what does not go together. */
export function keyAbout(body: Static<typeof Details>, nowMs: number): KeyAbout {
  const { kind, label = null, scopes = null, origins = null } = body
  if (kind === 'public' && scopes !== null) throw invalid('scopes', 'Only secret keys have scopes.')
  if (kind === 'secret' && origins !== null) throw invalid('origins', 'Only public keys have origins.')
  const wrong = origins?.findIndex((origin) => !isOrigin(origin)) ?? -1
  if (wrong >= 0) throw invalid(`origins[${wrong}]`, 'Must be an origin such as https://shop.example.')
  const expiresAt = body.expiresAt === undefined ? null : parseDatetime(body.expiresAt)
  if (body.expiresAt !== undefined && (expiresAt === null || expiresAt <= nowMs)) {
    throw invalid('expiresAt', 'Must be a date and time in the future.')
  }
  return { kind, label, scopes, origins, expiresAt }
}

function isOrigin(text: string): boolean {
  try {
    return /^https?:/.test(text) && new URL(text).origin === text
  } catch {
    return false
  }
}

export interface MakeKeysNeeds {
  readonly submit: Submitter['submit']
  /** Reloaded before an answer leaves, so that this process never contradicts it. */
  readonly directory: Pick<KeyDirectory, 'reload'>
  readonly random: RandomBytes
  readonly keysMax?: number
}

/** Where a key belongs, and who makes it. */
export interface KeyPlace {
  readonly workspace: string
  readonly env: Env
  readonly actor: string
}

export function openMakeKeys({ submit, directory, random, keysMax = KEYS_PER_WORKSPACE_MAX }: MakeKeysNeeds) {
  /** What was commanded is true already, and the directory also reloads by itself: a failure here changes no answer. */
  async function refresh(): Promise<void> {
    try {
      await directory.reload()
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
    }
  }

  return {
    refresh,
    async makeAndStore(
      type: 'key.create' | 'key.rotate',
      place: KeyPlace,
      about: Parameters<typeof newKey>[2],
      seed: string | null,
    ) {
      const draw = seed === null ? random : seededBytes(seed)
      const text = makeKey(about.kind, place.env, draw)
      const key = newKey(text, draw, about)
      const { at, revoked } = accepted(await submit({ ...place, data: { key, keysMax }, type }))
      await refresh()
      const { workspace, env } = place
      const stored: ApiKey = { ...key, workspace, env, createdAt: at, revokedAt: null }
      return { ...presentKey(stored), key: text, ...(type === 'key.rotate' ? { revoked } : {}) }
    },
  }
}
