// /v1/keys: the keys of the caller's own workspace and environment. Whoever makes a key gives it nothing beyond its own scopes and
// expiry, and ends none that has more.

import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError } from '../../domain/errors.ts'
import { ENVS, type Env } from '../../domain/event.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import { type ApiKey, DEFAULT_SCOPES, type KeyScope } from '../../domain/workspace.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Caller } from '../../records/auth.ts'
import { isLive, keyKey, listKeys } from '../../records/keys.ts'
import { SYSTEM } from '../../records/scopes.ts'
import { commandOf } from '../callers.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { OFFSET, PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { KEY_DOCS } from './key-docs.ts'
import { KEY_KINDS, keyAbout, keyDetails, type MakeKeysNeeds, openMakeKeys } from './make-keys.ts'
import { presentKey, withoutText } from './present.ts'

export interface KeysNeeds extends MakeKeysNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
  readonly clock: Clock
}

const KEY_ID = /^[A-Za-z0-9_]{1,64}$/
const PageQuery = Type.Object({ limit: PAGE_LIMIT, offset: OFFSET }, strict)
const kind = oneOf(KEY_KINDS)
/** Nobody needs to name the caller's own environment, and no other one may be named. */
const environment = Type.Optional(oneOf(ENVS))
const CreateBody = Type.Object({ kind, environment, ...keyDetails }, strict)
const RotateBody = Type.Object({ kind, environment }, strict)

const scopesOf = ({ kind, scopes }: Pick<ApiKey, 'kind' | 'scopes'>): readonly KeyScope[] =>
  kind === 'public' ? ['identify'] : (scopes ?? DEFAULT_SCOPES)

const beyond = (message: string) => new ApiError('insufficient_permissions', { message })

export function keyRoutes(needs: KeysNeeds): ApiRoute[] {
  const { kv, submit, clock } = needs
  const { makeAndStore, refresh } = openMakeKeys(needs)
  const replays = withoutText(needs, ({ caller }) => caller.workspace.id)

  /** Those whose time is over among them. */
  const unrevoked = async ({ workspace, env }: Caller): Promise<ApiKey[]> =>
    (await listKeys(kv, workspace.id)).filter((key) => key.env === env && key.revokedAt === null)

  return [
    keyed({
      method: 'GET',
      doc: KEY_DOCS.list,
      path: '/v1/keys',
      access: 'keys:write',
      query: PageQuery,
      async handle({ caller, query: { limit = PAGE_LIMIT_DEFAULT, offset = 0 } }) {
        const keys = await unrevoked(caller)
        return { body: { data: keys.slice(offset, offset + limit).map(presentKey), total: keys.length } }
      },
    }),

    keyed({
      method: 'POST',
      doc: KEY_DOCS.create,
      path: '/v1/keys',
      access: 'keys:write',
      body: CreateBody,
      once: replays,
      async handle({ caller, seed, body }) {
        const about = keyAbout(body, clock.now())
        refuseOther(caller, body.environment)
        refuseBeyond(caller, about)
        return { status: 201, body: await makeAndStore('key.create', commandOf(caller), about, seed) }
      },
    }),

    keyed({
      method: 'POST',
      doc: KEY_DOCS.rotate,
      path: '/v1/keys/rotate',
      access: 'keys:write',
      body: RotateBody,
      once: replays,
      async handle({ caller, seed, body }) {
        refuseOther(caller, body.environment)
        refuseBeyond(caller, { kind: body.kind, scopes: null, expiresAt: null })
        for (const key of await unrevoked(caller)) {
          if (key.kind === body.kind && isLive(key, clock.now())) refuseMore(caller, key)
        }
        return { status: 201, body: await makeAndStore('key.rotate', commandOf(caller), { kind: body.kind }, seed) }
      },
    }),

    keyed({
      method: 'DELETE',
      doc: KEY_DOCS.revoke,
      path: '/v1/keys/:keyId',
      access: 'keys:write',
      async handle({ caller, params }) {
        const { keyId: id = '' } = params
        const place = commandOf(caller)
        const [entry] = KEY_ID.test(id) ? await kv.get<ApiKey>(SYSTEM, [keyKey(place.workspace, id)]) : []
        if (entry == null || entry.value.revokedAt !== null) throw new ApiError('not_found')
        refuseOther(caller, entry.value.env)
        refuseMore(caller, entry.value)
        accepted(await submit({ ...place, type: 'key.revoke', data: { id } }))
        await refresh()
        return { body: { deleted: true, keyId: id } }
      },
    }),
  ]
}

function refuseOther({ env }: Caller, asked: Env | undefined): void {
  if (asked !== undefined && asked !== env) throw beyond(`Keys of ${asked} are made and ended from ${asked}.`)
}

/** A key that has its time ends with it, and so does what it makes. */
function refuseBeyond(caller: Caller, wanted: Pick<ApiKey, 'kind' | 'scopes' | 'expiresAt'>): void {
  refuseMore(caller, wanted)
  const { expiresAt } = caller.key
  if (expiresAt !== null && (wanted.expiresAt === null || wanted.expiresAt > expiresAt)) {
    throw beyond('A key cannot outlive the one that makes it.')
  }
}

/** People who may make keys may make any. */
function refuseMore({ key, person }: Caller, other: Pick<ApiKey, 'kind' | 'scopes'>): void {
  if (person !== undefined) return
  const own = scopesOf(key)
  const missing = scopesOf(other).find((scope) => !own.includes(scope))
  if (missing !== undefined) throw beyond(`This key lacks a scope that the other has: ${missing}.`)
}
