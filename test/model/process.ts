// One model process: every role of the product with its real code, on ports of its own host, and a memory that dies with it.

import { openAsk } from '../../src/bus/ask.ts'
import type { Bus } from '../../src/bus/bus.ts'
import type { ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { runControl } from '../../src/control/owner.ts'
import { openPropagation } from '../../src/control/propagation.ts'
import { openSubmit } from '../../src/control/submit.ts'
import type { Env } from '../../src/domain/event.ts'
import { homePartition, makeObjectId, makeVisitorId } from '../../src/domain/ids.ts'
import type { KeyKind, Workspace } from '../../src/domain/workspace.ts'
import type { DecisionReply, Replay } from '../../src/engine/decided.ts'
import type { Decider } from '../../src/engine/decider.ts'
import { MissingPosition } from '../../src/engine/engine.ts'
import type { CheckpointBounds } from '../../src/engine/engine-needs.ts'
import type { HttpResponse } from '../../src/http/message.ts'
import { type Erase, openErase } from '../../src/ingress/erase.ts'
import { runTrim } from '../../src/jobs/trim.ts'
import type { Kv } from '../../src/kv/kv.ts'
import { newClaims } from '../../src/lib/first-claims.ts'
import type { FrontWriterNeeds } from '../../src/log/front-writer.ts'
import type { Log } from '../../src/log/log.ts'
import { type EventReads, openEventReads } from '../../src/reads/events.ts'
import { awaitSplit } from '../../src/reads/split-progress.ts'
import { openVisitorReads, type VisitorReads } from '../../src/reads/visitors.ts'
import type { CommandDraft, CommandOutcome } from '../../src/records/commands.ts'
import type { RuleLog } from '../../src/records/effects.ts'
import { combineAnswers } from '../../src/records/event-locator.ts'
import { byTime, repeatedSplit } from '../../src/records/splits.ts'
import type { AssignmentNeeds } from '../../src/shards/assignment.ts'
import { openFreshen } from '../../src/shards/freshen.ts'
import { openSink } from '../../src/sink/sink.ts'
import { NO_OTHERS } from '../helpers/no-others.ts'
import { type Rng, rng } from '../helpers/rng.ts'
import { startDeciding } from './deciding.ts'
import type { SimHost } from './host.ts'
import { type Shard, startShard } from './shard.ts'
import { startSpreadShards } from './spread-shards.ts'

export interface Ports {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly clickhouse: ClickHouse
}
export type Role = 'engine' | 'sink' | 'ingress' | 'control' | 'trim' | 'rulesets' | 'submit' | 'reads' | 'erase'
export type ReplyFn = (replies: readonly DecisionReply[], replays: readonly Replay[]) => void

/** Puts something wrong between the product and what it is given; only mutations do. */
export interface Tamper {
  readonly ports?: (role: Role, ports: Ports, raw: Ports) => Ports
  readonly decider?: (decider: Decider, reply: ReplyFn) => Decider
  /** What the process's side of a thread works with. */
  readonly writer?: (needs: Pick<FrontWriterNeeds, 'line' | 'log'>) => Pick<FrontWriterNeeds, 'line' | 'log'>
  /** What partitions are moved with. */
  readonly assignment?: (needs: AssignmentNeeds) => AssignmentNeeds
}

export interface ProcessNeeds {
  readonly host: SimHost
  readonly ports: Ports
  /** Makes the host of a thread that accepts and decides, and its bus; null: the process does all in one thread. */
  readonly thread: ((name: string) => { readonly host: SimHost; readonly bus: Bus }) | null
  /** Half of the calls arrive beside that thread and are handed over to it. */
  readonly handing: boolean
  /** There are two such threads, and partitions move between them. */
  readonly spreading: boolean
  /** The same stores, asked without the scheduler: for checks that must see one moment. */
  readonly raw: Ports
  readonly tamper: Tamper
  readonly seed: number
  readonly partitions: number
  readonly threads: number
  /** As `EngineNeeds` has it. */
  readonly bounds?: CheckpointBounds
  readonly keepMs: number
  readonly flushMs: number
  readonly workspace: Workspace
  /** Answers leave for the ingress; `reads` sees what this process could answer now. */
  readonly onReply: (replies: readonly DecisionReply[], reads: EventReads) => void
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
  /** The thread that accepts and decides now, where it is one of its own. */
  readonly shards: () => readonly SimHost[]
  readonly ready: () => boolean
  readonly missingPositions: Set<number>
  identify(request: Identify, answer: (response: HttpResponse) => void): void
  change(draft: CommandDraft): Promise<{ readonly outcome: CommandOutcome; readonly propagated: boolean }>
  /** Rejects with ApiError unavailable when it is not known whether the visitor was erased. */
  erase(env: Env, visitorId: string): ReturnType<Erase>
  /** What the endpoint does with these events of one visitor; null: there is nothing to ask for. */
  split(env: Env, requestIds: readonly string[]): Promise<SplitTold | null>
  /** Visits that a visitor's own record has; null where it is not known to be fresh. Only of a process without threads of its own. */
  visitsOf(env: Env, visitorId: string): Promise<number | null>
  /** Whether it can tell of every event that there is none. */
  complete(): boolean
  readonly reads: Reads
  /** As of this very moment, from this process's memory. */
  readonly readsNow: Reads
  stop(): Promise<void>
}

export interface SplitTold {
  readonly draft: Extract<CommandDraft, { readonly type: 'visitor.split' }>
  readonly outcome: CommandOutcome
  readonly env: Env
  readonly requestIds: readonly string[]
  /** The caller was answered that it is done. */
  readonly isShown: boolean
}

export interface Reads {
  readonly events: EventReads
  readonly visitors: VisitorReads
}

const FRESH_MS_MAX = 2_000

export function startProcess(needs: ProcessNeeds): ModelProcess {
  const { host, raw, tamper, partitions, workspace, onFailure } = needs
  const { clock } = host
  const random: Rng = rng(needs.seed)
  const bytes = (n: number) => random.bytes(n)
  const ports: Ports = needs.thread === null ? needs.ports : { ...needs.ports, log: routed(needs.ports.log) }
  const portsOf = (role: Role): Ports => tamper.ports?.(role, ports, raw) ?? ports
  const stopping = new AbortController()
  const running: Promise<unknown>[] = []
  const missingPositions = new Set<number>()
  const run = (role: string, work: Promise<unknown>) => {
    running.push(
      work.catch((error) => {
        if (!(error instanceof MissingPosition)) onFailure(role, error)
      }),
    )
  }

  const submitter = openSubmit({ ...portsOf('submit'), clock, random: bytes })
  const propagation = openPropagation({ ...portsOf('submit'), clock, observe: () => undefined })
  run('control', runControl({ ...portsOf('control'), clock, signal: stopping.signal, report: () => undefined }))

  const complete = () => accepting.glimpseNow('', '').covers.length === partitions
  const readsOver = ({ clickhouse, log, kv }: Ports, glimpse: Shard['glimpse'] | Shard['glimpseNow']) =>
    openEventReads({
      isAlone: needs.thread !== null,
      clickhouse,
      log,
      kv,
      partitions,
      clock,
      retentionDays: () => 3_650,
      sight: async (scope, requestId) =>
        combineAnswers(requestId, [{ from: host.name, ...(await glimpse(scope, requestId)) }], [], partitions),
    })
  const reads = readsOver(portsOf('reads'), (...args) => accepting.glimpse(...args))
  const visitorsOver = ({ kv }: Ports) => openVisitorReads(kv, partitions)
  const erase = openErase({ ...portsOf('erase'), clock, random: bytes, partitions })
  // Until the answer arrives its own ingress calls the request pending; what counts is that the event is there.
  const readsOfDecided = readsOver(raw, (...args) => ({ ...accepting.glimpseNow(...args), pending: false }))

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
      from,
      to: drawId(from),
      generations: [],
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

  const sinkReport = {
    sunk: (p: number, seq: number) => accepting.sunk(p, seq),
    inserted: () => undefined,
    quarantined: () => undefined,
    failed: (p: number, error: unknown) => {
      host.note(`sink of ${p} failed: ${(error as Error).message}`)
      if (error instanceof TypeError || error instanceof RangeError) onFailure('sink', error)
    },
  }
  let sink: ReturnType<typeof openSink> | null = null
  function runSink(partition: number): void {
    sink ??= openSink({
      ...portsOf('sink'),
      clock,
      deployment: 'd',
      flushMsMax: needs.flushMs,
      batchRowsMax: 8,
      report: sinkReport,
    })
    run('sink', sink(partition, stopping.signal))
  }
  function runTrims(): void {
    const everyMs = needs.keepMs / 4
    const onError = (error: unknown) => onFailure('trim', error)
    const trim = { ...portsOf('trim'), clock, partitions, keepMs: needs.keepMs, everyMs, onError }
    run('trim', runTrim(trim, stopping.signal))
  }

  const decidingNeeds = {
    ...needs,
    random,
    claims: newClaims(1_024),
    readsOfDecided,
    findEvent: reads.byId,
    fateOf: reads.fateOf,
    ingressId: () => makeObjectId('ing', bytes),
    missing: (partition: number) => missingPositions.add(partition),
  }
  let shards: Parameters<typeof openFreshen>[0]['shards'] = null
  const accepting = needs.thread === null ? startAlone() : startApart(needs.thread)
  const ask = openAsk({ bus: portsOf('reads').bus, clock, id: host.name })
  const freshen = openFreshen({ ...portsOf('reads'), clock, shards, ask })
  if (needs.thread !== null) {
    for (let partition = 0; partition < partitions; partition++) runSink(partition)
    runTrims()
  }

  function startApart(thread: NonNullable<ProcessNeeds['thread']>): Shard {
    if (!needs.spreading) return startShard({ ...decidingNeeds, thread, assigned: null, name: host.name })
    return startSpreadShards({ ...decidingNeeds, thread, isMissing: (partition) => missingPositions.has(partition) })
  }

  function routed(log: Log): Log {
    return { ...log, append: (...args) => accepting.append(...args) }
  }

  /** Everything in one thread. */
  function startAlone(): Shard {
    const checkpointMsMax = 500
    const deciding = startDeciding({
      ...decidingNeeds,
      otherShards: NO_OTHERS,
      portsOf,
      stopping,
      checkpointMsMax,
      beside: runSink,
      besides: runTrims,
    })
    shards = { freshen: deciding.ask }
    return {
      ...deciding,
      append: ports.log.append,
      glimpse: async (...args) => deciding.glimpse(...args),
      glimpseNow: deciding.glimpse,
      sunk: deciding.recent.forgetUpTo,
      hosts: () => [],
    }
  }

  return {
    host,
    shards: () => accepting.hosts(),
    ready: () => accepting.ready() && !stopping.signal.aborted && host.alive(),
    missingPositions,
    identify: accepting.identify,
    async change(draft) {
      const startedAt = clock.monotonic()
      const outcome = await submitter.submit(draft)
      if (!outcome.ok || outcome.revision === undefined) return { outcome, propagated: false }
      const question = { workspace: workspace.id, env: draft.env as Env, revision: outcome.revision, startedAt }
      return { outcome, propagated: (await propagation.awaitPropagation(question)).propagated }
    },
    split,
    async visitsOf(env, visitorId) {
      if (!(await freshen(homePartition(visitorId, partitions), FRESH_MS_MAX))) return null
      return (await visitorsOver(portsOf('reads')).record(workspace.id, env, visitorId))?.totalVisits ?? 0
    },
    complete,
    erase: (env, visitorId) => erase(workspace.id, env, visitorId),
    reads: { events: reads, visitors: visitorsOver(portsOf('reads')) },
    readsNow: { events: readsOver(raw, accepting.glimpseNow), visitors: visitorsOver(raw) },
    async stop() {
      stopping.abort()
      await ask.close()
      await accepting.stop()
      await Promise.all(running)
    },
  }
}
