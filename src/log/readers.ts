// Who waits for records of a partition: for durable ones, or for those that were submitted already. A busy partition wakes its
// readers a thousand times a second, so that a wait has no timer of its own: one, seldom set anew, looks for those whose time is over.

import type { Clock } from '../lib/clock.ts'
import type { ReadLimits } from './log.ts'

export interface Readers {
  /** Ends the waits for what was submitted, or those for what is durable. */
  wake(submitted: boolean): void
  wakeAll(): void
  /** Resolves when woken, after `ms` or when `signal` aborts. */
  wait(limits: Pick<ReadLimits, 'submitted'>, ms: number, signal?: AbortSignal): Promise<void>
}

interface Reader {
  readonly submitted: boolean
  readonly deadlineMs: number
  readonly signal: AbortSignal | undefined
  readonly wake: () => void
}

const NEVER = Number.POSITIVE_INFINITY
/** Waits of seconds end together with what else beats while a process is idle (lib/clock.ts), and with those of other partitions. */
const BEAT_MS = 1_000
const LONG_WAIT_MS_MIN = 1_000
/** Aborting with a reason spares making an error of none. */
const OVER = 'over'
const onBeat = (ms: number): number => Math.ceil(ms / BEAT_MS) * BEAT_MS

export function openReaders(clock: Pick<Clock, 'monotonic' | 'sleep'>): Readers {
  // Few, and another array with each change: a set that lives as long would keep them from the scavenger (D209).
  let waiting: readonly Reader[] = []
  const followed = new WeakSet<AbortSignal>()
  let look: AbortController | null = null
  let lookAtMs = NEVER

  function wakeThose(are: (reader: Reader) => boolean): void {
    const woken = waiting.filter(are)
    if (woken.length === 0) return
    waiting = waiting.filter((reader) => !are(reader))
    for (const { wake } of woken) wake()
  }

  function endLook(): void {
    look?.abort(OVER)
    look = null
    lookAtMs = NEVER
  }

  async function lookAt(ms: number, nowMs: number): Promise<void> {
    endLook()
    const mine = new AbortController()
    look = mine
    lookAtMs = ms
    await clock.sleep(ms - nowMs, mine.signal)
    if (look !== mine) return
    const laterMs = clock.monotonic()
    wakeThose(({ deadlineMs }) => deadlineMs <= laterMs)
    let earliestMs = NEVER
    for (const { deadlineMs } of waiting) earliestMs = Math.min(earliestMs, deadlineMs)
    if (earliestMs === NEVER) endLook()
    else void lookAt(earliestMs, laterMs)
  }

  function follow(signal: AbortSignal): void {
    if (followed.has(signal)) return
    followed.add(signal)
    const wake = () => wakeThose((reader) => reader.signal === signal)
    signal.addEventListener('abort', wake, { once: true })
  }

  return {
    wake: (submitted) => wakeThose((reader) => reader.submitted === submitted),
    wakeAll() {
      wakeThose(() => true)
      endLook()
    },
    wait({ submitted = false }, ms, signal) {
      if (signal?.aborted) return Promise.resolve()
      if (signal !== undefined) follow(signal)
      const nowMs = clock.monotonic()
      const deadlineMs = ms < LONG_WAIT_MS_MIN ? nowMs + ms : onBeat(nowMs + ms)
      if (deadlineMs < lookAtMs) void lookAt(deadlineMs, nowMs)
      return new Promise((wake) => {
        waiting = [...waiting, { submitted, deadlineMs, signal, wake }]
      })
    },
  }
}
