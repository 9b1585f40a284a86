// The engine of a thread: its rulesets and lists, and the work on a partition it holds.

import type { Bus } from '../bus/bus.ts'
import { hash53, makeObjectId, type RandomBytes } from '../domain/ids.ts'
import type { IpData } from '../ipintel/addresses.ts'
import type { ThreadKv } from '../kv/remote.ts'
import type { Clock } from '../lib/clock.ts'
import { DIGEST_KEY_WORDS } from '../lib/digest.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { atZero } from '../lib/prometheus.ts'
import { createRecentMap } from '../lib/recent-map.ts'
import type { Sealer } from '../lib/sealed.ts'
import type { Log } from '../log/log.ts'
import type { RuleLog } from '../records/effects.ts'
import type { Original } from '../records/event-locator.ts'
import { type ReplayNotice, type ReplyMessage, replySubject } from '../records/replies.ts'
import { countDecisions } from './count-decisions.ts'
import type { BatchTimes, DecidedBatch, DecisionReply, Replay } from './decided.ts'
import { MissingPosition, runPartition } from './engine.ts'
import { createFreshness, type Freshness } from './freshness.ts'
import { openListFeed } from './list-feed.ts'
import { createRecent, type Recent } from './recent.ts'
import { openRulesets } from './rulesets.ts'
import { openThread } from './thread.ts'
import { openCounterFeed } from './velocity/feed.ts'

export interface EngineRoleNeeds {
  readonly log: Log
  readonly kv: ThreadKv
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
  readonly lifetime: Lifetime
  readonly logger: Logger
  readonly metrics: Metrics
  readonly partitions: number
  /** Clean visitors kept in memory per partition. */
  readonly visitorsMax: number
  /** As `PartitionNeeds` has it. */
  readonly healsPerSecondMax: number
  /** Unlike that of any other deployment. */
  readonly deployment: string
  /** Opens secrets of tokens; null: none is sealed. */
  readonly sealer: Pick<Sealer, 'open'> | null
  readonly entriesMax: number
  /** Data about addresses; the object is another one when it has changed. */
  readonly ipData: () => IpData
  /** As `EngineNeeds` has it. */
  readonly checkpointMsMax: number
  /** As `PartitionHostNeeds` and `EngineNeeds` have them. */
  readonly onRecord: (partition: number, seq: number) => void
  readonly givenUp: (partition: number) => readonly number[]
  /** Called when `problem` or `caughtUp` may have changed. */
  readonly onStanding: () => void
  /** Events not yet in ClickHouse that can be found by id. */
  readonly recentMax: number
}

export interface EngineRole {
  readonly recent: Recent
  /** Owns a partition until `signal` aborts. Rejects with MissingPosition when only a rebuild can help. */
  run(partition: number, signal: AbortSignal): Promise<void>
  /** The first request of the nonce that `requestId` turned out to repeat, for a while. */
  originalOf(scope: string, requestId: string): Original | null
  /** As `Freshness` has it. */
  ask: Freshness['ask']
  /** Sum of the revisions of all rulesets. */
  rulesRevision(): number
  /** Why partitions that are held here cannot be decided, or null. */
  problem(): string | null
  /** Partitions that are held here and have been taken over. */
  caughtUp(): number[]
}

