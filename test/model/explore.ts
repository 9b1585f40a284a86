// Running many seeds and telling about the first that fails, for the tests and for the long runs by hand.

import type { Test } from 'tap'
import { runWorld, type WorldOptions, type WorldResult } from './world.ts'

const TRACE_LINES = 60
/** Of a seed, in the mean. */
const EVENTS_MIN = 3

/** Conflicts and outages are everyday here, and nobody reads where they were made. */
const FRAMES = 2

/** Stacks are short until the tests of a file are over. */
export function shortStacks(t: Test): void {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = FRAMES
  t.teardown(() => {
    Error.stackTraceLimit = before
  })
}

/** A failure as its reader needs it: the seed, what failed, and what happened last. */
export function tell({ seed, failures, trace, virtualMs }: WorldResult): string {
  const what = failures.slice(0, 5).map(({ check, detail }) => `  ${check}: ${detail}`)
  return [`seed ${seed} fails after ${Math.round(virtualMs)} virtual ms:`, ...what, ...trace.slice(-TRACE_LINES)].join(
    '\n',
  )
}

export interface Explored {
  readonly seeds: number
  readonly events: number
  readonly steps: number
  readonly failed: readonly WorldResult[]
}

export interface Exploring {
  readonly options?: WorldOptions
  readonly failedMax?: number
  readonly onSeed?: (result: WorldResult) => void
}

/** Runs the seeds in order; stops at the `failedMax`th that fails. */
export async function explore(
  seeds: Iterable<number>,
  { options = {}, failedMax = 1, onSeed = () => undefined }: Exploring = {},
): Promise<Explored> {
  const failed: WorldResult[] = []
  let count = 0
  let events = 0
  let steps = 0
  for (const seed of seeds) {
    const result = await runWorld(seed, {}, options)
    count++
    events += result.events
    steps += result.steps
    onSeed(result)
    if (result.failures.length > 0) failed.push(result)
    if (failed.length >= failedMax) break
  }
  return { seeds: count, events, steps, failed }
}

/** Fails with what the first failing seed did. */
export async function holds(t: Test, first: number, count: number, options: WorldOptions = {}): Promise<void> {
  const startedAt = process.cpuUsage()
  const { seeds, events, steps, failed } = await explore(range(first, count), { options })
  const { user, system } = process.cpuUsage(startedAt)
  t.comment(`${seeds} seeds, ${events} events, ${steps} steps, ${Math.round((user + system) / 1e6)} s of CPU`)
  for (const result of failed) t.fail(tell(result))
  t.equal(seeds, count)
  t.ok(events > count * EVENTS_MIN, 'the deployments did work')
}

export function* range(from: number, count: number, step = 1): Generator<number> {
  for (let i = 0; i < count; i++) yield from + i * step
}
