// Compares every active alert with its figure, and lets those fire whose threshold is passed: once per cooldown, however many
// processes have a go.

import { type Alert, isOfEvents, passes } from '../domain/alert.ts'
import { ENVS, type Env } from '../domain/event.ts'
import { makeObjectId, type RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import { dueInMs } from '../lib/due.ts'
import { Unavailable } from '../lib/failures.ts'
import { openSemaphore } from '../lib/semaphore.ts'
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

interface Placed {
  readonly workspace: string
  readonly env: Env
  readonly alert: Alert
}

/** Of what ClickHouse is asked. */
const ASKED_AT_ONCE = 4

/** Runs until `signal` aborts. Nothing is remembered here: when an alert fired last is in the kv. */
export async function runAlerts(needs: AlertJobNeeds, signal: AbortSignal): Promise<void> {
  const { clock, everyMs, onError } = needs
  while (!signal.aborted) {
    await nextBeat(clock, everyMs, signal)
    try {
      await evaluateAll(needs, await activeAlerts(needs.kv), signal)
    } catch (error) {
      if (!(error instanceof Unavailable)) onError(error)
    }
  }
}

async function activeAlerts(kv: AlertJobNeeds['kv']): Promise<Placed[]> {
  const found: Placed[] = []
  for (const { id: workspace } of await listWorkspaces(kv)) {
    for (const env of ENVS) {
      for (const alert of await readAlerts(kv, workspace, env)) {
        if (alert.status === 'active') found.push({ workspace, env, alert })
      }
    }
  }
  return found
}

/** Those of events come last: ClickHouse, when it hangs, holds up no others, and each round by one question only. */
async function evaluateAll(needs: AlertJobNeeds, alerts: readonly Placed[], signal: AbortSignal): Promise<void> {
  /** False: what it needs does not answer. */
  const attempt = async ({ workspace, env, alert }: Placed): Promise<boolean> => {
    if (signal.aborted) return true
    try {
      await evaluate(needs, workspace, env, alert)
    } catch (error) {
      if (error instanceof Unavailable) return false
      needs.onError(error)
    }
    return true
  }
  for (const one of alerts) if (!isOfEvents(one.alert.metric)) await attempt(one)
  const ofEvents = alerts.filter(({ alert }) => isOfEvents(alert.metric))
  const turns = openSemaphore(ASKED_AT_ONCE, ofEvents.length)
  let isAway = false
  const ask = async (one: Placed) => {
    if (!isAway && !(await attempt(one))) isAway = true
  }
  await Promise.all(ofEvents.map((one) => turns.run(() => ask(one))))
}

async function evaluate(needs: AlertJobNeeds, workspace: string, env: Env, alert: Alert): Promise<void> {
  const { kv, clock, random, measure } = needs
  const now = clock.now()
  const before = await readFired(kv, workspace, env, alert.id)
  if (dueInMs(before.at, alert.cooldownSeconds * 1_000, now) > 0) return
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
