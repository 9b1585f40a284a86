// One run of a seed: a deployment, its clients and its operators, faults while it works, then quiet until nothing changes,
// then the checks.

import type { Kv } from '../../src/kv/kv.ts'
import { UNSORTED_COLLECTIONS } from '../../src/records/partitions.ts'
import { rng } from '../helpers/rng.ts'
import { createChaos, drawFaults } from './chaos.ts'
import { namesOf } from './check-erasures.ts'
import { checkWorld } from './checks.ts'
import { type Answered, createClients } from './clients.ts'
import { openDecided } from './decided.ts'
import { createDeployment, PARTITIONS } from './deployment.ts'
import { bindEmbeddedLog } from './embedded-log.ts'
import { createErasers, type Erased } from './erasers.ts'
import { createExemptions } from './exempt.ts'
import { withHealing } from './healers.ts'
import { createSimHost, NO_FAULTS } from './host.ts'
import { createMergers } from './mergers.ts'
import { bindClickHouse } from './model-clickhouse.ts'
import { bindKv } from './model-kv.ts'
import { type Changed, createOperators } from './operators.ts'
import { bindBus, bindLog } from './ports.ts'
import { type ModelProcess, type SplitTold, startProcess, type Tamper } from './process.ts'
import { createReaders } from './readers.ts'
import { createScheduler } from './scheduler.ts'
import { createSplitters } from './splitters.ts'
import { unfinished } from './unfinished.ts'
import { createWatch, watchTrims } from './watch.ts'

export interface Failure {
  readonly check: string
  readonly detail: string
}

export interface WorldResult {
  readonly seed: number
  readonly failures: readonly Failure[]
  /** Equal for two runs exactly when they did the same. */
  readonly traceHash: number
  readonly trace: readonly string[]
  readonly steps: number
  readonly virtualMs: number
  readonly events: number
}

const STEPS_MAX = 80_000
/** While somebody sleeps, up to 100 s, four others may look for work all the time: that is not unrest. */
const ASLEEP_STEPS_MAX = 400_000
const CLOCK_SKEW_MS = 40
/** For whoever is still on the way to do something twice. */
const AFTERMATH_MS = 400
const NOTICE_LOSS_MS = 3_000
/** Share of the runs in which visitors are erased, and what tells their dice from the others. */
const ERASING = 0.4
const ERASERS = 0x5eed_e4a5
const MERGERS = 0x5eed_3e46
const SPLITTERS = 0x5b17
const MOVERS = 0x30e4
const CRASHES = 0xc4a5
const SHARING = 0x9409
const THREADS = 0x5a4d
const READERS = 0x4ead
const READS_AFTER_ERASURE_MS = 5_000

export interface WorldOptions {
  /** Visitors are erased in every run, not only in some. */
  readonly erasing?: boolean
  /** A partition of the log is lost with all it holds, and nobody is erased. */
  readonly losesStream?: boolean
  /** Visitors are merged; of their own accord nobody is erased then. */
  readonly merging?: boolean
  /** The engine finds visitors to be one device. */
  readonly healing?: boolean
  /** Events of visitors are split off; not said: where visitors are merged and nobody is erased. */
  readonly splitting?: boolean
  /** ClickHouse crashes in the middle of inserts. */
  readonly crashing?: boolean
  /** Devices are now here, now there. */
  readonly moving?: boolean
  /** Rules put visitors on a list. */
  readonly lists?: boolean
  /** Visitors are read once they are known, and nobody is erased. */
  readonly reading?: boolean
  /** A process that is alone accepts and decides in a thread of its own, which dies by itself. */
  readonly sharded?: boolean
  /** And what arrives at the process is handed over to that thread. */
  readonly handing?: boolean
  /** There are two such threads, and partitions move from one to the other. */
  readonly spreading?: boolean
  /** Owners store what they adopt in parts, and wait for checkpoints: a commit is full with the changes of few visits. */
  readonly portions?: boolean
  /** After as many steps without peace nobody waits for it any more. */
  readonly stepsMax?: number
  /** How many of the newest lines of what happened are kept. */
  readonly traceLinesMax?: number
}