/** Resolves when rulesets are loaded. */
export async function startEngine(needs: EngineRoleNeeds): Promise<EngineRole> {
  const { kv, bus, clock, lifetime, logger, metrics } = needs
  const { partitions } = needs
  const all = { partition: Array.from({ length: partitions }, (_, partition) => partition) }
  for (const counter of [metrics.decided, metrics.dead, metrics.tenuresLost]) atZero(counter, all)
  const rulesets = await openRulesets({
    kv,
    bus,
    clock,
    evaluator: makeObjectId('eng', needs.random),
    sealer: needs.sealer,
    report: {
      swapped: () => metrics.rulesetSwaps.inc(),
      failed(error) {
        metrics.rulesetFailures.inc()
        logger.warn({ error }, 'loading a ruleset failed')
      },
    },
  })
  lifetime.onClose(() => rulesets.stop())
  const lists = await openListFeed({
    kv,
    bus,
    clock,
    key: Array.from(new Int32Array(new Uint8Array(needs.random(4 * DIGEST_KEY_WORDS)).buffer)),
    report: {
      followed: (deltas, read) => {
        metrics.listDeltas.inc(deltas)
        metrics.listsRead.inc(read)
      },
      failed: (error) => logger.warn({ error }, 'following lists failed'),
    },
  })
  lifetime.onClose(() => lists.stop())
  const counters = await openCounterFeed({
    ...needs,
    id: makeObjectId('eng', needs.random),
    partitions,
    onError: (error) => logger.warn({ error }, 'following counters failed'),
  })
  lifetime.onClose(() => counters.stop())
  const decider = openThread({
    partitions,
    visitorsMax: needs.visitorsMax,
    healsPerSecondMax: needs.healsPerSecondMax,
    random: needs.random,
    onRecord: needs.onRecord,
    monotonic: clock.monotonic,
    now: clock.now,
    ipData: needs.ipData,
    current: rulesets.current,
    listNews: lists.news,
    counterNews: counters.news,
  })

  const freshness = createFreshness()
  const places = createRecent(partitions, needs.recentMax)
  const recent: Recent = {
    ...places,
    drop(partition) {
      places.drop(partition)
      needs.onStanding()
    },
    setCaughtUp(partition, caughtUp) {
      if (places.caughtUp(partition) === caughtUp) return
      places.setCaughtUp(partition, caughtUp)
      needs.onStanding()
    },
  }
  const originals = createRecentMap<Original>(ORIGINALS_MS, ORIGINALS_MAX, clock.monotonic)
  const send = replyOver(bus, clock)
  const held = new Set<number>()
  const lost = new Set<number>()
  const engineNeeds = {
    log: needs.log,
    kv,
    clock,
    decider,
    givenUp: needs.givenUp,
    freshness,
    checkpointMsMax: needs.checkpointMsMax,
    recent,
    counters,
    partitions,
    reply(replies: readonly DecisionReply[], replays: readonly Replay[]) {
      for (const { workspace, env, requestId, original, conflict } of replays) {
        originals.set(hash53(`${workspace}/${env} ${requestId}`), { requestId: original, conflict })
      }
      send(replies, replays)
    },
    loadRuleset: rulesets.load,
    effects: { random: needs.random, deployment: needs.deployment, entriesMax: needs.entriesMax, partitions },
    report: {
      decided(partition: number, batch: Pick<DecidedBatch, 'replies' | 'dead'>, times: BatchTimes) {
        metrics.decided.inc({ partition }, batch.replies.length)
        if (batch.dead.length > 0) metrics.dead.inc({ partition }, batch.dead.length)
        countDecisions(metrics, batch.replies, times)
      },
      lost(partition: number, error: unknown) {
        metrics.tenuresLost.inc({ partition })
        if (error instanceof MissingPosition) lost.add(partition)
        needs.onStanding()
        logger.error({ partition, error }, 'a partition is taken over again')
      },
      effectsSkipped: (count: number) => metrics.effectsSkipped.inc(count),
      healingsDropped: (count: number) => metrics.healingsDropped.inc(count),
      ruleLogs(lines: readonly RuleLog[]) {
        for (const { level, message, ...place } of lines) logger[level]({ ...place, message }, 'rule')
      },
    },
  }
  return {
    recent,
    ask: freshness.ask,
    async run(partition, signal) {
      held.add(partition)
      lost.delete(partition)
      needs.onStanding()
      metrics.partitionsHeld.set(held.size)
      try {
        await runPartition(engineNeeds, partition, signal)
      } finally {
        held.delete(partition)
        recent.drop(partition)
        metrics.partitionsHeld.set(held.size)
      }
    },
    originalOf: (scope, requestId) => originals.get(hash53(`${scope} ${requestId}`)) ?? null,
    problem() {
      if (lost.size > 0) return `partitions without a position: ${[...lost].join(', ')}; run fingerpost rebuild`
      return null
    },
    rulesRevision: () => rulesets.current().reduce((sum, { revision }) => sum + revision, 0),
    caughtUp: () => [...held].filter(recent.caughtUp),
  }
}

/** The bus may lose the notice of a replay: whoever waits for it asks within seconds. */
const ORIGINALS_MS = 60_000
const ORIGINALS_MAX = 50_000
/** Bytes of bodies in one message: servers of the bus refuse what is much larger than this. */
const MESSAGE_BYTES_MAX = 400_000
const REPLAY_BYTES = 200

interface Message {
  readonly replies: [string, string][]
  readonly replays: ReplayNotice[]
}

/** One message per ingress process and batch, or several where one would be too large. */
function replyOver(bus: Pick<Bus, 'publish'>, clock: Pick<Clock, 'now'>) {
  return (replies: readonly DecisionReply[], replays: readonly Replay[]): void => {
    const at = clock.now()
    const messages = new Map<string, Message & { bytes: number }>()
    const send = (ingressId: string, { replies, replays }: Message) => {
      if (ingressId !== '') bus.publish(replySubject(ingressId), { at, replies, replays } satisfies ReplyMessage)
    }
    function messageTo(ingressId: string, bytes: number) {
      const known = messages.get(ingressId)
      if (known !== undefined && known.bytes + bytes <= MESSAGE_BYTES_MAX) {
        known.bytes += bytes
        return known
      }
      if (known !== undefined) send(ingressId, known)
      const fresh = { replies: [], replays: [], bytes }
      messages.set(ingressId, fresh)
      return fresh
    }
    for (const { requestId, replyTo, body } of replies) {
      messageTo(replyTo, body.length).replies.push([requestId, body])
    }
    for (const { replyTo, ...replay } of replays) messageTo(replyTo, REPLAY_BYTES).replays.push(replay)
    for (const [ingressId, message] of messages) send(ingressId, message)
  }
}
