// Where port calls and sleeps of one model process go: through the scheduler with faults, or straight through for the
// contract suites.

import type { Clock } from '../../src/lib/clock.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { Full, Unavailable } from '../../src/lib/failures.ts'
import { EPOCH_MS, type Scheduler } from './scheduler.ts'

/** Somebody waits for a record; `wake` may be called any number of times. */
export interface Waiter {
  woken: boolean
  wake: () => void
}
export function createWaiter(): Waiter {
  const waiter: Waiter = {
    woken: false,
    wake: () => {
      waiter.woken = true
    },
  }
  return waiter
}

export interface CallOptions {
  /** Running the effect a second time and answering with the second result is something the real world does. */
  readonly twice?: boolean
  /** What may be left of an effect that did not happen. */
  readonly torn?: () => void
  /** The port may say that it has no room. */
  readonly full?: boolean
}

export interface Host {
  call<T>(label: string, effect: () => T, options?: CallOptions): Promise<T>
  /** Resolves after `ms`, when `signal` aborts, or some time after `waiter` was woken. */
  wait(ms: number, signal: AbortSignal | undefined, waiter: Waiter | null): Promise<void>
  /** Delivers a message of the bus to this process, after all earlier ones. */
  post(deliver: () => void): void
  readonly clock: Clock
}

export interface Faults {
  /** Probabilities per call. */
  before: number
  after: number
  twice: number
  /** Of a message. */
  lost: number
  repeated: number
  /** Of a step: the thread dies. */
  thread: number
  /** Of a call that is slow, and how slow at most. */
  slow: number
  slowMsMax: number
}
export const NO_FAULTS: Faults = {
  before: 0,
  after: 0,
  twice: 0,
  lost: 0,
  repeated: 0,
  thread: 0,
  slow: 0,
  slowMsMax: 0,
}

export interface SimHost extends Host {
  readonly name: string
  readonly faults: () => Faults
  alive(): boolean
  /** Nothing of it ever runs again; what it has asked of a port may still happen unless `takingAlong`. */
  kill(takingAlong: boolean): void
  onKill(act: () => void): void
  pause(ms: number): void
  /** Virtual milliseconds until which it is paused. */
  pausedUntil(): number
  /** How long something takes this time. */
  latency(): number
  /** Runs a step of this process: not while it is paused, never when it is dead. */
  step(delayMs: number, run: () => void): void
  note(what: string): void
}

/** Runs what waits for the end of a signal, in the order it came; one listener serves all. */
function createAborts() {
  const waiting = new WeakMap<AbortSignal, Set<() => void>>()
  return (signal: AbortSignal): Set<() => void> => {
    let found = waiting.get(signal)
    if (found !== undefined) return found
    const those = new Set<() => void>()
    found = those
    waiting.set(signal, those)
    signal.addEventListener('abort', () => {
      for (const done of those) done()
    })
    return those
  }
}

/** `within`: it is a thread of that process, which dies and is paused with it. */
export function createSimHost(
  name: string,
  scheduler: Scheduler,
  faults: () => Faults,
  skewMs: number,
  within: SimHost | null = null,
): SimHost {
  const { random } = scheduler
  const onAbort = createAborts()
  const onKill: (() => void)[] = []
  let lives = true
  let lateEffects = true
  let ownPauseUntil = 0
  let postedUntil = 0

  const alive = () => lives && (within?.alive() ?? true)
  const pausedUntil = () => Math.max(ownPauseUntil, within?.pausedUntil() ?? 0)

  function latency(): number {
    const x = random.float()
    if (x < 0.5) return 0
    const { slow, slowMsMax } = faults()
    if (x > 1 - slow) return random.float() * slowMsMax
    return x < 0.9 ? x * 2 : x * 20
  }

  function deliver(run: () => void): void {
    if (!alive()) return
    const until = pausedUntil()
    if (until > scheduler.now()) scheduler.after(until - scheduler.now(), () => deliver(run))
    else run()
  }
  const step = (delayMs: number, run: () => void) => void scheduler.after(delayMs, () => deliver(run))

  function call<T>(label: string, effect: () => T, options: CallOptions = {}): Promise<T> {
    if (!alive()) return new Promise(() => undefined)
    const { before, after, twice } = faults()
    const draw = random.float()
    return new Promise((resolve, reject) => {
      const perform = () => {
        if (!alive() && !lateEffects) return
        const refuse = (error: Error) => {
          scheduler.note(name, `${label} ! ${error.message}`)
          step(latency(), () => reject(error))
        }
        if (draw < before) {
          const full = options.full === true && draw < before / 4
          if (draw > before / 2) options.torn?.()
          return refuse(full ? new Full('no room') : new Unavailable('not done'))
        }
        try {
          let result = effect()
          if (options.twice === true && draw > 1 - twice) {
            scheduler.note(name, `${label} twice`)
            result = effect()
          }
          if (draw < before + after) return refuse(new Unavailable('done, but nobody knows'))
          scheduler.note(name, label)
          step(latency(), () => resolve(result))
        } catch (error) {
          refuse(error as Error)
        }
      }
      const delay = latency()
      if (delay === 0 && draw < 0.5) perform()
      else scheduler.after(delay, perform)
    })
  }

  function wait(ms: number, signal: AbortSignal | undefined, waiter: Waiter | null): Promise<void> {
    if (!alive()) return new Promise(() => undefined)
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const aborts = signal === undefined ? null : onAbort(signal)
      let over = false
      const done = () => {
        if (over) return
        over = true
        timer.run = null
        aborts?.delete(done)
        resolve()
      }
      const timer = scheduler.after(ms, () => deliver(done))
      aborts?.add(done)
      if (waiter === null) return
      waiter.wake = () => {
        if (!waiter.woken) step(latency(), done)
        waiter.woken = true
      }
      if (waiter.woken) step(0, done)
    })
  }

  return {
    name,
    faults,
    alive,
    pausedUntil,
    latency,
    onKill: (act) => void onKill.push(act),
    kill(takingAlong) {
      lives = false
      for (const act of onKill.splice(0)) act()
      lateEffects = !takingAlong
    },
    pause(ms) {
      ownPauseUntil = Math.max(ownPauseUntil, scheduler.now() + ms)
    },
    step,
    note: (what) => scheduler.note(name, what),
    call,
    wait,
    post(run) {
      const { lost, repeated } = faults()
      const draw = random.float()
      if (draw < lost) return
      const deliveries = draw > 1 - repeated ? 2 : 1
      for (let i = 0; i < deliveries; i++) {
        // In order, as the bus promises, but never on the publisher's stack.
        postedUntil = Math.max(postedUntil + 1e-6, scheduler.now() + latency())
        step(postedUntil - scheduler.now(), run)
      }
    },
    clock: {
      now: () => Math.floor(EPOCH_MS + scheduler.now() + skewMs),
      monotonic: () => scheduler.now(),
      sleep: (ms, signal) => wait(ms, signal, null),
    },
  }
}

/** Straight through, in real time. */
export function createDirectHost(): Host {
  return {
    async call(_label, effect) {
      return effect()
    },
    async wait(ms, signal, waiter) {
      const over = new AbortController()
      const stop = () => over.abort()
      signal?.addEventListener('abort', stop)
      if (signal?.aborted || waiter?.woken) stop()
      if (waiter !== null) waiter.wake = stop
      await systemClock.sleep(ms, over.signal)
      signal?.removeEventListener('abort', stop)
    },
    post: (deliver) => void setImmediate(deliver),
    clock: systemClock,
  }
}
