// Follows incidents of alerts: each becomes deliveries, and is forgotten here when these are stored.

import { ENVS, type Env } from '../domain/event.ts'
import { isoTime } from '../events/present.ts'
import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import { type AlertNotice, alertNotices, dropNotices } from '../records/alerts.ts'
import { derivedUlid } from '../records/deliveries.ts'
import { partitionScope } from '../records/partitions.ts'
import { listWorkspaces } from '../records/workspaces.ts'
import type { Listeners } from './listening.ts'
import { type OutboxEntries, outboxEntriesOf } from './match.ts'
import type { Matchable } from './occurrences.ts'
import { type PassOnNeeds, passOn } from './pass-on.ts'
import type { Subscriptions } from './subscriptions.ts'

export interface FollowAlertsNeeds extends PassOnNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'commit'>
  readonly clock: Clock
  readonly listening: Listeners
  readonly subscriptions: Subscriptions
  readonly report: (error: unknown) => void
}

const LOOK_MS = 5_000
const LOOK_MS_PER_TENANT = 2
const NOTICES_PER_PAGE = 50

/** Until `signal` aborts. */
export async function followAlerts(needs: FollowAlertsNeeds, signal: AbortSignal): Promise<void> {
  const { kv, clock, report } = needs
  while (!signal.aborted) {
    let waitMs = LOOK_MS
    try {
      const workspaces = await listWorkspaces(kv)
      waitMs = Math.max(LOOK_MS, LOOK_MS_PER_TENANT * ENVS.length * workspaces.length)
      for (const { id } of workspaces) for (const env of ENVS) await followTenant(needs, id, env, signal)
    } catch (error) {
      report(error)
    }
    await nextBeat(clock, waitMs, signal)
  }
}

async function followTenant(needs: FollowAlertsNeeds, workspace: string, env: Env, signal: AbortSignal): Promise<void> {
  const { kv, clock, subscriptions, listening } = needs
  for (;;) {
    const notices = await alertNotices(kv, workspace, env, NOTICES_PER_PAGE)
    if (notices.length === 0 || signal.aborted) return
    const tenant = await subscriptions.tenant(workspace, env)
    const nowMs = clock.now()
    const news: OutboxEntries = { payloads: [], deliveries: [] }
    const at = { payloadAt: partitionScope(0), nowMs, visitorId: null }
    for (const { value } of notices) {
      if (tenant === null) break
      const found = occurrenceOf(workspace, env, value)
      if (listening.isHeard(workspace, env)) listening.publish(tenant, found.occurrence)
      outboxEntriesOf(news, tenant, found, at)
    }
    await passOn(needs, news, nowMs)
    await dropNotices(kv, workspace, env, notices)
  }
}

/** The same in every attempt, so that telling twice is telling once. */
function occurrenceOf(workspace: string, env: Env, { alert, incident }: AlertNotice): Matchable {
  const { id, name, metric, filters, operator, threshold, windowSeconds } = alert
  const { value, windowStart, windowEnd, triggeredAt } = incident
  const eventId = `evt_${derivedUlid(triggeredAt, `${workspace}/${env}/alert/${incident.id}`)}`
  const occurrence = {
    eventId,
    type: 'alert.triggered' as const,
    at: triggeredAt,
    data: {
      alert: { id, name, metric, filters, operator, threshold, windowSeconds },
      value,
      windowStart: isoTime(windowStart),
      windowEnd: isoTime(windowEnd),
    },
    plainData: {},
  }
  return { occurrence, verdict: null, ruleId: null, botDetected: null }
}
