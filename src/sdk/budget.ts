// Runs the probes of a page under a deadline, so that a slow or broken one costs its own entry and nothing else.

import type { CollectedComponent, Components } from './types.ts'

export type Probe = {
  name: string
  /** The largest part of the whole budget this probe may take, 0 to 1. Without it the probe always runs, and must not wait. */
  share?: number
  run(): unknown
}

const syncSliceMsMax = 12
const errorCharsMax = 120

/** Resolves as soon as every probe is done, and no later than `budgetMs` plus the longest uninterruptible probe. */
export async function runProbes(probes: readonly Probe[], budgetMs: number): Promise<Components> {
  const deadline = performance.now() + budgetMs
  const pending: Promise<void>[] = []
  const components: Components = {}
  let sliceStart = performance.now()
  for (const probe of probes) {
    // Declared first, so that the order of the entries does not depend on which probe finishes first.
    components[probe.name] = { error: 'timeout' }
    const now = performance.now()
    if (now - sliceStart > syncSliceMsMax) {
      await nextTask()
      sliceStart = performance.now()
    }
    const leftMs = deadline - performance.now()
    if (probe.share !== undefined && leftMs <= 0) continue
    const waitMsMax = Math.min(leftMs, (probe.share ?? 1) * budgetMs)
    pending.push(
      runOne(probe, waitMsMax).then((component) => {
        components[probe.name] = component
      }),
    )
  }
  await Promise.all(pending)
  return components
}

async function runOne(probe: Probe, waitMsMax: number): Promise<CollectedComponent> {
  const start = performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    const answer = probe.run()
    // Timed at once: awaiting a plain value would count the probes that run before the next microtask as well.
    if (!(answer instanceof Promise)) return { value: answer ?? null, ms: elapsedMs(start) }
    const late = new Promise((_, reject) => {
      // One more turn: after a long computation the timer is due together with answers that are already waiting.
      timer = setTimeout(() => waitMs(0).then(() => reject(new Error('timeout'))), waitMsMax)
    })
    return { value: (await Promise.race([answer, late])) ?? null, ms: elapsedMs(start) }
  } catch (error) {
    return { error: describeError(error), ms: elapsedMs(start) }
  } finally {
    clearTimeout(timer)
  }
}

export function describeError(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error)
  return text.slice(0, errorCharsMax) || 'unknown'
}

export function waitMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Settles with the promise, or with `fallback` when it fails or takes longer than `ms`. */
export function within<T>(promise: Promise<T>, ms: number, fallback: T): Promise<T> {
  return Promise.race([promise.catch(() => fallback), waitMs(ms).then(() => fallback)])
}

// A message is not delayed like a nested timer (4 ms and more), and still lets the page paint and handle input.
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel()
    channel.port1.onmessage = () => {
      channel.port1.close()
      resolve()
    }
    channel.port2.postMessage(null)
  })
}

function elapsedMs(start: number): number {
  return Math.round((performance.now() - start) * 10) / 10
}
