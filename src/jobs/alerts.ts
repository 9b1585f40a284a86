// Compares every active alert with its figure, and lets those fire whose threshold is passed: once per cooldown, however many
// processes have a go.

import { type Alert, passes } from '../domain/alert.ts'
import { ENVS, type Env } from '../domain/event.ts'
import { makeObjectId, type RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { MeasureAlert } from '../reads/alert-metrics.ts'
import { fire, readAlerts, readFired } from '../records/alerts.ts'
import { listWorkspaces } from '../records/workspaces.ts'

export interface AlertJobNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'commit'>
  readonly clock: Clock
  readonly random: RandomBytes
  readonly measure: MeasureAlert
  readonly everyMs: number
  readonly onError: (error: unknown) => void
}

/** Runs until `signal` aborts. Nothing is remembered here: when an alert fired last is in the kv. */
export async function runAlerts(needs: AlertJobNeeds, signal: AbortSignal): Promise<void> {
  const { kv, clock, everyMs } = needs
  const onError = (error: unknown) => {
    if (!(error instanceof Unavailable)) needs.onError(error)
  }
  while (!signal.aborted) {
    await nextBeat(clock, everyMs, signal)
    try {
      for (const { id: workspace } of await listWorkspaces(kv)) {
        for (const env of ENVS) {
          for (const alert of await readAlerts(kv, workspace, env)) {
            if (signal.aborted) return
            if (alert.status === 'active') await evaluate(needs, workspace, env, alert).catch(onError)
          }
        }
      }
    } catch (error) {
      onError(error)
    }
  }
}

async function evaluate(needs: AlertJobNeeds, workspace: string, env: Env, alert: Alert): Promise<void> {
  const { kv, clock, random, measure } = needs
  const now = clock.now()
  const before = await readFired(kv, workspace, env, alert.id)
  if (now < before.at + alert.cooldownSeconds * 1_000) return
  const { value, events } = await measure(workspace, env, alert, now)
  if (events < alert.minEvents || !passes(value, alert)) return
  const incident = {
    id: makeObjectId('inc', random),
    alertId: alert.id,
    value,
    windowStart: now - alert.windowSeconds * 1_000,
    windowEnd: now,
    triggeredAt: now,
  }
  await fire(kv, workspace, env, { alert, incident }, before)
}
