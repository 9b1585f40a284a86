// One run of a seed: a deployment, its clients and its operators, faults while it works, then quiet until nothing changes,
// then the checks.

import { runControl } from '../../src/control/owner.ts'
import { prepareDeployment } from '../../src/control/bootstrap.ts'
import type { Env, StoredEvent } from '../../src/domain/event.ts'
import type { Workspace } from '../../src/domain/workspace.ts'
import { presentResult } from '../../src/identity/result.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { EventReads } from '../../src/reads/events.ts'
import { encodeIdentification } from '../../src/records/identification.ts'
import { type Command, type CommandDraft, encodeCommand, type Outcome } from '../../src/records/commands.ts'
import { DECIDED_TO, ENGINE_POSITION, partitionScope, SINK_POSITION } from '../../src/records/partitions.ts'
import { CHANGES_READER, SYSTEM } from '../../src/records/scopes.ts'
import { rng } from '../helpers/rng.ts'
import { checkWorld, KINDS } from './checks.ts'
import { type Answered, createClients } from './clients.ts'
import { createSimHost, type Faults, type Host, NO_FAULTS } from './host.ts'
import { bindKv, createKvStore, type KvStore, peek } from './model-kv.ts'
import {
  bindBus,
  bindClickHouse,
  bindLog,
  type BusStore,
  type ClickHouseStore,
  createClickHouseStore,
  createLogStore,
  type LogStore,
} from './ports.ts'
import { type ModelProcess, type Ports, startProcess, type Tamper } from './process.ts'
import { createScheduler, type Scheduler } from './scheduler.ts'

export interface Problem {
  readonly check: string
  readonly detail: string
}

export interface Changed {
  readonly draft: CommandDraft
  /** null: the operator was told nothing. */
  readonly outcome: Outcome | null
  readonly propagated: boolean
  /** Virtual milliseconds of the answer. */
  readonly at: number
}

/** All that the checks may look at when everything is quiet. */
export interface Facts {
  readonly log: LogStore
  readonly kv: KvStore
  readonly clickhouse: ClickHouseStore
  readonly raw: Ports
  readonly partitions: number
  readonly workspace: Workspace
  readonly answers: readonly Answered[]
  readonly changes: readonly Changed[]
  readonly processes: readonly ModelProcess[]
  /** The partition whose records in the kv were lost, or null. */
  readonly lostPartition: number | null
  /** One process at a time: the embedded deployment. */
  readonly alone: boolean
  readonly problem: (check: string, detail: string) => void
}

export interface WorldResult {
  readonly seed: number
  readonly problems: readonly Problem[]
  readonly traceHash: number
  readonly trace: readonly string[]
  readonly steps: number
  readonly virtualMs: number
  readonly events: number
}

const PARTITIONS = 2
const QUIET_STEPS_MAX = 150_000
const ENVS: readonly Env[] = ['live', 'test']
const CLOCK_SKEW_MS = 40
/** An operator gives up waiting. */
const OPERATOR_MS_MAX = 9_000

const decidedTo = (kv: KvStore, partition: number): number =>
  (peek(kv, partitionScope(partition), DECIDED_TO) as number | undefined) ?? 0

/** Answers at once. Nothing ever wakes who waits. */
export const createRawHost = (scheduler: Scheduler): Host => ({
  call: async (_label, effect) => effect(),
  wait: () => new Promise(() => undefined),
  post: () => undefined,
  clock: {
    now: () => Date.UTC(2026, 10, 20) + Math.floor(scheduler.now()),
    monotonic: () => scheduler.now() + 1_000,
    sleep: () => new Promise(() => undefined),
  },
})

/** Applies everything in `changes` on ports without faults. */
export async function foldChanges(ports: Ports, host: Host): Promise<void> {
  const last = await ports.log.last('changes', 0)
  const done = new AbortController()
  const report = ({ seq }: { readonly seq?: number }) => {
    if (seq === last) done.abort()
  }
  await runControl({ ...ports, clock: host.clock, signal: done.signal, report: (fact) => report(fact as { seq?: number }) })
}

function ruleDraft(id: string, env: Env, data: Partial<Extract<CommandDraft, { type: 'rule.create' }>['data']>): CommandDraft {
  return {
    type: 'rule.create',
    workspace: 'ws_model',
    env,
    actor: 'model',
    data: {
      id,
      name: id,
      conditions: { operator: 'AND', rules: [{ field: 'visitorFound', operator: 'equals', value: true }] },
      action: { verdict: 'challenge' },
      status: 'live',
      priority: null,
      maxima: { rulesMax: 20, activeMax: 10 },
      ...data,
    },
  }
}

