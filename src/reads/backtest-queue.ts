// Who may run a backtest now: one at a time for a workspace and a few at once in this process, each with its time and ended
// when nobody waits for it any more.

import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { GaveUp, openSemaphore, type Semaphore } from '../lib/semaphore.ts'

/** Another backtest of the workspace runs and did not end in time. */
export class WorkspaceBusy extends Error {
  override readonly name = 'WorkspaceBusy'
}

export interface BacktestQueueConfig {
  readonly clock: Pick<Clock, 'sleep'>
  /** How long one waits for the others of its workspace; default 10 000. */
  readonly waitMsMax?: number
  /** For the wait for the others of this process and for the work itself; default 30 000. */
  readonly runMsMax?: number
  /** At once in this process; default 4. */
  readonly runningMax?: number
}

const WAITING_OF_WORKSPACE_MAX = 8
const WAITING_MAX = 256

export interface BacktestQueue {
  /** Fails with WorkspaceBusy, with Unavailable when too many run in this process, or as `work` does. `signal` aborts when nobody waits for the answer. */
  run<T>(workspace: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>
}

export function openBacktestQueue(config: BacktestQueueConfig): BacktestQueue {
  const { clock, waitMsMax = 10_000, runMsMax = 30_000, runningMax = 4 } = config
  const overall = openSemaphore(runningMax, WAITING_MAX)
  const ofWorkspaces = new Map<string, Semaphore>()

  /** Aborts after the time or with the given signal, whichever is first. */
  async function limited<T>(ms: number, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const over = new AbortController()
    const limit = new AbortController()
    const end = () => limit.abort()
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
    void clock.sleep(ms, over.signal).then(() => {
      if (!over.signal.aborted) end()
    })
    try {
      return await work(limit.signal)
    } finally {
      over.abort()
      signal.removeEventListener('abort', end)
    }
  }

  return {
    async run(workspace, signal, work) {
      const turns = ofWorkspaces.get(workspace) ?? openSemaphore(1, WAITING_OF_WORKSPACE_MAX)
      ofWorkspaces.set(workspace, turns)
      let endTurn: () => void
      try {
        endTurn = await limited(waitMsMax, signal, (limit) => turns.take(limit))
      } catch (error) {
        if (error instanceof GaveUp) throw new WorkspaceBusy('another backtest of this workspace runs')
        throw error
      }
      try {
        // One of each workspace waits here, so taking turns is fair to them all.
        return await limited(runMsMax, signal, async (limit) => {
          const endOverall = await overall.take(limit).catch((error: unknown) => {
            throw error instanceof GaveUp ? new Unavailable('too many backtests run') : error
          })
          try {
            return await work(limit)
          } finally {
            endOverall()
          }
        })
      } finally {
        endTurn()
        if (turns.isIdle()) ofWorkspaces.delete(workspace)
      }
    },
  }
}
