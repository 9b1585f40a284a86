// The engine's threads: an array of one-thread Piscina pools. A partition always goes to the same slot, because its decoded
// state lives in that thread. Steps of all partitions of a slot that are asked for in one turn are one task.

import { Piscina } from 'piscina'
import type { IpData } from '../ipintel/addresses.ts'
import { must } from '../lib/must.ts'
import type { Snapshot } from '../rules/snapshot.ts'
import { createDecider, type Decider, type Performed, type Step, type StepResult, type Task } from './decider.ts'
import { type ListFeed, newToldLists, type ToldLists } from './list-feed.ts'
import { type CounterFeed, newToldCounters, noteStep, type ToldCounters } from './velocity/feed.ts'

export interface WorkersConfig {
  readonly threads: number
  readonly partitions: number
  /** Clean visitors kept in memory per partition. */
  readonly visitorsMax: number
  /** A step that takes longer is taken for an endless loop: its thread is ended. */
  readonly stepMsMax: number
  readonly heapMbMax: number
  readonly workerUrl: string
  /** Data about addresses; the object is another one when it has changed. */
  readonly ipData?: () => IpData
}

/** A pool of one thread for each slot. */
export type Threads = readonly Piscina<readonly Step[], readonly Performed[]>[]

export interface Workers {
  readonly decider: Decider
  close(): Promise<void>
}

const YOUNG_MB = 96
const NO_NEWS = { snapshots: [], lists: [] } as const

interface Asked {
  readonly task: Task
  readonly resolve: (result: StepResult) => void
  readonly reject: (error: unknown) => void
}

/** One is performed while the next is gathered and posted: the thread need not wait for us between them. */
const TASKS_POSTED_MAX = 2

interface Slot {
  pool: Threads[number]
  /** Steps that go with the next task. */
  asked: Asked[]
  posted: number
  isScheduled: boolean
  /** Revisions the thread was told, by workspace and environment. */
  readonly told: Map<string, number>
  lists: ToldLists
  toldIpData: IpData | null
  counters: ToldCounters
}

function openPool(config: WorkersConfig): Threads[number] {
  return new Piscina<readonly Step[], readonly Performed[]>({
    filename: config.workerUrl,
    minThreads: 1,
    maxThreads: 1,
    // None ever stands in the pool's own queue.
    concurrentTasksPerWorker: TASKS_POSTED_MAX,
    // Parked on an atomic, a thread takes all steps that wait and answers none before the last of them is done.
    atomics: 'disabled',
    idleTimeout: Number.POSITIVE_INFINITY,
    recordTiming: false,
    // A batch lives for a few milliseconds: in a small young generation much of it would be copied before it dies.
    resourceLimits: { maxOldGenerationSizeMb: config.heapMbMax, maxYoungGenerationSizeMb: YOUNG_MB },
    workerData: { partitions: config.partitions, visitorsMax: config.visitorsMax },
  })
}

/** The threads load while the caller opens other things. Whoever does not hand them to `openWorkers` closes them. */
export const startThreads = (config: WorkersConfig): Threads =>
  Array.from({ length: config.threads }, () => openPool(config))

export const closeThreads = async (threads: Threads): Promise<void> => {
  await Promise.all(threads.map((pool) => pool.close({ force: true })))
}

