// What accepts and decides in one thread of a model process: ingress, engine, rulesets and counters with their real code, and a
// memory that dies with the thread.

import { makeObjectId } from '../../src/domain/ids.ts'
import type { DecisionReply, Replay } from '../../src/engine/decided.ts'
import { MissingPosition, runPartition } from '../../src/engine/engine.ts'
import { createFreshness, type Freshness } from '../../src/engine/freshness.ts'
import { createRecent, type Recent } from '../../src/engine/recent.ts'
import { openRulesets, type Rulesets } from '../../src/engine/rulesets.ts'
import { type CounterFeed, openCounterFeed } from '../../src/engine/velocity/feed.ts'
import type { HttpResponse } from '../../src/http/message.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { promised } from '../../src/lib/promised.ts'
import type { Glimpse } from '../../src/records/event-locator.ts'
import { type ReplayNotice, replySubject } from '../../src/records/replies.ts'
import { type Accepting, type AcceptingNeeds, startAccepting } from './accepting.ts'
import type { Identify, Ports, ProcessNeeds, ReplyFn, Role } from './process.ts'
import { createThreads } from './threads.ts'

export interface DecidingNeeds
  extends Pick<ProcessNeeds, 'tamper' | 'threads' | 'bounds' | 'onReply' | 'onRuleLogs'>,
    Omit<AcceptingNeeds, 'ports' | 'ingressId'> {
  readonly portsOf: (role: Role) => Ports
  readonly stopping: AbortController
  readonly checkpointMsMax: number
  /** Names who waits for replies. */
  readonly ingressId: () => string
  readonly readsOfDecided: Parameters<ProcessNeeds['onReply']>[1]
  readonly missing: (partition: number) => void
  /** Partitions are held when and as long as they are told to be. Default: all of them, from the beginning. */
  readonly heldByCall?: boolean
  /** Starts what the same thread does for a partition besides. */
  readonly beside?: (partition: number) => void
  /** And for all of them. */
  readonly besides?: () => void
}

export interface Deciding {
  ready(): boolean
  identify(request: Identify, answer: (response: HttpResponse) => void): void
  glimpse(scope: string, requestId: string): Glimpse
  readonly recent: Recent
  /** As `Freshness` has it. */
  readonly ask: Freshness['ask']
  /** Decides the partition until `signal` aborts. Rejects with MissingPosition. */
  hold(partition: number, signal: AbortSignal): Promise<void>
  stop(): Promise<void>
}

function groupReplies(replies: readonly DecisionReply[], replays: readonly Replay[]) {
  const messages = new Map<string, { readonly replies: [string, string][]; readonly replays: ReplayNotice[] }>()
  const to = (ingressId: string) => {
    const message = messages.get(ingressId) ?? { replies: [], replays: [] }
    messages.set(ingressId, message)
    return message
  }
  for (const { requestId, replyTo, body } of replies) to(replyTo).replies.push([requestId, body])
  for (const { replyTo, ...replay } of replays) to(replyTo).replays.push(replay)
  return messages
}

export const foreseen = (error: unknown): boolean => error instanceof Unavailable

