// The webhooks of each environment as they are now: kept until their revision says that one changed.

import type { Env } from '../domain/event.ts'
import { type EventType, typesOf } from '../domain/webhook.ts'
import type { Workspace } from '../domain/workspace.ts'
import type { Kv } from '../kv/kv.ts'
import { readWebhooks, readWebhooksHead, type StoredWebhook } from '../records/webhooks.ts'

export interface Subscription {
  readonly webhook: StoredWebhook
  readonly types: ReadonlySet<EventType>
}

export interface Tenant {
  readonly workspace: Workspace
  readonly env: Env
  readonly revision: number
  readonly subscriptions: ReadonlyMap<string, Subscription>
  /** What any of those that are not disabled is told of. */
  readonly types: ReadonlySet<EventType>
}

export interface Subscriptions {
  /** As of a moment after the call; null: no such workspace. */
  tenant(workspace: string, env: Env): Promise<Tenant | null>
  /** Webhooks that were disabled when their environment was looked at last. */
  disabledCount(): number
}

const TENANTS_MAX = 10_000

interface WebhooksHead {
  readonly workspace: Workspace
  readonly revision: number
}

export function openSubscriptions(kv: Pick<Kv, 'get' | 'scan'>): Subscriptions {
  const known = new Map<string, Tenant>()
  /** Environments that are being read: thousands of queues ask for theirs at once when a process starts. */
  const reading = new Map<string, Promise<void>>()

  async function read(name: string, head: WebhooksHead, env: Env): Promise<void> {
    const tenant = tenantOf(head, env, await readWebhooks(kv, head.workspace.id, env))
    const [oldest] = known.keys()
    if (known.size >= TENANTS_MAX && oldest !== undefined) known.delete(oldest)
    known.set(name, tenant)
  }

  return {
    disabledCount() {
      let count = 0
      for (const { subscriptions } of known.values())
        for (const { webhook } of subscriptions.values()) if (webhook.status === 'disabled') count += 1
      return count
    },
    async tenant(workspace, env) {
      const name = `${workspace}/${env}`
      for (;;) {
        const head = await readWebhooksHead(kv, workspace, env)
        if (head === null) return null
        const held = known.get(name)
        if (held?.revision === head.revision) {
          return held.workspace.apiVersion === head.workspace.apiVersion && held.workspace.plan === head.workspace.plan
            ? held
            : { ...held, workspace: head.workspace }
        }
        // One that began earlier may be of an older revision: then the next turn reads again, once for all who wait.
        const begun = reading.get(name) ?? read(name, head, env).finally(() => reading.delete(name))
        reading.set(name, begun)
        await begun
      }
    },
  }
}

function tenantOf({ workspace, revision }: WebhooksHead, env: Env, webhooks: readonly StoredWebhook[]): Tenant {
  const subscriptions = new Map(webhooks.map((webhook) => [webhook.id, { webhook, types: typesOf(webhook.events) }]))
  const told = [...subscriptions.values()].filter(({ webhook }) => webhook.status !== 'disabled')
  return { workspace, env, revision, subscriptions, types: new Set(told.flatMap(({ types }) => [...types])) }
}
