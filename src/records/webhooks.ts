// Webhooks in the kv: the records of an environment in its scope, and the revision that tells whoever follows that one changed.

import type { Env } from '../domain/event.ts'
import type { Webhook } from '../domain/webhook.ts'
import type { Workspace } from '../domain/workspace.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { scanAll, tenantScope } from './scopes.ts'
import { WORKSPACE_COPY } from './workspaces.ts'

/** With the seq of the last command that changed it. */
export type StoredWebhook = Webhook & { readonly version: number }

const WEBHOOK = 'webhook'
export const webhookKey = (id: string): KvKey => [WEBHOOK, id]

export const WEBHOOKS: KvKey = ['meta', 'webhooks']
export interface WebhooksMeta {
  /** The seq of the last command that changed one of them. */
  readonly revision: number
  readonly webhooks: number
}
export const NO_WEBHOOKS: WebhooksMeta = { revision: 0, webhooks: 0 }

export async function readWebhook(kv: Pick<Kv, 'get'>, workspace: string, env: Env, id: string) {
  const [entry] = await kv.get<StoredWebhook>(tenantScope(workspace, env), [webhookKey(id)])
  return entry?.value ?? null
}

/** All of an environment, oldest first. */
export async function readWebhooks(kv: Pick<Kv, 'scan'>, workspace: string, env: Env): Promise<StoredWebhook[]> {
  const webhooks: StoredWebhook[] = []
  for await (const { value } of scanAll<StoredWebhook>(kv, tenantScope(workspace, env), WEBHOOK)) webhooks.push(value)
  return webhooks.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
}

/** What tells whether an earlier answer of `readWebhooks` still holds, and the workspace; null when there is no such workspace. */
export async function readWebhooksHead(
  kv: Pick<Kv, 'get'>,
  workspace: string,
  env: Env,
): Promise<{ readonly revision: number; readonly workspace: Workspace } | null> {
  const [meta, copy] = await kv.get(tenantScope(workspace, env), [WEBHOOKS, WORKSPACE_COPY])
  if (!copy) return null
  const { revision } = (meta?.value as WebhooksMeta | undefined) ?? NO_WEBHOOKS
  return { revision, workspace: copy.value as Workspace }
}
