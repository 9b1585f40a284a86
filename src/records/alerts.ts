// Alerts in the kv: the records, when each fired last, its incidents, and what subscribers have still to be told. All of it lies
// in the scope of the environment, so that an incident and its notice are one commit.

import type { Alert, Incident } from '../domain/alert.ts'
import type { Env } from '../domain/event.ts'
import type { Kv, KvEntry, KvKey, Version } from '../kv/kv.ts'
import { scanAll, tenantScope, under } from './scopes.ts'

/** With the seq of the last command that changed it. */
export type StoredAlert = Alert & { readonly version: number }

/** What `alert.triggered` tells: the alert as it was. */
export interface AlertNotice {
  readonly alert: Alert
  readonly incident: Incident
}

export const ALERT = 'alert'
export const alertKey = (id: string): KvKey => [ALERT, id]
const FIRED = 'alert-fired'
const INCIDENT = 'alert-incident'
const NOTICE = 'alert-notice'
const INCIDENT_KEPT_MS = 90 * 86_400_000
const TIME_DIGITS = 15
const timeId = (ms: number): string => String(ms).padStart(TIME_DIGITS, '0')

/** All alerts of an environment, oldest first. */
export async function readAlerts(kv: Pick<Kv, 'scan'>, workspace: string, env: Env): Promise<StoredAlert[]> {
  const alerts: StoredAlert[] = []
  for await (const { value } of scanAll<StoredAlert>(kv, tenantScope(workspace, env), ALERT)) alerts.push(value)
  return alerts.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
}

export async function readAlert(kv: Pick<Kv, 'get'>, workspace: string, env: Env, id: string) {
  const [entry] = await kv.get<StoredAlert>(tenantScope(workspace, env), [alertKey(id)])
  return entry?.value ?? null
}

export interface Fired {
  readonly at: number
  readonly version: Version | null
}

/** When the alert fired last; 0: never. */
export async function readFired(kv: Pick<Kv, 'get'>, workspace: string, env: Env, id: string): Promise<Fired> {
  const [entry] = await kv.get<number>(tenantScope(workspace, env), [[FIRED, id]])
  return { at: entry?.value ?? 0, version: entry?.version ?? null }
}

/** False when somebody else has let it fire meanwhile: then nothing is written. */
export async function fire(
  kv: Pick<Kv, 'commit'>,
  workspace: string,
  env: Env,
  { alert, incident }: AlertNotice,
  before: Fired,
): Promise<boolean> {
  const { id, alertId, triggeredAt } = incident
  const [done] = await kv.commit([
    {
      scope: tenantScope(workspace, env),
      check: [[[FIRED, alertId], before.version]],
      put: [
        { key: [FIRED, alertId], value: triggeredAt },
        { key: [INCIDENT, `${alertId}/${timeId(triggeredAt)}`], value: incident, ttlMs: INCIDENT_KEPT_MS },
        { key: [NOTICE, `${timeId(triggeredAt)}/${id}`], value: { alert, incident } satisfies AlertNotice },
      ],
    },
  ])
  return done === true
}

/** Newest first; `before` is the time of the last of the previous page. */
export async function readIncidents(
  kv: Pick<Kv, 'scan'>,
  workspace: string,
  env: Env,
  alertId: string,
  limit: number,
  before: number | null,
): Promise<{ readonly incidents: readonly Incident[]; readonly hasMore: boolean }> {
  const upTo = before === null ? {} : { upTo: `${alertId}/${timeId(before - 1)}` }
  const range = { ...under(alertId), ...upTo, limit: limit + 1, reverse: true }
  const found = await kv.scan<Incident>(tenantScope(workspace, env), INCIDENT, range)
  return { incidents: found.slice(0, limit).map(({ value }) => value), hasMore: found.length > limit }
}

/** What nobody was told of yet, oldest first. */
export const alertNotices = (
  kv: Pick<Kv, 'scan'>,
  workspace: string,
  env: Env,
  limit: number,
): Promise<KvEntry<AlertNotice>[]> => kv.scan<AlertNotice>(tenantScope(workspace, env), NOTICE, { limit })

/** When their deliveries are stored. Twice equals once. */
export async function dropNotices(
  kv: Pick<Kv, 'commit'>,
  workspace: string,
  env: Env,
  notices: readonly KvEntry<AlertNotice>[],
): Promise<void> {
  await kv.commit([{ scope: tenantScope(workspace, env), drop: notices.map(({ key }) => key) }])
}

/** What goes with a deleted alert. */
export const firedKey = (id: string): KvKey => [FIRED, id]
