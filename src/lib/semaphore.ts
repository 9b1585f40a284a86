// Taking turns: a few at once, first come first served, and whoever no longer wants to wait leaves the queue.

export class GaveUp extends Error {
  override readonly name = 'GaveUp'
}

export interface Semaphore {
  /** Resolves with what ends the turn. Fails with GaveUp when `signal` aborts first, or when too many wait. */
  take(signal: AbortSignal): Promise<() => void>
  /** Takes a turn for the work, however long that has to wait. Fails with GaveUp when too many do, and as the work does. */
  run<T>(work: () => Promise<T>): Promise<T>
  /** Nobody has a turn or waits for one. */
  isIdle(): boolean
}

export function openSemaphore(runningMax: number, waitingMax: number): Semaphore {
  const waiting = new Set<() => void>()
  let running = 0

  function end(): void {
    const [next] = waiting
    if (next === undefined) running -= 1
    else {
      waiting.delete(next)
      next()
    }
  }

  /** Ending twice must not end somebody else's turn. */
  function once(): () => void {
    let ended = false
    return () => {
      if (ended) return
      ended = true
      end()
    }
  }

  async function take(signal: AbortSignal | null): Promise<() => void> {
    if (signal?.aborted) throw new GaveUp('no longer wanted')
    if (running < runningMax) {
      running += 1
      return once()
    }
    if (waiting.size >= waitingMax) throw new GaveUp('too many wait')
    return new Promise((resolve, reject) => {
      const start = () => {
        signal?.removeEventListener('abort', leave)
        resolve(once())
      }
      const leave = () => {
        waiting.delete(start)
        reject(new GaveUp('no longer wanted'))
      }
      waiting.add(start)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }

  return {
    take,
    async run(work) {
      const end = await take(null)
      try {
        return await work()
      } finally {
        end()
      }
    },
    isIdle: () => running === 0 && waiting.size === 0,
  }
}
