// Commands about webhooks. Each keeps the record and the count in step; the audit log never sees a secret.

import type { Webhook } from '../domain/webhook.ts'
import { must } from '../lib/must.ts'
import type { WebhookHead } from '../records/commands.ts'
import { tenantScope } from '../records/scopes.ts'
import type { WEBHOOK_COMMANDS } from '../records/webhook-commands.ts'
import { NO_WEBHOOKS, type StoredWebhook, WEBHOOKS, type WebhooksMeta, webhookKey } from '../records/webhooks.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { type Change, type CommandOf, type Read, refuse } from './change.ts'

type WebhookCommand = CommandOf<keyof typeof WEBHOOK_COMMANDS>

interface Before {
  readonly meta: WebhooksMeta
  readonly webhook: StoredWebhook | null
}

async function readBefore(command: WebhookCommand, read: Read): Promise<Before> {
  const scope = tenantScope(command.workspace, must(command.env, 'an environment'))
  const [meta, webhook] = await read.get(scope, [WEBHOOKS, webhookKey(command.data.id)])
  return {
    meta: (meta?.value as WebhooksMeta | undefined) ?? NO_WEBHOOKS,
    webhook: (webhook?.value as StoredWebhook | undefined) ?? null,
  }
}

export async function applyWebhookCreate(
  command: CommandOf<'webhook.create'>,
  seq: number,
  read: Read,
): Promise<Change> {
  const { sealed, webhooksMax, ...fields } = command.data
  if ((await readWorkspace(read, command.workspace)) === null) return refuse(seq, 'not_found')
  const before = await readBefore(command, read)
  // Ids are drawn for each request: this one was repeated because nobody knew what had become of it.
  if (before.webhook !== null) {
    return { outcome: { ok: true, seq, at: command.at, webhook: headOf(before.webhook) }, effects: [] }
  }
  if (before.meta.webhooks >= webhooksMax) {
    return refuse(seq, 'resource_limit_reached', `An environment may have at most ${webhooksMax} webhooks.`)
  }
  const webhook: Webhook = {
    ...fields,
    disabledReason: null,
    secrets: [{ sealed, createdAt: command.at, expiresAt: null }],
    createdAt: command.at,
    updatedAt: command.at,
    enabledAt: command.at,
  }
  return changed(command, seq, before, webhook, 'create')
}

export async function applyWebhookUpdate(
  command: CommandOf<'webhook.update'>,
  seq: number,
  read: Read,
): Promise<Change> {
  const before = await readBefore(command, read)
  const old = before.webhook
  if (old === null) return refuse(seq, 'not_found')
  if (isStale(command, old)) return refuse(seq, 'conflict', STALE)
  const { status = old.status } = command.data.changes
  const webhook: Webhook = {
    ...old,
    ...command.data.changes,
    disabledReason: status === 'disabled' ? old.disabledReason : null,
    enabledAt: status === 'active' && old.status !== 'active' ? command.at : old.enabledAt,
    updatedAt: Math.max(old.updatedAt, command.at),
  }
  return changed(command, seq, before, webhook, 'update')
}

export async function applyWebhookDelete(
  command: CommandOf<'webhook.delete'>,
  seq: number,
  read: Read,
): Promise<Change> {
  const before = await readBefore(command, read)
  if (before.webhook === null) return refuse(seq, 'not_found')
  if (isStale(command, before.webhook)) return refuse(seq, 'conflict', STALE)
  return changed(command, seq, before, null, 'delete')
}

export async function applyWebhookRotate(
  command: CommandOf<'webhook.rotate'>,
  seq: number,
  read: Read,
): Promise<Change> {
  const { sealed, graceMs } = command.data
  const before = await readBefore(command, read)
  const old = before.webhook
  if (old === null) return refuse(seq, 'not_found')
  const [current, older] = old.secrets
  const isInGrace = older !== undefined && older.expiresAt !== null && older.expiresAt > command.at
  if (isInGrace && graceMs > 0) {
    return refuse(seq, 'conflict', 'A rotation is in its grace period; only one without a grace period can follow.')
  }
  const kept = graceMs > 0 && current !== undefined ? [{ ...current, expiresAt: command.at + graceMs }] : []
  const webhook: Webhook = {
    ...old,
    secrets: [{ sealed, createdAt: command.at, expiresAt: null }, ...kept],
    updatedAt: Math.max(old.updatedAt, command.at),
  }
  return changed(command, seq, before, webhook, 'rotate-secret')
}

export async function applyWebhookDisable(
  command: CommandOf<'webhook.disable'>,
  seq: number,
  read: Read,
): Promise<Change> {
  const before = await readBefore(command, read)
  const old = before.webhook
  if (old === null) return refuse(seq, 'not_found')
  if (old.status === 'disabled' || old.enabledAt > command.data.failingSince) {
    return refuse(seq, 'conflict', 'The webhook was enabled since.')
  }
  const updatedAt = Math.max(old.updatedAt, command.at)
  return changed(
    command,
    seq,
    before,
    { ...old, status: 'disabled', disabledReason: command.data.reason ?? 'failing_24h', updatedAt },
    'disable',
  )
}

const STALE = 'The webhook has changed since it was read.'
const isStale = (command: { readonly expectVersion?: number }, webhook: StoredWebhook): boolean =>
  command.expectVersion !== undefined && command.expectVersion !== webhook.version

/** `after` null: the webhook is removed. Its deliveries go with whoever holds them. */
function changed(command: WebhookCommand, seq: number, before: Before, after: Webhook | null, action: string): Change {
  const { workspace } = command
  const env = must(command.env, 'an environment')
  const { id } = command.data
  const { meta, webhook: old } = before
  const webhooks = meta.webhooks + (after === null ? 0 : 1) - (old === null ? 0 : 1)
  const put = [{ key: WEBHOOKS, value: { revision: seq, webhooks } satisfies WebhooksMeta }]
  const stored: StoredWebhook | null = after === null ? null : { ...after, version: seq }
  return {
    outcome: { ok: true, seq, at: command.at, ...(stored === null ? {} : { webhook: headOf(stored) }) },
    effects: [
      {
        scope: tenantScope(workspace, env),
        put: stored === null ? put : [...put, { key: webhookKey(id), value: stored }],
        drop: stored === null ? [webhookKey(id)] : [],
      },
    ],
    audit: {
      resource: 'webhook',
      id,
      action,
      before: old === null ? null : headOf(old),
      after: stored === null ? null : headOf(stored),
    },
    webhooks: [{ workspace, env, id, status: stored?.status ?? 'gone' }],
  }
}

function headOf({ secrets: _, ...head }: StoredWebhook): WebhookHead {
  return head
}
