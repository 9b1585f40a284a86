// /admin/v1: workspaces and their keys, for whoever runs the deployment. A key's text is in the answer that made it and
// nowhere else.

import { KEYS_PER_WORKSPACE_MAX, makeTokenSecret, newKey } from '../../control/bootstrap.ts'
import { accepted, type Submitter } from '../../control/submit.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import { ENVS, type Env } from '../../domain/event.ts'
import { type RandomBytes, seededBytes } from '../../domain/ids.ts'
import { makeKey } from '../../domain/keys.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import {
  API_VERSIONS,
  type ApiKey,
  type KeyKind,
  PLANS,
  SCOPES,
  type ScoreWeights,
  type Workspace,
} from '../../domain/workspace.ts'
import { SCORE_REASONS } from '../../engine/weights.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { parseDatetime } from '../../lib/datetime.ts'
import { Unavailable } from '../../lib/failures.ts'
import type { Sealer } from '../../lib/sealed.ts'
import { LIMIT_MAX, SLIDING_LIMIT_MAX } from '../../limits/limits.ts'
import type { KeyToMake } from '../../records/commands.ts'
import type { KeyDirectory } from '../../records/key-directory.ts'
import { listKeys } from '../../records/keys.ts'
import { sealToken } from '../../records/secrets.ts'
import { listWorkspaces, readWorkspace } from '../../records/workspaces.ts'
import { newId } from '../callers.ts'
import { orNull } from '../describe.ts'
import { KEEP_ALL } from '../idempotency.ts'
import { type ApiRoute, operated } from '../routes.ts'
import { OFFSET, PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { ADMIN_DOCS } from './docs.ts'
import { presentKey, presentWorkspace, withoutText } from './present.ts'

export interface AdminNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
  /** Reloaded before an answer leaves, so that this process never contradicts it. */
  readonly directory: Pick<KeyDirectory, 'reload'>
  readonly clock: Clock
  readonly random: RandomBytes
  readonly sealer: Pick<Sealer, 'seal'>
  readonly keysMax?: number
}

const ACTOR = 'operator'
const NAME_CHARS_MAX = 200
const ORIGINS_MAX = 50
const ORIGIN_CHARS_MAX = 300
const RETENTION_DAYS_MAX = 3_650
const KEY_KINDS: readonly KeyKind[] = ['public', 'secret']

const name = Type.String({ minLength: 1, maxLength: NAME_CHARS_MAX })
/** Only known reasons; an update replaces all of them, with none for the standard weights. */
const scoreWeights = Type.Unsafe<ScoreWeights>(
  Type.Object(
    Object.fromEntries(SCORE_REASONS.map((reason) => [reason, Type.Optional(Type.Number({ minimum: 0, maximum: 1 }))])),
    strict,
  ),
)
const limit = (maximum: number) =>
  Type.Optional(Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 0, maximum }))
/** An update replaces all of them; what is left out is unlimited, and null lifts them all. They count on the plan `enterprise` only. */
const limits = Type.Object(
  { serverPerMinute: limit(LIMIT_MAX), mgmtPerMinute: limit(LIMIT_MAX), burstPerSecond: limit(SLIDING_LIMIT_MAX) },
  strict,
)
const days = Type.Optional(Type.Integer({ minimum: 1, maximum: RETENTION_DAYS_MAX }))
/** An update replaces both; what is left out is that of the deployment, and so is what is longer. */
const retention = Type.Object({ eventsDays: days, fullIpDays: days }, strict)
const settings = Type.Object(
  {
    clientResult: Type.Optional(oneOf(['id', 'verdict'])),
    scoreWeights: Type.Optional(scoreWeights),
    limits: Type.Optional(orNull(limits)),
    retention: Type.Optional(retention),
  },
  strict,
)
const CreateWorkspaceBody = Type.Object(
  {
    name,
    plan: Type.Optional(oneOf(PLANS)),
    apiVersion: Type.Optional(oneOf(API_VERSIONS)),
    settings: Type.Optional(settings),
  },
  strict,
)
const UpdateWorkspaceBody = Type.Object(
  {
    name: Type.Optional(name),
    plan: Type.Optional(oneOf(PLANS)),
    apiVersion: Type.Optional(oneOf(API_VERSIONS)),
    settings: Type.Optional(settings),
  },
  strict,
)
const PageQuery = Type.Object({ limit: PAGE_LIMIT, offset: OFFSET }, strict)
const keyBody = { kind: oneOf(KEY_KINDS), environment: oneOf(ENVS) }
const CreateKeyBody = Type.Object(
  {
    ...keyBody,
    label: Type.Optional(Type.String({ minLength: 1, maxLength: NAME_CHARS_MAX })),
    scopes: Type.Optional(Type.Array(oneOf(SCOPES), { minItems: 1, maxItems: SCOPES.length, uniqueItems: true })),
    origins: Type.Optional(
      Type.Array(Type.String({ maxLength: ORIGIN_CHARS_MAX }), { minItems: 1, maxItems: ORIGINS_MAX }),
    ),
    expiresAt: Type.Optional(Type.String({ maxLength: 40 })),
  },
  strict,
)
const RotateBody = Type.Object(keyBody, strict)

