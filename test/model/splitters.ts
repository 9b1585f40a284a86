// Those who find that some events of a visitor were another device's, now and then twice at once or of what was split off before,
// while the devices go on visiting.

import { ApiError } from '../../src/domain/errors.ts'
import type { Env } from '../../src/domain/event.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { Rng } from '../helpers/rng.ts'
import { type Answered, visitorIdOf } from './clients.ts'
import type { Changed } from './operators.ts'
import type { ModelProcess, SplitTold } from './process.ts'
import type { Scheduler } from './scheduler.ts'
import type { Problem } from './watch.ts'

export interface Splitters {
  plan(count: number, ms: number): void
  /** Splits whose asker waits. */
  open(): number
}

export interface SplittersNeeds {
  readonly scheduler: Scheduler
  /** Of its own, so that runs without splits do not depend on there being any elsewhere. */
  readonly random: Rng
  readonly ready: () => readonly ModelProcess[]
  readonly answers: () => readonly Answered[]
  readonly onChange: (changed: Changed) => void
  /** Every read shows it from now on. */
  readonly onSplit: (told: SplitTold) => void
  readonly problem: Problem
}

const ANSWER_MS_MAX = 16_000
const AGAIN = 0.5
const APART_MS_MAX = 300
const EVENTS_MAX = 4

export function createSplitters(needs: SplittersNeeds): Splitters {
  const { scheduler, random, ready, answers, onChange, onSplit, problem } = needs
  let open = 0

  /** Some events of one visitor, as it was told. */
  function drawEvents(): { env: Env; requestIds: readonly string[] } | null {
    const known = answers().filter(({ status, requestId }) => status === 200 && requestId !== null)
    if (known.length === 0) return null
    const { ask, body } = random.pick(known)
    const visitorId = visitorIdOf({ body })
    const its = known.filter((other) => other.ask.env === ask.env && visitorIdOf(other) === visitorId)
    const ids = [...new Set(its.map(({ requestId }) => requestId as string))]
    const count = 1 + random.int(Math.min(EVENTS_MAX, ids.length))
    const from = random.int(ids.length - count + 1)
    return { env: ask.env, requestIds: ids.slice(from, from + count) }
  }

  function split(env: Env, requestIds: readonly string[]): void {
    const processes = ready()
    if (processes.length === 0) return
    const by = random.pick(processes)
    let over = false
    open++
    const told = (result: SplitTold | null) => {
      if (over) return
      over = true
      open--
      scheduler.note('http', `${requestIds.join()} split off: ${result?.outcome.ok ?? 'unknown'} ${result?.isShown}`)
      if (result === null) return
      onChange({ draft: result.draft, outcome: result.outcome, propagated: false, at: scheduler.now() })
      if (result.isShown) onSplit(result)
    }
    by.host.step(0, () => {
      by.split(env, requestIds).then(told, (error) => {
        if (!(error instanceof ApiError || error instanceof Unavailable)) problem('no role fails', `split: ${error}`)
        told(null)
      })
    })
    scheduler.after(ANSWER_MS_MAX, () => told(null))
  }

  function splitSome(): void {
    const drawn = drawEvents()
    if (drawn === null) return
    const { env, requestIds } = drawn
    split(env, requestIds)
    if (!random.chance(AGAIN)) return
    const again = random.chance(0.5) ? requestIds : requestIds.slice(random.int(requestIds.length))
    scheduler.after(random.pick([0, random.float() * APART_MS_MAX * 4]), () => split(env, again))
  }

  return {
    plan(count, ms) {
      for (let i = 0; i < count; i++) scheduler.after(random.float() * ms, splitSome)
    },
    open: () => open,
  }
}