/** `given` breaks the protocol on purpose. */
export async function runWorld(seed: number, given: Tamper = {}, options: WorldOptions = {}): Promise<WorldResult> {
  const { erasing = false, losesStream = false, lists = false, merging = false, moving = false } = options
  const { crashing = false, sharded = false, handing = false, healing = false, portions = false } = options
  const { spreading = false, reading = false } = options
  const tamper = healing ? withHealing(given) : given
  const { splitting = merging && !erasing, stepsMax = STEPS_MAX, traceLinesMax = 200 } = options
  const random = rng(seed)
  const scheduler = createScheduler(random, traceLinesMax)
  const failures: Failure[] = []
  const problem = (check: string, detail: string) => {
    scheduler.note('FAIL', `${check}: ${detail}`)
    failures.push({ check, detail })
  }
  const erasersRandom = rng(seed ^ ERASERS)
  const erasures =
    !losesStream && !reading && (erasing || (!merging && erasersRandom.chance(ERASING))) ? 1 + erasersRandom.int(4) : 0
  const deployment = await createDeployment(scheduler, { lists, gapless: sharded })
  const { log, kv, clickhouse, bus, raw, workspace, gap } = deployment
  const alone = random.chance(0.4) || sharded
  /** Scopes lie on one server, which loses all of them or none. */
  const sharing = !losesStream && rng(seed ^ SHARING).chance(0.5)
  const keepMs = 1_000 + random.int(6_000)
  const flushMs = random.pick([100, 300, 1_000])
  const threads = 1 + random.int(2)
  const stormy = drawFaults(scheduler)
  let faults = stormy
  const crashes = crashing ? rng(seed ^ CRASHES) : null
  const answers: Answered[] = []
  const erased: Erased[] = []
  const changes: Changed[] = []
  const processes: ModelProcess[] = []
  const alive = () => processes.filter(({ host }) => host.alive())
  const ready = () => processes.filter((p) => p.ready())
  const decided = openDecided(log)
  const exempt = createExemptions(() => chaos.lostStream(), decided)
  const watch = createWatch(deployment, decided, exempt.isRequest, problem)
  watchTrims(deployment, scheduler, keepMs, problem)

  const logged = new Set<string>()
  const kvOf = ({ commitTogether, ...kv }: Kv): Kv => (sharing && commitTogether ? { ...kv, commitTogether } : kv)

  function start(): void {
    const name = `p${processes.length}`
    const skewMs = random.int(2 * CLOCK_SKEW_MS) - CLOCK_SKEW_MS
    const host = createSimHost(name, scheduler, () => faults, skewMs)
    scheduler.note(name, 'starts')
    const ports = {
      log: alone ? bindEmbeddedLog(log, host, name, gap) : bindLog(log, host, name, gap),
      kv: kvOf(bindKv(kv, host, UNSORTED_COLLECTIONS)),
      bus: bindBus(bus, host, (error) => problem('no receiver fails', String(error))),
      clickhouse: bindClickHouse(clickhouse, host, () => (faults === NO_FAULTS ? null : crashes)),
    }
    const thread = (threadName: string) => {
      const itsHost = createSimHost(threadName, scheduler, () => faults, skewMs, host)
      return { host: itsHost, bus: bindBus(bus, itsHost, (error) => problem('no receiver fails', String(error))) }
    }
    const process = startProcess({
      host,
      ports,
      thread: sharded ? thread : null,
      handing,
      spreading,
      raw,
      tamper,
      seed: random.int(2 ** 31),
      partitions: PARTITIONS,
      threads,
      ...(portions ? { bounds: { entriesMax: 12, adoptRecordsMax: 2 } } : {}),
      keepMs,
      flushMs,
      workspace,
      onReply([reply], reads) {
        if (reply !== undefined) queueMicrotask(() => void watch.onReply(reply.requestId, reply.body, reads))
      },
      onRuleLogs: (lines) => {
        for (const { requestId } of lines) logged.add(requestId)
      },
      onFailure: (role, error) => problem('no role fails', `${name} ${role}: ${(error as Error).stack}`),
    })
    processes.push(process)
    if (alone) for (let i = 1; i <= 5; i++) scheduler.after(random.float() * i * 100, () => readAgain(process))
  }

  /** Other processes may not know of the latest events: only one that is alone promises to find everything. */
  function readAgain(process: ModelProcess): void {
    if (!process.ready() || chaos.lostPartition() !== null) return
    for (const answered of answers.slice(-8)) void watch.onRead(answered, process.readsNow.events)
  }

  function onAnswer(answered: Answered): void {
    answers.push(answered)
    if (reading) readers.onAnswer(answered)
    if (!alone) return
    void watch.onRead(answered, answered.by.readsNow.events)
    if (random.chance(0.2)) scheduler.after(random.float() * 4_000, () => ready().map(readAgain))
  }

  function onErased(one: Erased): void {
    erased.push(one)
    // Whoever is merged with it names it until it is erased as well, and whom it was split off until its owner hears of the erasure:
    // both come later than the answer, and what is left at the end is checked there.
    for (const name of merging || splitting || healing ? [] : namesOf(kv, one.visitorId))
      problem('no record names an erased visitor when that is answered', `${one.visitorId}: ${name}`)
    const readByAll = () => {
      for (const process of ready()) {
        void watch.onErased(one, process.readsNow)
        void watch.onErased(one, process.reads)
      }
    }
    readByAll()
    for (let i = 0; i < 2; i++) scheduler.after(erasersRandom.float() * READS_AFTER_ERASURE_MS, readByAll)
  }

  const clients = createClients({
    scheduler,
    ready,
    onAnswer,
    killers: random.chance(0.08) ? 0.1 : 0,
    badRows: random.chance(0.05) ? 0.1 : 0,
    moving: moving ? rng(seed ^ MOVERS) : null,
  })
  const operators = createOperators(scheduler, ready, (changed) => changes.push(changed))
  const chaos = createChaos({
    scheduler,
    deployment,
    alive,
    start,
    alone,
    sharing,
    losesStream,
    threads: sharded ? rng(seed ^ THREADS) : null,
  })
  const readers = createReaders({
    ...{ scheduler, ready, decided, problem },
    random: rng(seed ^ READERS),
    answers: () => answers,
  })
  const mergersRandom = rng(seed ^ MERGERS)
  const onChange = (changed: Changed) => changes.push(changed)
  const mergers = createMergers({ scheduler, random: mergersRandom, ready, answers: () => answers, onChange })
  const splittersRandom = rng(seed ^ SPLITTERS)
  const onSplit = (told: SplitTold) => {
    const readByAll = () => {
      for (const process of ready()) {
        void watch.onSplit(told, process.readsNow)
        void watch.onSplit(told, process.reads)
      }
    }
    readByAll()
    scheduler.after(splittersRandom.float() * READS_AFTER_ERASURE_MS, readByAll)
  }
  const splitters = createSplitters({
    scheduler,
    random: splittersRandom,
    ready,
    answers: () => answers,
    onChange,
    onSplit,
    problem,
  })
  const erasers = createErasers({ scheduler, random: erasersRandom, ready, answers: () => answers, onErased, problem })

  /** What is still to be done; null: nothing. */
  function unsettled(): string | null {
    if (clients.open() > 0) return `${clients.open()} clients wait`
    if (operators.open() > 0) return 'operators wait'
    if (erasers.open() > 0) return 'erasures wait'
    if (mergers.open() > 0) return 'merges wait'
    if (splitters.open() > 0) return 'splits wait'
    if (chaos.moving() > 0 || ready().length === 0 || ready().length < alive().length) return 'processes start or stop'
    const left = unfinished(deployment, exempt, chaos.lostPartition())
    if (left !== null) return left
    // Two processes keep taking partitions from each other.
    if (alone && chaos.lostPartition() === null && !ready().every((p) => p.complete())) return 'reads refuse'
    return null
  }

  async function settle(): Promise<void> {
    let looks = 0
    await scheduler.run(() => ++looks % 16 === 0 && unsettled() === null, stepsMax)
  }

  /** What came behind its back a thread knows when it starts or is refused. */
  async function startThreadsAnew(): Promise<void> {
    await scheduler.run(() => ready().length > 0 && ready().length === alive().length, stepsMax)
    for (const process of alive()) for (const shard of process.shards()) shard.kill(true)
  }

  async function live(): Promise<void> {
    start()
    if (!alone) start()
    const activeMs = 500 + random.int(4_000)
    clients.plan(random.chance(0.75) ? 5 + random.int(10) : 20 + random.int(31), activeMs)
    operators.plan(random.int(4), activeMs)
    chaos.plan(activeMs)
    erasers.plan(erasures, activeMs)
    if (merging) mergers.plan(1 + mergersRandom.int(4), activeMs)
    if (splitting) splitters.plan(1 + splittersRandom.int(3), activeMs)
    await scheduler.run(() => scheduler.now() >= Math.max(activeMs, chaos.asleepUntil()), ASLEEP_STEPS_MAX)

    scheduler.note('all', 'quiet from now on')
    faults = NO_FAULTS
    // An owner that had the partition before may not look; one that takes it must.
    if (chaos.lostPartition() !== null) for (const { host } of alive()) host.kill(true)
    if (alive().length === 0 && chaos.moving() === 0) start()
    if (sharded) await startThreadsAnew()
    await settle()
    const end = scheduler.now() + (chaos.lostPartition() === null ? AFTERMATH_MS : NOTICE_LOSS_MS)
    await scheduler.run(() => scheduler.now() >= end, stepsMax)
    await settle()
    await stopAll()
    // What was under way when nobody waited any more may have come behind the last decisions.
    while (unfinished(deployment, exempt, chaos.lostPartition()) !== null) {
      for (const { host } of alive()) host.kill(true)
      start()
      await settle()
      await stopAll()
    }
  }

  async function stopAll(): Promise<void> {
    let stopped = 0
    const last = alive()
    for (const p of last) void p.stop().then(() => stopped++)
    await scheduler.run(() => stopped === last.length, stepsMax)
  }

  try {
    await live()
  } catch (error) {
    problem('everything comes to rest', `${(error as Error).message}: ${unsettled()}`)
  }
  const lostPartition = chaos.lostPartition()
  if (failures.length === 0)
    await checkWorld(
      {
        ...deployment,
        answers,
        changes,
        erased,
        processes,
        sharded,
        lostPartition,
        decided,
        logged,
        exempt,
        healing,
        problem,
      },
      scheduler,
    )
  return {
    seed,
    failures,
    traceHash: scheduler.trace.hash(),
    trace: scheduler.trace.last(traceLinesMax),
    steps: scheduler.steps(),
    virtualMs: scheduler.now(),
    events: clickhouse.rows.get('events')?.length ?? 0,
  }
}