export function adminRoutes(needs: AdminNeeds): ApiRoute[] {
  const { kv, submit, directory, clock, random, sealer, keysMax = KEYS_PER_WORKSPACE_MAX } = needs
  const replays = withoutText(needs)

  return [
    operated({
      method: 'POST',
      doc: ADMIN_DOCS.createWorkspace,
      path: '/admin/v1/workspaces',
      body: CreateWorkspaceBody,
      once: KEEP_ALL,
      async handle({ seed, body: { name, plan = 'enterprise', apiVersion = API_VERSIONS[0] as string, settings } }) {
        const workspace = newId({ seed }, 'ws', random)
        const outcome = await submit({
          type: 'workspace.create',
          workspace,
          env: null,
          actor: ACTOR,
          data: {
            name,
            plan,
            apiVersion,
            settings: { ...settings, clientResult: settings?.clientResult ?? 'id' },
            tokenSecret: sealToken(sealer, workspace, makeTokenSecret(random)),
          },
        })
        return { status: 201, body: presentWritten(outcome) }
      },
    }),

    operated({
      method: 'GET',
      doc: ADMIN_DOCS.workspaces,
      path: '/admin/v1/workspaces',
      query: PageQuery,
      handle: async ({ query }) => ({ body: page(await listWorkspaces(kv), query, presentWorkspace) }),
    }),

    operated({
      method: 'GET',
      doc: ADMIN_DOCS.workspace,
      path: '/admin/v1/workspaces/:workspaceId',
      handle: async ({ params }) => ({ body: presentWorkspace(await existing(params.workspaceId)) }),
    }),

    operated({
      method: 'PATCH',
      doc: ADMIN_DOCS.updateWorkspace,
      path: '/admin/v1/workspaces/:workspaceId',
      body: UpdateWorkspaceBody,
      async handle({ params, body }) {
        const workspace = await existing(params.workspaceId)
        if (Object.keys(body).length === 0) return { body: presentWorkspace(workspace) }
        const outcome = await submit({
          type: 'workspace.update',
          workspace: workspace.id,
          env: null,
          actor: ACTOR,
          data: body,
        })
        await refresh()
        return { body: presentWritten(outcome) }
      },
    }),

    operated({
      method: 'POST',
      doc: ADMIN_DOCS.createKey,
      path: '/admin/v1/workspaces/:workspaceId/keys',
      body: CreateKeyBody,
      once: replays,
      async handle({ params, body, seed }) {
        const about = keyAbout(body, clock.now())
        const workspace = await existing(params.workspaceId)
        return { status: 201, body: await makeAndStore('key.create', workspace, body.environment, about, seed) }
      },
    }),

    operated({
      method: 'GET',
      doc: ADMIN_DOCS.keys,
      path: '/admin/v1/workspaces/:workspaceId/keys',
      query: PageQuery,
      async handle({ params, query }) {
        const { id } = await existing(params.workspaceId)
        const keys = (await listKeys(kv, id)).filter(({ revokedAt }) => revokedAt === null)
        return { body: page(keys, query, presentKey) }
      },
    }),

    operated({
      method: 'POST',
      doc: ADMIN_DOCS.rotateKeys,
      path: '/admin/v1/workspaces/:workspaceId/keys/rotate',
      body: RotateBody,
      once: replays,
      async handle({ params, seed, body: { kind, environment } }) {
        const workspace = await existing(params.workspaceId)
        return { status: 201, body: await makeAndStore('key.rotate', workspace, environment, { kind }, seed) }
      },
    }),

    operated({
      method: 'DELETE',
      doc: ADMIN_DOCS.revokeKey,
      path: '/admin/v1/workspaces/:workspaceId/keys/:keyId',
      async handle({ params }) {
        const workspace = await existing(params.workspaceId)
        const id = params.keyId ?? ''
        if (!OBJECT_ID.test(id)) throw new ApiError('not_found')
        const outcome = await submit({
          type: 'key.revoke',
          workspace: workspace.id,
          env: null,
          actor: ACTOR,
          data: { id },
        })
        accepted(outcome)
        await refresh()
        return { body: { deleted: true, keyId: id } }
      },
    }),
  ]

  async function existing(id = ''): Promise<Workspace> {
    const workspace = OBJECT_ID.test(id) ? await readWorkspace(kv, id) : null
    if (workspace === null) throw new ApiError('not_found')
    return workspace
  }

  /** What was commanded is true already, and the directory also reloads by itself: a failure here changes no answer. */
  async function refresh(): Promise<void> {
    try {
      await directory.reload()
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
    }
  }

  async function makeAndStore(
    type: 'key.create' | 'key.rotate',
    workspace: Workspace,
    env: Env,
    about: Parameters<typeof newKey>[2],
    seed: string | null,
  ) {
    const draw = seed === null ? random : seededBytes(seed)
    const text = makeKey(about.kind, env, draw)
    const key = newKey(text, draw, about)
    const draft = { workspace: workspace.id, env, actor: ACTOR, data: { key, keysMax } }
    const { at, revoked } = accepted(await submit({ ...draft, type }))
    await refresh()
    const stored: ApiKey = { ...key, workspace: workspace.id, env, createdAt: at, revokedAt: null }
    return { ...presentKey(stored), key: text, ...(type === 'key.rotate' ? { revoked } : {}) }
  }
}

const OBJECT_ID = /^[A-Za-z0-9_]{1,64}$/

type KeyAbout = Pick<KeyToMake, 'kind' | 'label' | 'scopes' | 'origins' | 'expiresAt'>

function keyAbout(body: Static<typeof CreateKeyBody>, nowMs: number): KeyAbout {
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

function page<T, Shown>(
  all: readonly T[],
  { limit = PAGE_LIMIT_DEFAULT, offset = 0 }: Static<typeof PageQuery>,
  present: (one: T) => Shown,
) {
  return { data: all.slice(offset, offset + limit).map(present), total: all.length }
}

function presentWritten(outcome: Parameters<typeof accepted>[0]) {
  const { workspace } = accepted(outcome)
  if (workspace === undefined) throw new Error('the outcome of a workspace command without a workspace')
  return presentWorkspace(workspace)
}
