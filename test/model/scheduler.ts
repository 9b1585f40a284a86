// Virtual time: every effect of a port, every answer and every sleep is a step, released one by one in an order that is a
// function of the seed. Between two steps all promises settle, so product code never runs beside itself.

import type { Rng } from '../helpers/rng.ts'

/** The wall clock's time at virtual zero. */
export const EPOCH_MS = Date.UTC(2026, 10, 20)

export interface Step {
  at: number
  tie: number
  /** null: cancelled. */
  run: (() => void) | null
}

export interface Scheduler {
  readonly random: Rng
  /** Milliseconds of virtual time. */
  now(): number
  after(delayMs: number, run: () => void): Step
  /** Releases steps until `done` says so. Rejects when nothing is left to release, or after `stepsMax` steps. */
  run(done: () => boolean, stepsMax: number): Promise<void>
  /** Remembers what happened, for the reader of a failure and for comparing two runs. */
  note(who: string, what: string): void
  readonly trace: Trace
  steps(): number
}

export interface Trace {
  /** Of everything noted so far and when. */
  hash(): number
  /** The newest lines. */
  last(lines: number): string[]
}

/** Immediates queued at once: promises settle between any two of them, and the event loop turns once for all. */
const BURST = 32

function createTrace(linesMax: number) {
  const at = new Float64Array(linesMax)
  const who: string[] = []
  const what: string[] = []
  let count = 0
  let hash = 0x811c9dc5
  const mix = (value: number) => {
    hash = Math.imul(hash ^ value, 0x01000193) >>> 0
  }
  const mixText = (text: string) => {
    for (let i = 0; i < text.length; i++) mix(text.charCodeAt(i))
  }
  return {
    add(now: number, name: string, text: string): void {
      const slot = count++ % linesMax
      at[slot] = now
      who[slot] = name
      what[slot] = text
      mix(Math.floor(now * 1_000) | 0)
      mixText(name)
      mixText(text)
    },
    hash: () => hash,
    last(lines: number): string[] {
      const from = Math.max(0, count - Math.min(lines, linesMax))
      return Array.from({ length: count - from }, (_, i) => {
        const slot = (from + i) % linesMax
        return `${(at[slot] as number).toFixed(3).padStart(12)} ${who[slot]?.padEnd(4)} ${what[slot]}`
      })
    },
  }
}

const before = (a: Step, b: Step): boolean => a.at < b.at || (a.at === b.at && a.tie < b.tie)

export function createScheduler(random: Rng, traceLinesMax: number): Scheduler {
  const heap: Step[] = []
  const trace = createTrace(traceLinesMax)
  let now = 0
  let steps = 0

  function push(step: Step): void {
    let i = heap.length
    heap.push(step)
    while (i > 0) {
      const parent = (i - 1) >> 1
      const above = heap[parent] as Step
      if (!before(step, above)) break
      heap[i] = above
      i = parent
    }
    heap[i] = step
  }

  function pop(): Step | undefined {
    const top = heap[0]
    const last = heap.pop()
    if (top === undefined || last === undefined || heap.length === 0) return top
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && before(heap[child + 1] as Step, heap[child] as Step)) child++
      if (!before(heap[child] as Step, last)) break
      heap[i] = heap[child] as Step
      i = child
    }
    heap[i] = last
    return top
  }

  /** False when nothing is left. */
  function release(): boolean {
    for (;;) {
      const step = pop()
      if (step === undefined) return false
      if (step.run === null) continue
      now = Math.max(now, step.at)
      steps++
      step.run()
      return true
    }
  }

  return {
    random,
    now: () => now,
    steps: () => steps,
    after(delayMs, run) {
      const step = { at: now + delayMs, tie: random.float(), run }
      push(step)
      return step
    },
    run(done, stepsMax) {
      const end = steps + stepsMax
      return new Promise((resolve, reject) => {
        let over = false
        let queued = 0
        const finish = (error: unknown) => {
          over = true
          if (error === null) resolve()
          else reject(error)
        }
        const turn = () => {
          queued--
          if (over) return
          try {
            if (done()) return finish(null)
            if (steps >= end) return finish(new Error(`still busy after ${stepsMax} steps`))
            if (!release()) return finish(new Error('nothing is left to do'))
          } catch (error) {
            return finish(error)
          }
          if (queued === 0) burst()
        }
        const burst = () => {
          for (; queued < BURST; queued++) setImmediate(turn)
        }
        burst()
      })
    },
    note: (who, what) => trace.add(now, who, what),
    trace,
  }
}
