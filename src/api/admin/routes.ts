// /admin/v1: workspaces and their keys, for whoever runs the deployment. A key's text is in the answer that made it and
// nowhere else.

import { makeTokenSecret } from '../../control/bootstrap.ts'
import { accepted } from '../../control/submit.ts'
import { ApiError } from '../../domain/errors.ts'
import { ENVS, type Env } from '../../domain/event.ts'
import { oneOf, type Static, strict, Type } from '../../domain/schema.ts'
import { API_VERSIONS, PLANS, type ScoreWeights, type Workspace } from '../../domain/workspace.ts'
import { SCORE_REASONS } from '../../engine/weights.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Sealer } from '../../lib/sealed.ts'
import { LIMIT_MAX, SLIDING_LIMIT_MAX } from '../../limits/limits.ts'
import { listKeys } from '../../records/keys.ts'
import { sealToken } from '../../records/secrets.ts'
import { listWorkspaces, readWorkspace } from '../../records/workspaces.ts'
import { newId } from '../callers.ts'
import { orNull } from '../describe.ts'
import { KEEP_ALL } from '../idempotency.ts'
import { type ApiRoute, operated } from '../routes.ts'
import { OFFSET, PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { ADMIN_DOCS } from './docs.ts'
import { KEY_KINDS, keyAbout, keyDetails, type MakeKeysNeeds, openMakeKeys } from './make-keys.ts'
import { presentKey, presentWorkspace, withoutText } from './present.ts'

export interface AdminNeeds extends MakeKeysNeeds {
  readonly kv: Kv
  readonly clock: Clock
  readonly sealer: Pick<Sealer, 'seal'>
}

const ACTOR = 'operator'
const NAME_CHARS_MAX = 200
const RETENTION_DAYS_MAX = 3_650

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
const CreateKeyBody = Type.Object({ ...keyBody, ...keyDetails }, strict)
const RotateBody = Type.Object(keyBody, strict)

export function adminRoutes(needs: AdminNeeds): ApiRoute[] {
  const { kv, submit, clock, random, sealer } = needs
  const replays = withoutText(needs, ({ params }) => params.workspaceId ?? '')
  const { makeAndStore, refresh } = openMakeKeys(needs)

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
        return {
          status: 201,
          body: await makeAndStore('key.create', keyPlace(workspace, body.environment), about, seed),
        }
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
        return { status: 201, body: await makeAndStore('key.rotate', keyPlace(workspace, environment), { kind }, seed) }
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
}

const keyPlace = ({ id }: Workspace, env: Env) => ({ workspace: id, env, actor: ACTOR })
const OBJECT_ID = /^[A-Za-z0-9_]{1,64}$/

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
