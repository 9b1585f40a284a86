// Those who have visitors erased: of a visitor that somebody was told about, now and then twice at once, while its device
// goes on visiting with the token it has.

import { ApiError } from '../../src/domain/errors.ts'
import type { Env } from '../../src/domain/event.ts'
import type { ErasedVisitor } from '../../src/ingress/erase.ts'
import type { Rng } from '../helpers/rng.ts'
import { type Answered, visitorIdOf } from './clients.ts'
import type { ModelProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'
import type { Problem } from './watch.ts'

/** An erasure that was answered. */
export interface Erased extends ErasedVisitor {
  readonly env: Env
}

export interface Erasers {
  plan(count: number, ms: number): void
  /** Erasures whose asker waits. */
  open(): number
}

export interface ErasersNeeds {
  readonly scheduler: Scheduler
  /** Of its own, so that runs without erasures do not depend on there being any elsewhere. */
  readonly random: Rng
  readonly ready: () => readonly ModelProcess[]
  readonly answers: () => readonly Answered[]
  readonly onErased: (erased: Erased) => void
  readonly problem: Problem
}

const ANSWER_MS_MAX = 9_000
/** The visitors of the latest answers are the ones with visits on the way. */
const LATEST = 6
const TWICE = 0.3
const APART_MS_MAX = 300

export function createErasers({ scheduler, random, ready, answers, onErased, problem }: ErasersNeeds): Erasers {
  let open = 0

  function drawVisitor(): Pick<Erased, 'env' | 'visitorId'> | null {
    const known = answers().filter(({ status }) => status === 200)
    if (known.length === 0) return null
    const { ask, body } = random.pick(random.chance(0.7) ? known.slice(-LATEST) : known)
    return { env: ask.env, visitorId: visitorIdOf({ body }) }
  }

  function erase({ env, visitorId }: Pick<Erased, 'env' | 'visitorId'>): void {
    const processes = ready()
    if (processes.length === 0) return
    const by = random.pick(processes)
    open++
    let over = false
    const told = (all: readonly ErasedVisitor[] | null) => {
      if (over) return
      over = true
      timer.run = null
      open--
      scheduler.note('http', `${visitorId} ${all === null ? 'perhaps' : 'is'} erased`)
      for (const one of all ?? []) onErased({ env, ...one })
    }
    const timer = scheduler.after(ANSWER_MS_MAX, () => told(null))
    by.host.step(random.float() * 2, () => {
      by.erase(env, visitorId).then(told, (error) => {
        if (!(error instanceof ApiError) || error.code !== 'unavailable') problem('no role fails', `erase: ${error}`)
        told(null)
      })
    })
  }

  function eraseSome(): void {
    const visitor = drawVisitor()
    if (visitor === null) return
    erase(visitor)
    if (random.chance(TWICE)) scheduler.after(random.pick([0, random.float() * APART_MS_MAX]), () => erase(visitor))
  }

  return {
    plan(count, ms) {
      for (let i = 0; i < count; i++) scheduler.after(random.float() * ms, eraseSome)
    },
    open: () => open,
  }
}
