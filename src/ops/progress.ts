// How a long command tells how far it has come: a bar on a terminal, a bounded number of plain lines anywhere else.

import type { Clock } from '../lib/clock.ts'

export interface Progress {
  /** Begins a step of `total` units; null: nobody knows how many there will be. */
  begin(what: string, total: number | null): void
  advance(units?: number): void
  /** Ends the step with what came of it. */
  end(outcome: string): void
}

export interface Output {
  readonly isTTY?: boolean
  write(text: string): unknown
}

const REDRAW_MS = 100
const BAR_CHARS = 24
/** Plain lines within a step of known length: at each of these parts of it. */
const PARTS = 4
/** Plain lines within any other step: after this time, and whenever it has taken twice as long as at the last one. */
const FIRST_LINE_MS = 2_000
const BEAT_MS = 1_000

export function openProgress(out: Output, clock: Pick<Clock, 'monotonic'>): Progress {
  const isTerminal = out.isTTY === true
  let what = ''
  let total: number | null = null
  let done = 0
  let drawnAt = Number.NEGATIVE_INFINITY
  let partsTold = 0
  let tellAfterMs = FIRST_LINE_MS
  let beganAt = 0

  function draw(): void {
    const now = clock.monotonic()
    if (now - drawnAt < REDRAW_MS) return
    drawnAt = now
    const share = total === null || total === 0 ? 0 : Math.min(1, done / total)
    const filled = Math.round(share * BAR_CHARS)
    const bar = total === null ? '' : `[${'#'.repeat(filled)}${'.'.repeat(BAR_CHARS - filled)}] `
    out.write(`\r\x1b[2K${what} ${bar}${done}${total === null ? '' : ` of ${total}`}`)
  }

  function tell(): void {
    if (total === null || total < PARTS) {
      const tookMs = clock.monotonic() - beganAt
      if (tookMs < tellAfterMs) return
      while (tellAfterMs <= tookMs) tellAfterMs *= 2
      out.write(`${what}: ${done}${total === null ? '' : ` of ${total}`}\n`)
      return
    }
    const part = Math.floor((done / total) * PARTS)
    if (part <= partsTold || part >= PARTS) return
    partsTold = part
    out.write(`${what}: ${done} of ${total}\n`)
  }

  const show = isTerminal ? draw : tell
  return {
    begin(name, units) {
      what = name
      total = units
      done = 0
      partsTold = 0
      tellAfterMs = FIRST_LINE_MS
      beganAt = clock.monotonic()
      drawnAt = Number.NEGATIVE_INFINITY
      show()
    },
    advance(units = 1) {
      done += units
      show()
    },
    end: (outcome) => void out.write(`${isTerminal ? '\r\x1b[2K' : ''}${what}: ${outcome}\n`),
  }
}

/** Shows the seconds that somebody else's work takes, who tells nothing of it before it is done. */
export async function whileWaiting<T>(
  progress: Progress,
  clock: Pick<Clock, 'sleep'>,
  what: string,
  work: Promise<T>,
): Promise<T> {
  const done = new AbortController()
  progress.begin(`${what}, seconds`, null)
  const beat = async () => {
    for (;;) {
      await clock.sleep(BEAT_MS, done.signal)
      if (done.signal.aborted) return
      progress.advance()
    }
  }
  const beating = beat()
  try {
    const result = await work
    done.abort()
    await beating
    progress.end('done')
    return result
  } catch (error) {
    done.abort()
    await beating
    progress.end('failed')
    throw error
  }
}