export function startDeciding(needs: DecidingNeeds): Deciding {
  const { host, portsOf, random, tamper, partitions, onFailure, stopping } = needs
  const { clock } = host
  const bytes = (n: number) => random.bytes(n)
  const bus = portsOf('submit').bus
  const stops: (() => Promise<void> | void)[] = []
  const running: Promise<unknown>[] = []
  const recent = createRecent(partitions, 10_000)
  const freshness = createFreshness()
  let accepting: Accepting | null = null
  let ready = false
  const begun = promised<(partition: number, signal: AbortSignal) => Promise<void>>()

  const reply: ReplyFn = (replies, replays) => {
    needs.onReply(replies, needs.readsOfDecided)
    for (const [id, message] of groupReplies(replies, replays)) if (id !== '') bus.publish(replySubject(id), message)
  }

  function startRoles({ current, load }: Pick<Rulesets, 'current' | 'load'>, counters: CounterFeed): void {
    const counterNews = counters.news
    const threads = createThreads({
      host,
      random,
      threads: needs.threads,
      partitions,
      visitorsMax: 20,
      current,
      counterNews,
    })
    const effects = { random: bytes, deployment: 'd', entriesMax: 1_000, partitions }
    const decider = tamper.decider?.(threads, reply) ?? threads
    function own(partition: number, signal: AbortSignal): Promise<void> {
      const report = {
        decided: () => undefined,
        lost: (p: number, error: unknown) => {
          host.note(`tenure of ${p} lost: ${(error as Error).message}`)
          if (error instanceof MissingPosition) needs.missing(p)
          if (error instanceof TypeError || error instanceof RangeError) onFailure('engine', error)
        },
        ruleLogs: needs.onRuleLogs,
        effectsSkipped: () => undefined,
        healingsDropped: () => undefined,
      }
      const engine = {
        ...portsOf('engine'),
        decider,
        recent,
        clock,
        reply,
        loadRuleset: load,
        effects,
        report,
        counters,
        partitions,
        freshness,
        checkpointMsMax: needs.checkpointMsMax,
        ...(needs.bounds ? { bounds: needs.bounds } : {}),
      }
      return runPartition(engine, partition, signal)
    }
    for (let partition = 0; partition < partitions && needs.heldByCall !== true; partition++) {
      const owning = own(partition, stopping.signal).catch((error) => {
        if (!(error instanceof MissingPosition)) onFailure('engine', error)
      })
      running.push(owning)
      needs.beside?.(partition)
    }
    begun.resolve(own)
    needs.besides?.()
    accepting = startAccepting({ ...needs, ports: portsOf('ingress'), ingressId: needs.ingressId() })
    stops.push(accepting.stop)
    ready = true
  }

  async function start(): Promise<void> {
    const evaluator = makeObjectId('eng', bytes)
    const report = {
      swapped: () => undefined,
      failed: (error: unknown) => {
        if (!foreseen(error)) onFailure('rulesets', error)
      },
    }
    let counters: CounterFeed | null = null
    while (!stopping.signal.aborted) {
      try {
        if (counters === null) {
          const feed = { ...portsOf('engine'), clock, id: evaluator, partitions, onError: report.failed }
          counters = await openCounterFeed(feed)
          stops.push(counters.stop)
        }
        const rulesets = await openRulesets({ ...portsOf('rulesets'), clock, evaluator, sealer: null, report })
        stops.push(rulesets.stop)
        return startRoles(rulesets, counters)
      } catch (error) {
        if (!foreseen(error)) return onFailure('start', error)
        await clock.sleep(300, stopping.signal)
      }
    }
  }
  void start()

  return {
    ready: () => ready,
    recent,
    ask: freshness.ask,
    async hold(partition, signal) {
      const own = await begun.promise
      // What `AbortSignal.any` makes would be kept for good where the process is killed and never stops.
      const ending = new AbortController()
      const end = () => ending.abort()
      for (const one of [signal, stopping.signal]) {
        if (one.aborted) end()
        one.addEventListener('abort', end)
      }
      const owning = own(partition, ending.signal)
      running.push(owning.catch(() => undefined))
      try {
        await owning
      } finally {
        for (const one of [signal, stopping.signal]) one.removeEventListener('abort', end)
        recent.drop(partition)
      }
    },
    identify: (request, answer) => accepting?.identify(request, answer),
    glimpse: (scope, requestId) => ({
      place: recent.find(requestId),
      pending: accepting?.isPending(scope, requestId) ?? false,
      original: accepting?.originalOf(scope, requestId) ?? null,
      covers: recent.complete(),
    }),
    async stop() {
      ready = false
      stopping.abort()
      for (const stop of stops) await stop()
      await Promise.all(running)
    },
  }
}
