// Who listens to an environment without having a webhook, to try a receiver out: what happens there is told over the bus, at most
// once and to nobody when nobody listens.

import type { Bus } from '../bus/bus.ts'
import type { Env } from '../domain/event.ts'
import type { Clock } from '../lib/clock.ts'
import { onHint, publishHint } from '../records/hints.ts'
import { type Occurrence, renderPayload } from './envelope.ts'
import type { Tenant } from './subscriptions.ts'

/** Whoever listens says so this often, and is believed for three times as long. */
export const LISTENING_EVERY_MS = 2_000
const TENANTS_MAX = 1_000
const BOTH = new Set(['A', 'B'] as const)

export interface Listeners {
  isHeard(workspace: string, env: Env): boolean
  publish(tenant: Pick<Tenant, 'workspace' | 'env'>, occurrence: Occurrence): void
}

export function openListeners(bus: Bus, clock: Clock): Listeners {
  const until = new Map<string, number>()
  onHint(bus, 'webhooks.listening', ({ workspace, env }) => {
    const now = clock.monotonic()
    for (const [name, at] of until) if (at <= now) until.delete(name)
    if (until.size < TENANTS_MAX) until.set(`${workspace}/${env}`, now + 3 * LISTENING_EVERY_MS)
  })
  return {
    isHeard: (workspace, env) => until.size > 0 && (until.get(`${workspace}/${env}`) ?? 0) > clock.monotonic(),
    publish({ workspace, env }, occurrence) {
      const { eventId, type } = occurrence
      const payload = renderPayload(occurrence, workspace.apiVersion, BOTH)
      publishHint(bus, 'webhooks.heard', { workspace: workspace.id, env, eventId, type, payload })
    },
  }
}
