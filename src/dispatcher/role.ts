// The dispatcher role of a process: follows events and lists, and sends to the webhooks whose shards it holds.

import type { Bus } from '../bus/bus.ts'
import type { RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { atZero } from '../lib/prometheus.ts'
import type { Log } from '../log/log.ts'
import { ATTEMPT_TRIGGERS, SHARDS } from '../records/deliveries.ts'
import { addFailingNotice, type FailingNotice } from '../records/failing-notices.ts'
import { type Attempts, SECRET_LOST } from './attempt.ts'
import type { Failing } from './disable.ts'
import { FAILURE_CODES } from './failure.ts'
import { followEvents } from './follow.ts'
import { followAlerts } from './follow-alerts.ts'
import { followLists } from './follow-lists.ts'
import { followNotices } from './follow-notices.ts'
import { openListeners } from './listening.ts'
import type { Mailer } from './mail.ts'
import { openSender, type SenderReport } from './sender.ts'
import { openSubscriptions } from './subscriptions.ts'

export interface DispatcherRoleNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
  readonly logger: Logger
  readonly metrics: Metrics
  readonly attempts: Attempts
  /** null: nobody is written to. */
  readonly mailer: Mailer | null
  readonly partitions: number
  readonly inFlightMax: number
  /** Deliveries that may wait per webhook. */
  readonly backlogMax: number
  /** Takes on the names that are this process's share. */
  readonly own: (names: readonly string[], hold: (name: string, signal: AbortSignal) => Promise<void>) => void
}

const LISTS = 'lists'
const ALERTS = 'alerts'
const NOTICES = 'notices'
const NOTICE_TRIES_MAX = 10
const NOTICE_RETRY_MS = 3_000

export function startDispatcher(needs: DispatcherRoleNeeds): { observe(): Promise<void> } {
  const { kv, logger, metrics, partitions } = needs
  atZero(metrics.webhookAttempts, { trigger: ATTEMPT_TRIGGERS, result: ['ok', SECRET_LOST, ...FAILURE_CODES] })
  atZero(metrics.webhookDeliveries, { status: ['delivered', 'failed'] })
  const subscriptions = openSubscriptions(kv)
  const report: SenderReport = {
    attempted(trigger, error, durationMs) {
      metrics.webhookAttempts.inc({ trigger, result: error ?? 'ok' })
      metrics.webhookDuration.observe(durationMs / 1_000)
    },
    ended: (status) => metrics.webhookDeliveries.inc({ status }),
    overflowed(webhookId, count) {
      metrics.webhookOverflows.inc(count)
      logger.warn({ webhookId, count }, 'more deliveries wait for a webhook than may: the oldest have failed')
    },
    inFlight: (count) => metrics.webhooksInFlight.set(count),
    failed: (error) => logger.warn({ error }, 'deliveries wait'),
    failing(webhookId, what, about) {
      if (what === 'disabled') metrics.webhooksDisabled.inc()
      const said =
        what === 'disabled' ? 'a webhook failed for 24 hours and is disabled' : 'a webhook fails for 12 hours'
      logger.warn({ webhookId }, said)
      if (needs.mailer !== null) void notice(what, about)
    },
  }

  /** Beside the deliveries, which do not wait for it. */
  async function notice(what: FailingNotice['what'], { id, ...about }: Failing): Promise<void> {
    const at = needs.clock.now()
    for (let tries = 1; tries <= NOTICE_TRIES_MAX; tries++) {
      try {
        return await addFailingNotice(kv, { what, webhookId: id, ...about, at, tries: 0, nextTryAt: at })
      } catch (error) {
        logger.warn({ webhookId: id, error }, 'a mail about a webhook could not be noted')
        await needs.clock.sleep(NOTICE_RETRY_MS)
      }
    }
  }

  const sender = openSender({ ...needs, subscriptions, report })
  const following = {
    ...needs,
    subscriptions,
    handover: sender,
    listening: openListeners(needs.bus, needs.clock),
    report: (error: unknown) => logger.warn({ error }, 'the dispatcher waits'),
  }
  const onLost = (workspace: string, env: string) =>
    logger.error({ workspace, env }, 'changes of lists were forgotten before subscribers were told')
  const partitionNames = Array.from({ length: partitions }, (_, partition) => `events-${partition}`)
  const shardNames = Array.from({ length: SHARDS }, (_, shard) => `send-${shard}`)
  const { mailer } = needs
  const onRefused = (error: unknown) => logger.warn({ error }, 'a mail about a webhook waits')
  const mailNames = mailer === null ? [] : [NOTICES]
  needs.own([...partitionNames, ...shardNames, LISTS, ALERTS, ...mailNames], (name, signal) => {
    if (name === NOTICES && mailer !== null) return followNotices({ ...needs, mailer, report: onRefused }, signal)
    if (name === ALERTS) return followAlerts(following, signal)
    if (name === LISTS) return followLists({ ...following, onLost }, signal)
    const [kind, number] = name.split('-')
    return kind === 'events' ? followEvents(following, Number(number), signal) : sender.hold(Number(number), signal)
  })
  return {
    /** Brings the figures of what waits up to date. */
    async observe() {
      metrics.webhooksDisabledNow.set(subscriptions.disabledCount())
      try {
        const { waiting, oldestMs } = await sender.backlog()
        metrics.webhooksWaiting.set(waiting)
        metrics.webhookOldest.set(oldestMs / 1_000)
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
      }
    },
  }
}
