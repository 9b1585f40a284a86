// What accepts and decides in one thread of a model process: ingress, engine, rulesets and counters with their real code, and a
// memory that dies with the thread.

import { openPresent } from '../../src/api/present.ts'
import { NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import { makeObjectId } from '../../src/domain/ids.ts'
import type { ApiKey, KeyKind, Workspace } from '../../src/domain/workspace.ts'
import type { DecisionReply, Replay } from '../../src/engine/decided.ts'
import { MissingPosition, runPartition } from '../../src/engine/engine.ts'
import { createFreshness } from '../../src/engine/freshness.ts'
import { createRecent, type Recent } from '../../src/engine/recent.ts'
import { openRulesets, type Rulesets } from '../../src/engine/rulesets.ts'
import { type CounterFeed, openCounterFeed } from '../../src/engine/velocity/feed.ts'
import type { Handler, HttpRequest, HttpResponse, RouteOptions } from '../../src/http/message.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { startIngress } from '../../src/ingress/ingress.ts'
import { newCounts } from '../../src/lib/counts.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { openClaims } from '../../src/lib/first-claims.ts'
import { openLogger } from '../../src/lib/logger.ts'
import { openMetrics } from '../../src/lib/metrics.ts'
import type { Caller } from '../../src/records/auth.ts'
import type { LocatorAnswer } from '../../src/records/event-locator.ts'
import { type ReplayNotice, replySubject } from '../../src/records/replies.ts'
import type { Rng } from '../helpers/rng.ts'
import type { SimHost } from './host.ts'
import type { Identify, Ports, ProcessNeeds, ReplyFn, Role } from './process.ts'
import { createThreads } from './threads.ts'

export interface DecidingNeeds
  extends Pick<
    ProcessNeeds,
    'tamper' | 'partitions' | 'threads' | 'workspace' | 'onReply' | 'onRuleLogs' | 'onFailure'
  > {
  readonly host: SimHost
  readonly portsOf: (role: Role) => Ports
  readonly random: Rng
  readonly stopping: AbortController
  readonly checkpointMsMax: number
  /** Names who waits for replies. */
  readonly ingressId: () => string
  /** Memory of the whole process, whatever becomes of its threads. */
  readonly claims: Int32Array
  readonly findEvent: Parameters<typeof startIngress>[0]['findEvent']
  readonly fateOf: Parameters<typeof startIngress>[0]['fateOf']
  readonly readsOfDecided: Parameters<ProcessNeeds['onReply']>[1]
  readonly missing: (partition: number) => void
  /** Starts what the same thread does for a partition besides. */
  readonly beside?: (partition: number) => void
  /** And for all of them. */
  readonly besides?: () => void
}

export interface Deciding {
  ready(): boolean
  identify(request: Identify, answer: (response: HttpResponse) => void): void
  glimpse(scope: string, requestId: string): Omit<LocatorAnswer, 'from'>
  readonly recent: Recent
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
  const { host, portsOf, random, tamper, partitions, workspace, onFailure, stopping } = needs
  const { clock } = host
  const bytes = (n: number) => random.bytes(n)
  const bus = portsOf('submit').bus
  const stops: (() => Promise<void> | void)[] = []
  const running: Promise<unknown>[] = []
  const recent = createRecent(partitions, 10_000)
  let handle: Handler | null = null
  let before: RouteOptions['before']
  let ingress: ReturnType<typeof startIngress> | null = null
  let ready = false

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
    const freshness = createFreshness()
    for (let partition = 0; partition < partitions; partition++) {
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
      }
      const owning = runPartition(engine, partition, stopping.signal).catch((error) => {
        if (!(error instanceof MissingPosition)) onFailure('engine', error)
      })
      running.push(owning)
      needs.beside?.(partition)
    }
    needs.besides?.()
    ingress = startIngress({
      metrics: openMetrics(null),
      logger: openLogger('silent'),
      toldOfProxy: new Int32Array(1),
      otherShards: null,
      ...portsOf('ingress'),
      http: {
        route(method, _path, handler, options) {
          if (method !== 'POST') return
          handle = handler
          before = options?.before
        },
      },
      auth: { authenticate: (keyText) => callerOf(keyText ?? '') },
      limits: { take: () => Promise.reject(new Error('nothing is limited')) },
      config: { 'ingress.perIpPerSecondMax': 0, 'ingress.perWorkspacePerSecondMax': 0 },
      clock,
      random: bytes,
      parsers: openParsers(16),
      partitions,
      ingressId: needs.ingressId(),
      pendingMax: 1_000,
      pendingCounts: newCounts(1),
      nonceRoutes: openClaims(needs.claims, NONCE_WINDOW_MS, clock.monotonic),
      decisionWaitMs: 1_000,
      deadlineMs: 10_000,
      retentionDays: () => 30,
      trustedProxies: [],
      cookieDomain: '',
      present: openPresent(
        (error) => onFailure('ingress', error),
        () => 'call',
      ),
      refusal: () => null,
      findEvent: needs.findEvent,
      fateOf: needs.fateOf,
      workspace: () => workspace,
    })
    stops.push(ingress.stop)
    ready = true
  }

  const callerOf = (keyText: string) => callerIn(workspace, keyText)

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
    identify({ body, headers, ip, env, keyKind }, answer) {
      const sent: Readonly<Record<string, string>> = {
        ...headers,
        authorization: `Bearer ${keyKind}_${env}`,
        'content-type': 'application/json',
      }
      const request = {
        method: 'POST',
        path: '/v1/identify',
        query: '',
        params: {},
        body,
        context: null,
        answerHeaders: [],
        header: (name: string) => sent[name] ?? '',
        hasHeader: (name: string) => sent[name] !== undefined,
        headers: () => [],
        remoteAddress: () => ip,
        aborted: () => false,
        whenAborted: () => {},
      } as HttpRequest
      const refused = before?.(request) as HttpResponse | null | undefined
      if (refused) return answer(refused)
      handle?.(request, (outcome) => {
        if (outcome instanceof Error) onFailure('ingress', outcome)
        else answer(outcome)
      })
    },
    glimpse: (scope, requestId) => ({
      place: recent.find(requestId),
      pending: ingress?.isPending(scope, requestId) ?? false,
      original: ingress?.originalOf(scope, requestId) ?? null,
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

function callerIn(workspace: Workspace, keyText: string): Caller {
  const [kind, env] = keyText.split('_') as [KeyKind, Caller['env']]
  const key = { id: `key_${kind}`, workspace: workspace.id, env, kind, scopes: null, origins: null } as ApiKey
  return { key, workspace, env }
}
