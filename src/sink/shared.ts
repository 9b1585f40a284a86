// One loop for partitions that come and go.

/** Works on partitions until the signal aborts; never rejects. */
export type Step = (partitions: readonly number[], signal: AbortSignal) => Promise<void>
/** Resolves when `signal` has aborted and no step has the partition any more. */
export type Hold = (partition: number, signal: AbortSignal) => Promise<void>

interface Held {
  readonly signal: AbortSignal
  readonly leave: () => void
}

/** Calls `step` over and over with the partitions that are held; its signal aborts when one of them is to be given up. */
export function openShared(step: Step): Hold {
  const held = new Map<number, Held>()
  let leaving = new AbortController()
  let isRunning = false

  async function run(): Promise<void> {
    isRunning = true
    // Whoever comes in the same turn is there from the first step on.
    await Promise.resolve()
    for (;;) {
      for (const [partition, { signal, leave }] of held) {
        if (!signal.aborted) continue
        held.delete(partition)
        leave()
      }
      if (held.size === 0) break
      leaving = new AbortController()
      await step(
        [...held.keys()].sort((a, b) => a - b),
        leaving.signal,
      )
    }
    isRunning = false
  }

  return (partition, signal) =>
    new Promise((leave) => {
      held.set(partition, { signal, leave })
      signal.addEventListener('abort', () => leaving.abort(), { once: true })
      if (!isRunning) void run()
    })
}
