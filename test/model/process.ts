// One model process: every role of the product with its real code, on ports of its own host, and a memory that dies with it.

import { openPresent } from '../../src/api/present.ts'
import type { Bus } from '../../src/bus/bus.ts'
import type { ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { runControl } from '../../src/control/owner.ts'
import { openPropagation } from '../../src/control/propagation.ts'
import { openSubmit } from '../../src/control/submit.ts'
import type { Env } from '../../src/domain/event.ts'
import { NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import { homePartition, makeObjectId, makeVisitorId } from '../../src/domain/ids.ts'
import type { ApiKey, KeyKind, Workspace } from '../../src/domain/workspace.ts'
import type { Replay, Reply } from '../../src/engine/decided.ts'
import type { Decider } from '../../src/engine/decider.ts'
import { MissingPosition, runPartition } from '../../src/engine/engine.ts'
import { createFreshness } from '../../src/engine/freshness.ts'
import { createRecent } from '../../src/engine/recent.ts'
import { openRulesets, type Rulesets } from '../../src/engine/rulesets.ts'
import { type CounterFeed, openCounterFeed } from '../../src/engine/velocity/feed.ts'
import type { Handler, HttpRequest, HttpResponse, RouteOptions } from '../../src/http/message.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { type Erase, openErase } from '../../src/ingress/erase.ts'
import { startIngress } from '../../src/ingress/ingress.ts'
import { runTrim } from '../../src/jobs/trim.ts'
import type { Kv } from '../../src/kv/kv.ts'
import { newCounts } from '../../src/lib/counts.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { newClaims, openClaims } from '../../src/lib/first-claims.ts'
import type { Log } from '../../src/log/log.ts'
import { type EventReads, openEventReads } from '../../src/reads/events.ts'
import { awaitSplit } from '../../src/reads/split-progress.ts'
import { openVisitorReads, type VisitorReads } from '../../src/reads/visitors.ts'
import type { CommandDraft, Outcome } from '../../src/records/commands.ts'
import type { RuleLog } from '../../src/records/effects.ts'
import { type ReplayNotice, replySubject } from '../../src/records/replies.ts'
import { byTime, repeatedSplit } from '../../src/records/splits.ts'
import { openSink } from '../../src/sink/sink.ts'
import { type Rng, rng } from '../helpers/rng.ts'
import type { SimHost } from './host.ts'
import { createThreads } from './threads.ts'

export interface Ports {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clickhouse: ClickHouse
}
export type Role = 'engine' | 'sink' | 'ingress' | 'control' | 'trim' | 'rulesets' | 'submit' | 'reads' | 'erase'
export type ReplyFn = (replies: readonly Reply[], replays: readonly Replay[]) => void

/** Puts something wrong between the product and what it is given; only mutations do. */
export interface Tamper {
  readonly ports?: (role: Role, ports: Ports, raw: Ports) => Ports
  readonly decider?: (decider: Decider, reply: ReplyFn) => Decider
}

export interface ProcessNeeds {
  readonly host: SimHost
  readonly ports: Ports
  /** The same stores, asked without the scheduler: for checks that must see one moment. */
  readonly raw: Ports
  readonly tamper: Tamper
  readonly seed: number
  readonly partitions: number
  readonly threads: number
  readonly keepMs: number
  readonly flushMs: number
  readonly workspace: Workspace
  /** Answers leave for the ingress; `reads` sees what this process could answer now. */
  readonly onReply: (replies: readonly Reply[], reads: EventReads) => void
  readonly onRuleLogs: (lines: readonly RuleLog[]) => void
  /** A role ended or raised what it must not. */
  readonly onFailure: (role: string, error: unknown) => void
}

export interface Identify {
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
  readonly ip: string
  readonly env: Env
  readonly keyKind: KeyKind
}

export interface ModelProcess {
  readonly host: SimHost
  readonly ready: () => boolean
  readonly missingPositions: Set<number>
  identify(request: Identify, answer: (response: HttpResponse) => void): void
  change(draft: CommandDraft): Promise<{ readonly outcome: Outcome; readonly propagated: boolean }>
  /** Rejects with ApiError unavailable when it is not known whether the visitor was erased. */
  erase(env: Env, visitorId: string): ReturnType<Erase>
  /** What the endpoint does with these events of one visitor; null: there is nothing to ask for. */
  split(env: Env, requestIds: readonly string[]): Promise<SplitTold | null>
  /** Whether it can tell of every event that there is none. */
  complete(): boolean
  readonly reads: Reads
  /** As of this very moment, from this process's memory. */
  readonly readsNow: Reads
  stop(): Promise<void>
}

export interface SplitTold {
  readonly draft: Extract<CommandDraft, { readonly type: 'visitor.split' }>
  readonly outcome: Outcome
  readonly env: Env
  readonly requestIds: readonly string[]
  /** The caller was answered that it is done. */
  readonly isShown: boolean
}

export interface Reads {
  readonly events: EventReads
  readonly visitors: VisitorReads
}

function groupReplies(replies: readonly Reply[], replays: readonly Replay[]) {
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

export function startProcess(needs: ProcessNeeds): ModelProcess {
  const { host, raw, tamper, partitions, workspace, onFailure } = needs
  const { clock } = host
  const random: Rng = rng(needs.seed)
  const bytes = (n: number) => random.bytes(n)
  const portsOf = (role: Role): Ports => tamper.ports?.(role, needs.ports, raw) ?? needs.ports
  const stopping = new AbortController()
  const stops: (() => Promise<void> | void)[] = []
  const running: Promise<unknown>[] = []
  const missingPositions = new Set<number>()
  const recent = createRecent(partitions, 10_000)
  const run = (role: string, work: Promise<unknown>) => {
    running.push(
      work.catch((error) => {
        if (!(error instanceof MissingPosition)) onFailure(role, error)
      }),
    )
  }
  const foreseen = (error: unknown) => error instanceof Unavailable

  const bus = portsOf('submit').bus
  const submitter = openSubmit({ ...portsOf('submit'), clock, random: bytes })
  const propagation = openPropagation({ ...portsOf('submit'), clock })
  run('control', runControl({ ...portsOf('control'), clock, signal: stopping.signal, report: () => undefined }))

  let handle: Handler | null = null
  let before: RouteOptions['before']
  const isPending = (scope: string, requestId: string) => ingress?.isPending(scope, requestId) ?? false
  const complete = () => recent.complete().length === partitions
  const readsOver = ({ clickhouse, log, kv }: Ports, pending: (scope: string, requestId: string) => boolean) =>
    openEventReads({
      clickhouse,
      log,
      kv,
      partitions,
      clock,
      retentionDays: () => 3_650,
      sight: async (scope, requestId) => ({
        place: recent.find(requestId),
        pending: pending(scope, requestId),
        original: ingress?.originalOf(scope, requestId) ?? null,
        complete: complete(),
      }),
    })
  const reads = readsOver(portsOf('reads'), isPending)
  const visitorsOver = ({ kv }: Ports) => openVisitorReads(kv, partitions)
  const erase = openErase({ ...portsOf('erase'), clock, random: bytes, partitions })
  // Until the answer arrives its own ingress calls the request pending; what counts is that the event is there.
  const readsOfDecided = readsOver(raw, () => false)
  let ingress: ReturnType<typeof startIngress> | null = null
  let ready = false

  const reply: ReplyFn = (replies, replays) => {
    needs.onReply(replies, readsOfDecided)
    for (const [id, message] of groupReplies(replies, replays)) if (id !== '') bus.publish(replySubject(id), message)
  }

  /** The endpoint without what is read from ClickHouse to part records. */
  async function split(env: Env, requestIds: readonly string[]): Promise<SplitTold | null> {
    const visitors = visitorsOver(portsOf('reads'))
    const found = []
    for (const requestId of requestIds) {
      const event = await reads.byId(workspace.id, env, requestId)
      if (event !== null && event !== 'pending')
        found.push({
          requestId,
          from: event.identity.holder ?? event.visitorId,
          isVisit: event.evaluationError === null,
        })
    }
    const one = found[0]
    if (one === undefined) return null
    const ids = await visitors.idsOf(workspace.id, env, one.from)
    const holders = new Set(found.filter(({ isVisit }) => isVisit).map(({ from }) => from))
    const its = found.filter(({ from }) => ids.includes(from) && holders.has(from))
    if (its.length === 0) return null
    const named = its.map(({ requestId }) => requestId)
    const made = () => repeatedSplit(portsOf('reads').kv, workspace.id, env, ids, named)
    const drawId = (from: string): string => {
      for (;;) {
        const id = makeVisitorId(bytes)
        if (homePartition(id, partitions) === homePartition(from, partitions)) return id
      }
    }
    const parts = [...new Set(its.map(({ from }) => from))].map((from) => ({
      ...{ from, to: drawId(from), generations: [] },
      requestIds: byTime(its.filter((event) => event.from === from).map(({ requestId }) => requestId)),
      uncounted: its.filter((event) => event.from === from && !event.isVisit).map(({ requestId }) => requestId),
    }))
    const data = { visitorId: one.from, parts, partitions, keptMs: 10_000_000 }
    const draft = { type: 'visitor.split', workspace: workspace.id, env, actor: 'model', data } as const
    const outcome = await submitter.submit(draft)
    const done = outcome.ok ? await made() : null
    const needs = { clickhouse: portsOf('reads').clickhouse, visitors, clock }
    const isShown = done !== null && (await awaitSplit(needs, { workspace: workspace.id, env, parts: done }))
    return { draft, outcome, env, requestIds: named, isShown }
  }

  function startRoles({ current, load }: Pick<Rulesets, 'current' | 'load'>, counters: CounterFeed): void {
    const counterNews = counters.news
    const threads = createThreads({
      ...{ host, random, threads: needs.threads, partitions, visitorsMax: 20, current, counterNews },
    })
    const effects = { random: bytes, deployment: 'd', entriesMax: 1_000, partitions }
    const decider = tamper.decider?.(threads, reply) ?? threads
    const sinkReport = {
      sunk: (p: number, seq: number) => recent.forgetUpTo(p, seq),
      quarantined: () => undefined,
      failed: (p: number, error: unknown) => {
        host.note(`sink of ${p} failed: ${(error as Error).message}`)
        if (error instanceof TypeError || error instanceof RangeError) onFailure('sink', error)
      },
    }
    const sink = openSink({
      ...{ ...portsOf('sink'), clock, deployment: 'd', flushMsMax: needs.flushMs, batchRowsMax: 8, report: sinkReport },
    })
    const freshness = createFreshness()
    for (let partition = 0; partition < partitions; partition++) {
      const report = {
        decided: () => undefined,
        lost: (p: number, error: unknown) => {
          host.note(`tenure of ${p} lost: ${(error as Error).message}`)
          if (error instanceof MissingPosition) missingPositions.add(p)
          if (error instanceof TypeError || error instanceof RangeError) onFailure('engine', error)
        },
        ruleLogs: needs.onRuleLogs,
        effectsSkipped: () => undefined,
      }
      const engine = {
        ...{ ...portsOf('engine'), decider, recent, clock, reply, loadRuleset: load, effects, report },
        ...{ counters, partitions, freshness, checkpointMsMax: 500 },
      }
      run('engine', runPartition(engine, partition, stopping.signal))
      run('sink', sink(partition, stopping.signal))
    }
    const everyMs = needs.keepMs / 4
    const onError = (error: unknown) => onFailure('trim', error)
    const trim = { ...portsOf('trim'), clock, partitions, keepMs: needs.keepMs, everyMs, onError }
    run('trim', runTrim(trim, stopping.signal))
    ingress = startIngress({
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
      ingressId: makeObjectId('ing', bytes),
      pendingMax: 1_000,
      pendingCounts: newCounts(1),
      nonceRoutes: openClaims(newClaims(1_024), NONCE_WINDOW_MS, clock.monotonic),
      decisionWaitMs: 1_000,
      deadlineMs: 10_000,
      retentionDays: () => 30,
      trustedProxies: [],
      present: openPresent(
        (error) => onFailure('ingress', error),
        () => 'call',
      ),
      refusal: () => null,
      findEvent: reads.byId,
      fateOf: reads.fateOf,
      workspace: () => workspace,
    })
    stops.push(ingress.stop)
    ready = true
  }

  function callerOf(keyText: string) {
    const [kind, env] = keyText.split('_') as [KeyKind, Env]
    const key = { id: `key_${kind}`, workspace: workspace.id, env, kind, scopes: null, origins: null } as ApiKey
    return { key, workspace, env }
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
    host,
    ready: () => ready && host.alive(),
    missingPositions,
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
    async change(draft) {
      const startedAt = clock.monotonic()
      const outcome = await submitter.submit(draft)
      if (!outcome.ok || outcome.revision === undefined) return { outcome, propagated: false }
      const question = { workspace: workspace.id, env: draft.env as Env, revision: outcome.revision, startedAt }
      return { outcome, propagated: (await propagation.awaitPropagation(question)).propagated }
    },
    split,
    complete,
    erase: (env, visitorId) => erase(workspace.id, env, visitorId),
    reads: { events: reads, visitors: visitorsOver(portsOf('reads')) },
    readsNow: { events: readsOver(raw, isPending), visitors: visitorsOver(raw) },
    async stop() {
      ready = false
      stopping.abort()
      for (const stop of stops) await stop()
      await Promise.all(running)
    },
  }
}