const CREATE: CommandDraft = {
  type: 'workspace.create',
  workspace: 'ws_model',
  env: null,
  actor: 'model',
  data: {
    name: 'Model',
    plan: 'enterprise',
    apiVersion: '2026-11-01',
    settings: { clientResult: 'verdict' },
    tokenSecret: 'the secret of the model workspace',
  },
}

export async function runWorld(seed: number, tamper: Tamper = {}, traceLinesMax = 200): Promise<WorldResult> {
  const random = rng(seed)
  const scheduler = createScheduler(random, traceLinesMax)
  const rawHost = createRawHost(scheduler)
  const problems: Problem[] = []
  const problem = (check: string, detail: string) => {
    scheduler.note('FAIL', `${check}: ${detail}`)
    problems.push({ check, detail })
  }

  const log = createLogStore({ partitions: PARTITIONS })
  const kv = createKvStore()
  const clickhouse = createClickHouseStore()
  const busStore: BusStore = new Map()
  const gap = () => (random.chance(0.1) ? 3 : 1)
  const raw: Ports = {
    log: bindLog(log, rawHost, 'raw', gap),
    kv: bindKv(kv, rawHost),
    bus: bindBus(new Map(), rawHost, () => undefined),
    clickhouse: bindClickHouse(clickhouse, rawHost),
  }

  // A deployment as its first start leaves it: positions, a workspace, a rule in each environment.
  await prepareDeployment({ ...raw, partitions: PARTITIONS, sources: [ENGINE_POSITION, SINK_POSITION] })
  const first = [CREATE, ruleDraft('rul_live', 'live', {}), ruleDraft('rul_test', 'test', { status: 'monitor' })]
  const firstCommands = first.map((draft, i) => ({ ...draft, id: `cmd_${String(i).padStart(26, '0')}`, at: i }) as Command)
  await raw.log.append('changes', 0, firstCommands.map(encodeCommand))
  await foldChanges(raw, rawHost)
  const [record] = await raw.kv.get<Workspace>(SYSTEM, [['workspace', 'ws_model']])
  const workspace = record?.value as Workspace

  const storm = random.pick([0, 0.004, 0.02, 0.06])
  const stormy: Faults = {
    before: storm * random.float(),
    after: storm * random.float(),
    twice: storm * random.float(),
    lost: storm / 2,
    repeated: storm,
    thread: storm / 10,
    slow: storm,
    slowMsMax: random.pick([50, 400, 3_000]),
  }
  let faults = stormy
  const alone = random.chance(0.4)
  const keepMs = 1_000 + random.int(6_000)
  const flushMs = random.pick([100, 300, 1_000])
  const threads = 1 + random.int(2)
  const answers: Answered[] = []
  const changes: Changed[] = []
  const processes: ModelProcess[] = []
  let lostPartition: number | null = null

  log.onTrim = (topic, partition, upTo, gone) => {
    const position = (source: string) => kv.scopes.get(partitionScope(partition))?.positions.get(source) ?? 0
    const needed =
      topic === 'events'
        ? Math.min(position(ENGINE_POSITION), position(SINK_POSITION))
        : decidedTo(kv, partition)
    if (upTo > needed && gone.some(({ seq }) => seq > needed))
      problem('a trim takes what is still needed', `${topic}/${partition} up to ${upTo}, needed from ${needed}`)
    const young = rawHost.clock.monotonic() - (gone.at(-1)?.at ?? 0)
    if (topic === 'events' && young < keepMs) problem('a trim takes what is too young', `${topic}/${partition} ${young} ms`)
  }

  const isQuarantined = (requestId: string) =>
    (clickhouse.rows.get('quarantine') ?? []).some((line) => line.includes(requestId))

  async function checkReadable(reads: EventReads, replies: readonly { requestId: string; body: string }[]): Promise<void> {
    for (const { requestId, body } of replies) {
      let found: StoredEvent | null = null
      for (const env of ENVS) {
        // Asked for in the wrong environment it may be anything but found.
        const answer = await reads.byId(workspace.id, env, requestId).catch(() => null)
        if (answer !== null && answer !== 'pending') found = answer
      }
      if (found === null && !isQuarantined(requestId)) problem('an answer is readable when it is given', requestId)
      else if (found !== null && !KINDS.some((kind) => presentResult(found, workspace, kind) === body))
        problem('an answer equals what is read', `${requestId} at once`)
    }
  }

  function start(name: string): void {
    const host = createSimHost(name, scheduler, () => faults, random.int(2 * CLOCK_SKEW_MS) - CLOCK_SKEW_MS)
    const ports: Ports = {
      log: bindLog(log, host, name, gap),
      kv: bindKv(kv, host),
      bus: bindBus(busStore, host, (error) => problem('no receiver fails', String(error))),
      clickhouse: bindClickHouse(clickhouse, host),
    }
    scheduler.note(name, 'starts')
    processes.push(
      startProcess({
        host,
        ports,
        raw,
        tamper,
        seed: random.int(2 ** 31),
        partitions: PARTITIONS,
        threads,
        keepMs,
        flushMs,
        workspace,
        onReply: (replies, reads) =>
          queueMicrotask(() => void checkReadable(reads, replies.slice(0, 2))),
        onFailure: (role, error) => problem('no role fails', `${name} ${role}: ${(error as Error).stack}`),
      }),
    )
  }
  const alive = () => processes.filter(({ host }) => host.alive())
  const ready = () => processes.filter((p) => p.ready())

  const onAnswer = (answered: Answered) => {
    answers.push(answered)
    const { requestId, status, by, ask, at } = answered
    if (!alone || requestId === null) return
    const hasNonce = ask.nonce !== null
    if (status === 200) void probe(by.readsNow, ask.env, requestId, at, hasNonce)
    const later = random.float() * 4_000
    if (random.chance(0.2))
      scheduler.after(later, () => {
        for (const p of ready()) void probe(p.readsNow, ask.env, requestId, status === 200 ? at : null, hasNonce)
      })
  }

  /** `answeredAt` null: the event may be undecided yet. */
  async function probe(reads: EventReads, env: Env, requestId: string, answeredAt: number | null, hasNonce: boolean): Promise<void> {
    try {
      const found = await reads.byId(workspace.id, env, requestId)
      const fine = found !== null && (found !== 'pending' || answeredAt === null)
      // A repeat of a nonce never becomes an event.
      const mayVanish = answeredAt === null && hasNonce
      if (!fine && !mayVanish && lostPartition === null && !isQuarantined(requestId))
        problem('what was accepted can be found', `${requestId}: ${found}`)
    } catch (error) {
      if (!(error instanceof Unavailable)) problem('what was accepted can be found', String(error))
    }
  }

  const clients = createClients({
    scheduler,
    ready,
    onAnswer,
    killers: random.chance(0.05) ? 0.05 : 0,
    badRows: random.chance(0.05) ? 0.1 : 0,
  })

  let changing = 0
  function changeRule(number: number): void {
    const [by] = random.shuffle(ready())
    if (by === undefined) return
    const env = random.pick(ENVS)
    const data = { maxima: { rulesMax: 20, activeMax: 10 } }
    const id = random.pick([`rul_${env}`, `rul_${number}`, `rul_${number - 1}`])
    const from = { workspace: workspace.id, env, actor: 'model' } as const
    const drafts: CommandDraft[] = [
      ruleDraft(id, env, { priority: random.int(3), action: { verdict: random.pick(['allow', 'block']) } }),
      { ...from, type: 'rule.update', data: { ...data, id, changes: { status: random.pick(['live', 'monitor', 'paused']) } } },
      { ...from, type: 'rule.update', data: { ...data, id, changes: { action: { verdict: 'block' } } } },
      { ...from, type: 'rule.delete', data: { id } },
    ]
    const draft = random.pick(drafts)
    changing++
    let over = false
    const told = (outcome: Outcome | null, propagated: boolean) => {
      if (over) return
      over = true
      changing--
      scheduler.note('http', `rule change ${outcome?.ok ?? 'unknown'}${propagated ? ' propagated' : ''}`)
      changes.push({ draft, outcome, propagated, at: scheduler.now() })
    }
    by.host.step(0, () => {
      by.change(draft).then(
        ({ outcome, propagated }) => told(outcome, propagated),
        () => told(null, false),
      )
    })
    scheduler.after(OPERATOR_MS_MAX, () => told(null, false))
  }

  let stopping = 0
  function disturb(number: number): void {
    const [victim] = random.shuffle(alive())
    if (victim === undefined) return
    const kind = random.float()
    if (kind < 0.45) {
      const ms = random.chance(0.1) ? random.float() * 100_000 : random.float() * 6_000
      scheduler.note(victim.host.name, `paused for ${Math.round(ms)} ms`)
      victim.host.pause(ms)
      pausedUntil = Math.max(pausedUntil, scheduler.now() + ms)
      if (alone || random.chance(0.7)) return
    } else if (kind < 0.85) {
      scheduler.note(victim.host.name, 'dies')
      victim.host.kill(alone)
    } else {
      scheduler.note(victim.host.name, 'is asked to stop')
      stopping++
      void victim.stop().then(() => {
        stopping--
        scheduler.note(victim.host.name, 'stopped')
        victim.host.kill(true)
        if (alone) start(`p${number}`)
      })
      if (alone) return
    }
    scheduler.after(random.float() * 2_000, () => start(`p${number}`))
  }
  let pausedUntil = 0

  start('p0')
  if (!alone) start('p1')
  const activeMs = 1_000 + random.int(5_000)
  clients.plan(20 + random.int(41), activeMs)
  const odd = random.int(4)
  for (let i = 0; i < odd; i++) scheduler.after(random.float() * activeMs, () => changeRule(i + 1))
  for (let i = random.int(4); i > 0; i--) scheduler.after(random.float() * activeMs, () => disturb(i + 1))
  if (random.chance(0.1)) scheduler.after(random.float() * activeMs, () => void raw.log.append('identifications', random.int(PARTITIONS), [random.bytes(random.int(60))]))
  if (random.chance(0.1)) scheduler.after(random.float() * activeMs, () => void raw.log.append('changes', 0, [random.bytes(random.int(60))]))
  if (random.chance(0.1))
    scheduler.after(random.float() * activeMs, () => {
      const meta = {
        requestId: `req_0000000000000000000000000${random.int(10)}`,
        acceptedAt: rawHost.clock.now(),
        workspace: workspace.id,
        env: 'live',
        keyKind: 'public',
        ip: '198.51.100.9',
        headers: {},
        token: null,
        tokenForged: false,
        replyTo: '',
      } as const
      void raw.log.append('identifications', random.int(PARTITIONS), [encodeIdentification(meta, Buffer.from('{"email":5}'))])
    })
  if (random.chance(0.03))
    scheduler.after(random.float() * activeMs, () => {
      const partition = random.int(PARTITIONS)
      scheduler.note('chaos', `the records of partition ${partition} are lost`)
      kv.scopes.delete(partitionScope(partition))
      lostPartition = partition
    })

  /** What is still to be done; null: nothing. */
  function unsettled(): string | null {
    if (clients.open() > 0) return `${clients.open()} clients wait`
    if (changing > 0) return 'operators wait'
    if (stopping > 0) return 'processes are stopping'
    if (alive().length === 0 || ready().length < alive().length) return 'processes are starting'
    if ((kv.scopes.get(SYSTEM)?.positions.get(CHANGES_READER) ?? 0) !== log.side('changes', 0).last) return 'changes'
    for (let p = 0; p < PARTITIONS; p++) {
      if (p === lostPartition) continue
      const positions = kv.scopes.get(partitionScope(p))?.positions
      const { last } = log.side('events', p)
      const { last: accepted } = log.side('identifications', p)
      if (accepted > 0 && decidedTo(kv, p) !== accepted) return `partition ${p} decides`
      if (positions?.get(ENGINE_POSITION) !== last) return `partition ${p} has no checkpoint of ${last}`
      if (positions?.get(SINK_POSITION) !== last) return `partition ${p} sinks`
    }
    return null
  }
  let looks = 0
  try {
    await scheduler.run(() => scheduler.now() >= Math.max(activeMs, pausedUntil), QUIET_STEPS_MAX)
    scheduler.note('chaos', 'quiet from now on')
    faults = NO_FAULTS
    if (lostPartition !== null) for (const { host } of alive()) host.kill(true)
    if (alive().length === 0) start('p9')
    await scheduler.run(() => ++looks % 16 === 0 && unsettled() === null, QUIET_STEPS_MAX)
    // A little longer, for whoever is still on the way to do something twice.
    const end = scheduler.now() + (lostPartition === null ? 700 : 3_000)
    await scheduler.run(() => scheduler.now() >= end, QUIET_STEPS_MAX)
    let stops = 0
    const stopped = alive().map((p) => p.stop().then(() => stops++))
    await scheduler.run(() => stops === stopped.length, QUIET_STEPS_MAX)
  } catch (error) {
    problem('everything comes to rest', `${(error as Error).message}: ${unsettled()}`)
  }
  const facts: Facts = { log, kv, clickhouse, raw, partitions: PARTITIONS, workspace, answers, changes, processes, lostPartition, alone, problem }
  if (problems.length === 0) await checkWorld(facts, scheduler)
  return {
    seed,
    problems,
    traceHash: scheduler.trace.hash(),
    trace: scheduler.trace.last(traceLinesMax),
    steps: scheduler.steps(),
    virtualMs: scheduler.now(),
    events: clickhouse.rows.get('events')?.length ?? 0,
  }
}
