// The engine role of a process: its rulesets, its worker threads and the partitions it owns.

import type { Bus } from '../bus/bus.ts'
import { makeObjectId, type RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import type { Log } from '../log/log.ts'
import { type ReplayNotice, replySubject } from '../records/replies.ts'
import { runPartition } from './engine.ts'
import type { Replay, Reply } from './partition.ts'
import { createRecent, type Recent } from './recent.ts'
import { openRulesets } from './rulesets.ts'
import { openWorkers, type WorkersConfig } from './workers.ts'

export interface EngineRoleNeeds {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
  readonly lifetime: Lifetime
  readonly logger: Logger
  readonly metrics: Metrics
  readonly workers: Omit<WorkersConfig, 'workerUrl'>
  /** Events not yet in ClickHouse that can be found by id. */
  readonly recentMax: number
}

/** Resolves when rulesets are loaded; the partitions are taken over in the background. */
export async function startEngine(needs: EngineRoleNeeds): Promise<{ readonly recent: Recent }> {
  const { kv, bus, clock, lifetime, logger, metrics } = needs
  const { partitions } = needs.workers
  const rulesets = await openRulesets({
    kv,
    bus,
    clock,
    evaluator: makeObjectId('eng', needs.random),
    report: {
      swapped: () => metrics.rulesetSwaps.inc(),
      failed: (error) => logger.warn({ error }, 'loading a ruleset failed'),
    },
  })
  lifetime.onClose(() => rulesets.stop())
  const workerUrl = new URL('./decide.worker.js', import.meta.url).href
  const workers = openWorkers({ ...needs.workers, workerUrl }, rulesets.current)
  lifetime.onClose(() => workers.close())

  const recent = createRecent(partitions, needs.recentMax)
  const engineNeeds = {
    log: needs.log,
    kv,
    clock,
    decider: workers.decider,
    recent,
    reply: replyOver(bus),
    report: {
      decided(partition: number, events: number, dead: number) {
        metrics.decided.inc({ partition }, events)
        if (dead > 0) metrics.dead.inc({ partition }, dead)
      },
      lost(partition: number, error: unknown) {
        metrics.tenuresLost.inc({ partition })
        logger.error({ partition, error }, 'a partition is taken over again')
      },
      ruleLogs(lines: readonly { readonly level: 'info' | 'warn' | 'error' }[]) {
        for (const line of lines) logger[line.level](line, 'rule')
      },
    },
  }
  for (let partition = 0; partition < partitions; partition++) {
    lifetime.run(`engine/${partition}`, runPartition(engineNeeds, partition, lifetime.stopping))
  }
  return { recent }
}

/** One message per ingress process and batch. */
function replyOver(bus: Pick<Bus, 'publish'>) {
  return (replies: readonly Reply[], replays: readonly Replay[]): void => {
    const messages = new Map<string, { readonly replies: [string, string][]; readonly replays: ReplayNotice[] }>()
    function messageTo(ingressId: string) {
      const known = messages.get(ingressId)
      if (known !== undefined) return known
      const fresh = { replies: [], replays: [] }
      messages.set(ingressId, fresh)
      return fresh
    }
    for (const { requestId, replyTo, body } of replies) messageTo(replyTo).replies.push([requestId, body])
    for (const { replyTo, ...replay } of replays) messageTo(replyTo).replays.push(replay)
    for (const [ingressId, message] of messages) if (ingressId !== '') bus.publish(replySubject(ingressId), message)
  }
}
