// /v1/webhooks: both shapes of registration on one resource. Writes go through the control plane with secrets sealed; the secret
// itself is in the answers to create and rotate-secret only.

import type { Bus } from '../../bus/bus.ts'
import { accepted, type Submitter } from '../../control/submit.ts'
import type { Attempts } from '../../dispatcher/attempt.ts'
import type { AddressGuard } from '../../dispatcher/guard.ts'
import { ApiError, invalid } from '../../domain/errors.ts'
import { makeObjectId, type RandomBytes, seededBytes } from '../../domain/ids.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import { GRACE_SECONDS_DEFAULT, GRACE_SECONDS_MAX, WEBHOOK_STATUSES, webhookPrefix } from '../../domain/webhook.ts'
import { isoTime } from '../../events/present.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { must } from '../../lib/must.ts'
import type { Sealer } from '../../lib/sealed.ts'
import type { WebhookHead } from '../../records/commands.ts'
import { readStanding } from '../../records/deliveries.ts'
import { readWebhook, readWebhooks } from '../../records/webhooks.ts'
import { callerPlaceOf, commandOf } from '../callers.ts'
import type { Keeping } from '../routes.ts'
import { type ApiRoute, keyed, open } from '../routes.ts'
import { etag, ifMatch, refuseUnknownRule } from '../rules/routes.ts'
import { OFFSET, PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { readChanges, readRegistration, refuseImpossible, WebhookCreateBody, WebhookUpdateBody } from './body.ts'
import { existingWebhook } from './callers.ts'
import { webhookDeliveryRoutes } from './deliveries.ts'
import { WEBHOOK_DOCS } from './docs.ts'
import { webhookListenRoutes } from './listen.ts'
import { presentChangedWebhook, presentCreatedWebhook, presentListedWebhook, presentWebhook } from './present.ts'

export const WEBHOOKS_MAX = 2_000
const SECRET_BYTES = 32
const SECRET_MEMBERS = ['secret', 'signingSecret']

export interface WebhooksNeeds {
  readonly kv: Kv
  readonly bus: Bus
  readonly submit: Submitter['submit']
  readonly clock: Clock
  readonly random: RandomBytes
  readonly sealer: Sealer
  readonly guard: AddressGuard
  readonly attempts: Attempts
  readonly webhooksMax?: number
  /** Addresses deliveries come from, as the operator says. */
  readonly ips: {
    readonly ipv4: readonly string[]
    readonly ipv6: readonly string[]
    readonly updatedAt: string | null
  }
}

const ListQuery = Type.Object(
  { status: Type.Optional(oneOf(WEBHOOK_STATUSES)), limit: PAGE_LIMIT, offset: OFFSET },
  strict,
)
const RotateBody = Type.Object(
  { gracePeriodSeconds: Type.Optional(Type.Integer({ minimum: 0, maximum: GRACE_SECONDS_MAX })) },
  strict,
)

/**
 * An answer that is to be repeated has its secret with it, sealed like that of the webhook itself, and shows it only as long as
 * the webhook still signs with it.
 */
const sealedIn = ({ sealer, kv, clock }: Pick<WebhooksNeeds, 'sealer' | 'kv' | 'clock'>): Keeping => {
  const onSecrets = (body: unknown, change: (secret: string, id: string) => string | null): Record<string, unknown> => {
    const { id, ...members } = body as { readonly id: string } & Record<string, unknown>
    const changed = Object.entries(members).map(([name, value]) =>
      SECRET_MEMBERS.includes(name) ? [name, change(String(value), id)] : [name, value],
    )
    return { id, ...Object.fromEntries(changed) }
  }
  return {
    keep: (body) => onSecrets(body, sealer.seal),
    async show(kept, { caller }) {
      const { workspace, env } = callerPlaceOf(caller)
      const webhook = await readWebhook(kv, workspace, env, (kept as { readonly id: string }).id)
      const now = clock.now()
      const signing = (webhook?.secrets ?? []).filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
      const body = onSecrets(kept, (sealed, id) => {
        const secret = sealer.open(sealed, id)
        return signing.some((one) => sealer.open(one.sealed, id) === secret) ? secret : null
      })
      return { ...body, replayed: true }
    },
  }
}

export function webhookRoutes(needs: WebhooksNeeds): ApiRoute[] {
  const { kv, submit, clock, random, sealer, guard, webhooksMax = WEBHOOKS_MAX, ips } = needs
  const replays = sealedIn(needs)
  const makeSecret = (draw: RandomBytes) => `whsec_${Buffer.from(draw(SECRET_BYTES)).toString('base64')}`

  async function refuseBadUrl(url: string): Promise<void> {
    const problem = await guard.problemOf(url)
    if (problem !== null) throw invalid('url', problem)
  }

  return [
    ...webhookListenRoutes(needs),
    keyed({
      method: 'POST',
      path: '/v1/webhooks',
      access: 'webhooks:write',
      doc: WEBHOOK_DOCS.create,
      body: WebhookCreateBody,
      once: replays,
      async handle(call) {
        const { caller, body, seed } = call
        const { secret: given, ...registration } = readRegistration(body)
        await refuseBadUrl(registration.url)
        await refuseUnknownRule(kv, caller, registration.filters?.ruleId, 'filters.ruleId')
        const draw = seed === null ? random : seededBytes(seed)
        const id = makeObjectId(webhookPrefix(registration.shape), draw)
        const secret = given ?? makeSecret(draw)
        const data = { id, ...registration, sealed: sealer.seal(secret, id), webhooksMax }
        const outcome = await submit({ ...commandOf(caller), type: 'webhook.create', data })
        const webhook = written(outcome)
        const created = presentCreatedWebhook(webhook, secret)
        // Of a webhook that was there before, nobody could tell whether its first answer had arrived: this is a repetition.
        const isNew = webhook.version === outcome.seq
        const shown = isNew ? created : await replays.show(replays.keep(created), call)
        return { status: 201, headers: [etag(webhook)], body: shown }
      },
    }),

    keyed({
      method: 'GET',
      path: '/v1/webhooks',
      access: 'webhooks:read',
      doc: WEBHOOK_DOCS.list,
      query: ListQuery,
      async handle({ caller, query: { status, limit = PAGE_LIMIT_DEFAULT, offset = 0 } }) {
        const { workspace, env } = callerPlaceOf(caller)
        const webhooks = await readWebhooks(kv, workspace, env)
        const found = webhooks.filter((webhook) => status === undefined || webhook.status === status)
        const now = clock.now()
        const page = found.slice(offset, offset + limit).map(async (webhook) => {
          return presentListedWebhook(webhook, await readStanding(kv, webhook.id, now))
        })
        return { body: { data: await Promise.all(page), total: found.length } }
      },
    }),

    keyed({
      method: 'GET',
      path: '/v1/webhooks/:webhookId',
      access: 'webhooks:read',
      doc: WEBHOOK_DOCS.one,
      async handle({ caller, params }) {
        const webhook = await existingWebhook(kv, caller, params.webhookId)
        const now = clock.now()
        const older = webhook.secrets[1]?.expiresAt ?? null
        const graceEndsAt = older !== null && older > now ? older : null
        const standing = await readStanding(kv, webhook.id, now)
        return { headers: [etag(webhook)], body: presentWebhook(webhook, standing, graceEndsAt) }
      },
    }),

    keyed({
      method: 'PUT',
      path: '/v1/webhooks/:webhookId',
      access: 'webhooks:write',
      doc: WEBHOOK_DOCS.update,
      headers: ['if-match'],
      body: WebhookUpdateBody,
      bodyMayBeEmpty: true,
      async handle({ caller, params, body, header }) {
        const expectVersion = ifMatch(header('if-match'))
        // What both shapes refuse is refused whether the webhook exists or not.
        refuseImpossible(body)
        if (body.url !== undefined) await refuseBadUrl(body.url)
        await refuseUnknownRule(kv, caller, body.filters?.ruleId, 'filters.ruleId')
        const before = await existingWebhook(kv, caller, params.webhookId)
        const changes = readChanges(body, before)
        if (expectVersion !== null && expectVersion !== before.version) throw stale()
        const webhook =
          Object.keys(changes).length === 0
            ? before
            : written(
                await submit({
                  ...commandOf(caller),
                  ...(expectVersion === null ? {} : { expectVersion }),
                  type: 'webhook.update',
                  data: { id: before.id, changes },
                }),
              )
        return { headers: [etag(webhook)], body: presentChangedWebhook(webhook) }
      },
    }),

    keyed({
      method: 'DELETE',
      path: '/v1/webhooks/:webhookId',
      access: 'webhooks:write',
      doc: WEBHOOK_DOCS.remove,
      headers: ['if-match'],
      async handle({ caller, params, header }) {
        const expectVersion = ifMatch(header('if-match'))
        const { id } = await existingWebhook(kv, caller, params.webhookId)
        const version = expectVersion === null ? {} : { expectVersion }
        accepted(await submit({ ...commandOf(caller), ...version, type: 'webhook.delete', data: { id } }))
        return { body: { deleted: true, webhookId: id } }
      },
    }),

    keyed({
      method: 'POST',
      path: '/v1/webhooks/:webhookId/rotate-secret',
      access: 'webhooks:write',
      doc: WEBHOOK_DOCS.rotate,
      body: RotateBody,
      async handle({ caller, params, body: { gracePeriodSeconds = GRACE_SECONDS_DEFAULT } }) {
        const { id, shape } = await existingWebhook(kv, caller, params.webhookId)
        const secret = makeSecret(random)
        const graceMs = gracePeriodSeconds * 1_000
        const data = { id, sealed: sealer.seal(secret, id), graceMs }
        const webhook = written(await submit({ ...commandOf(caller), type: 'webhook.rotate', data }))
        const graceEndsAt = graceMs === 0 ? null : isoTime(webhook.updatedAt + graceMs)
        return { body: { id, ...(shape === 'A' ? { secret } : { signingSecret: secret }), graceEndsAt } }
      },
    }),

    ...webhookDeliveryRoutes(needs),

    open({ method: 'GET', path: '/.well-known/webhook-ips', doc: WEBHOOK_DOCS.ips, handle: () => ({ body: ips }) }),
  ]
}

const stale = () => new ApiError('conflict', { message: 'The webhook has changed since it was read.' })
const written = (outcome: Parameters<typeof accepted>[0]): WebhookHead => must(accepted(outcome).webhook, 'a webhook')
