// Those who read a visitor soon after somebody was told of it: a state that is said to be fresh has every visit that was answered before.

import type { Env } from '../../src/domain/event.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { Rng } from '../helpers/rng.ts'
import { type Answered, visitorIdOf } from './clients.ts'
import type { DecidedSoFar } from './decided.ts'
import type { ModelProcess } from './process.ts'
import type { Scheduler } from './scheduler.ts'
import type { Problem } from './watch.ts'

export interface ReadersNeeds {
  readonly scheduler: Scheduler
  /** Of its own, so that runs without readers do not depend on there being any elsewhere. */
  readonly random: Rng
  readonly ready: () => readonly ModelProcess[]
  readonly answers: () => readonly Answered[]
  readonly decided: Pick<DecidedSoFar, 'eventsOf'>
  readonly problem: Problem
}

const DELAY_MS_MAX = 1_500

export interface Readers {
  /** Has the visitor read, at once or later. */
  onAnswer(answered: Answered): void
}

export function createReaders({ scheduler, random, ready, answers, decided, problem }: ReadersNeeds): Readers {
  /** Visits that clients know of; an event that could not be evaluated is none. */
  function toldOf(env: Env, visitorId: string): number {
    const visits = new Set<string>()
    for (const { ask, status, body, requestId } of answers()) {
      if (status !== 200 || requestId === null || ask.env !== env || visitorIdOf({ body }) !== visitorId) continue
      if (decided.eventsOf(requestId).some(({ item }) => item.state.length > 0)) visits.add(requestId)
    }
    return visits.size
  }

  async function read(env: Env, visitorId: string): Promise<void> {
    const processes = ready()
    if (processes.length === 0) return
    const told = toldOf(env, visitorId)
    try {
      const visits = await random.pick(processes).visitsOf(env, visitorId)
      if (visits !== null && visits < told)
        problem('a fresh state has what was answered before', `${visitorId}: ${visits} of ${told} visits`)
    } catch (error) {
      if (!(error instanceof Unavailable)) problem('a fresh state can be read', String(error))
    }
  }

  return {
    onAnswer({ ask, status, body }) {
      if (status !== 200) return
      scheduler.after(random.float() * DELAY_MS_MAX, () => void read(ask.env, visitorIdOf({ body })))
    },
  }
}