/** `current` gives every ruleset in force; a slot is told only of those, and of what in lists, changed since it was last told. */
export function openWorkers(
  config: WorkersConfig,
  current: () => readonly Snapshot[],
  listNews: ListFeed['news'] = () => [],
  counterNews: CounterFeed['news'] = () => null,
  threads: Threads = startThreads(config),
): Workers {
  const fresh = (pool: Threads[number]): Slot => ({
    ...{ pool, asked: [], posted: 0, isScheduled: false },
    ...{ told: new Map(), lists: newToldLists(), toldIpData: null },
    counters: newToldCounters(),
  })
  const slots: Slot[] = threads.map(fresh)
  const slotOf = (partition: number) => slots[partition % slots.length] as Slot
  const lastSteps = new Map<number, Promise<unknown>>()

  // A checkpoint taken after the next batch was decided would be ahead of its position: the steps of a partition are taken
  // one by one, in order.
  function perform(task: Task): Promise<StepResult> {
    const last = lastSteps.get(task.partition)
    const result = last === undefined ? performNow(task) : last.then(() => performNow(task))
    const settled = result
      .catch(() => undefined)
      .then(() => {
        if (lastSteps.get(task.partition) === settled) lastSteps.delete(task.partition)
      })
    lastSteps.set(task.partition, settled)
    return result
  }

  function performNow(task: Task): Promise<StepResult> {
    const slot = slotOf(task.partition)
    return new Promise((resolve, reject) => {
      slot.asked.push({ task, resolve, reject })
      schedule(slot)
    })
  }

  function schedule(slot: Slot): void {
    if (slot.isScheduled || slot.asked.length === 0 || slot.posted >= TASKS_POSTED_MAX) return
    slot.isScheduled = true
    setImmediate(() => {
      slot.isScheduled = false
      void post(slot)
    })
  }

  async function post(slot: Slot): Promise<void> {
    const { pool, asked } = slot
    slot.asked = []
    slot.posted++
    // The pool's own way to end a task, a signal, would keep it from posting another one meanwhile.
    const watchdog = setTimeout(() => replace(slot, pool), config.stepMsMax)
    try {
      const transferList = asked.flatMap(({ task }) => (task.do === 'begin' ? [task.batch] : []))
      // What is new goes with the first step that is posted after it, or another partition would decide by the old.
      const told = { snapshots: news(slot), lists: listNews(slot.lists), ...ipNews(slot), ...counted(slot) }
      for (const { task } of asked) noteStep(slot.counters, task)
      const steps = asked.map(({ task }, i): Step => (i === 0 ? { ...task, ...told } : { ...task, ...NO_NEWS }))
      const performed = await pool.run(steps, { transferList })
      const [first] = performed
      if (first !== undefined && 'failed' in first) forgetTold(slot)
      asked.forEach(({ resolve, reject }, i) => {
        const one = must(performed[i], 'an answer for each step')
        if ('failed' in one) reject(one.failed)
        else resolve(one)
      })
    } catch (error) {
      // The thread and what it was told are gone, or cannot be trusted.
      if (slot.pool === pool) forgetTold(slot)
      for (const { reject } of asked) reject(error)
    } finally {
      clearTimeout(watchdog)
      slot.posted--
      schedule(slot)
    }
  }

  /** Ends a thread that hangs; every step it was given fails. */
  function replace(slot: Slot, hanging: Slot['pool']): void {
    if (slot.pool !== hanging) return
    slot.pool = openPool(config)
    forgetTold(slot)
    void hanging.destroy()
  }

  function forgetTold(slot: Slot): void {
    slot.told.clear()
    slot.lists = newToldLists()
    slot.toldIpData = null
    slot.counters = newToldCounters()
  }

  function counted(slot: Slot): Pick<Step, 'counters'> {
    const counters = counterNews(slot.counters)
    return counters === null ? {} : { counters }
  }

  function ipNews(slot: Slot): { readonly ipData?: IpData } {
    const ipData = config.ipData?.() ?? null
    if (ipData === null || ipData === slot.toldIpData) return {}
    slot.toldIpData = ipData
    return { ipData }
  }

  function news({ told }: Slot): Snapshot[] {
    const fresh: Snapshot[] = []
    for (const snapshot of current()) {
      const key = `${snapshot.workspace}/${snapshot.env}`
      if (told.get(key) === snapshot.revision) continue
      told.set(key, snapshot.revision)
      fresh.push(snapshot)
    }
    return fresh
  }

  return {
    decider: createDecider(perform),
    async close() {
      await closeThreads(slots.map(({ pool }) => pool))
    },
  }
}
