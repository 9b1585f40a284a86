// Tells whether every running evaluator decides by a ruleset revision yet, and how long that took.

import type { Bus } from '../bus/bus.ts'
import type { Env } from '../domain/event.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { list, rulesetName } from '../records/evaluators.ts'
import { onHint } from '../records/hints.ts'

const WAIT_MS_MAX = 2_000
const POLL_MS = 100
/** Confirmations remembered between a commit and the question about it. */
const REMEMBERED_MAX = 10_000

export interface PropagationNeeds {
  readonly kv: Pick<Kv, 'scan'>
  readonly bus: Bus
  readonly clock: Clock
  /** Told how long each change took, or was waited for. */
  readonly observe: (ms: number) => void
}

export interface PropagationQuestion {
  readonly workspace: string
  readonly env: Env
  readonly revision: number
  /** Monotonic milliseconds at which the change began. */
  readonly startedAt: number
}

export interface Propagated {
  readonly propagated: boolean
  /** Whole milliseconds since `startedAt`. */
  readonly propagationMs: number
}

export interface Propagation {
  /**
   * Waits up to 2 s for the confirmations of all evaluators registered now. False at once when there is none.
   * Never throws for an unavailable store: what cannot be confirmed is not propagated.
   */
  awaitPropagation(question: PropagationQuestion): Promise<Propagated>
  close(): void
}

export function openPropagation({ kv, bus, clock, observe }: PropagationNeeds): Propagation {
  const confirmed = new Map<string, number>()
  const waiting = new Set<() => void>()

  const unsubscribe = onHint(bus, 'ruleset.confirmed', ({ evaluator, workspace, env, revision }) => {
    remember(`${evaluator} ${rulesetName(workspace, env)}`, revision)
    for (const wake of waiting) wake()
  })

  function remember(name: string, revision: number): void {
    const known = confirmed.get(name) ?? 0
    confirmed.delete(name)
    confirmed.set(name, Math.max(known, revision))
    const oldest = confirmed.keys().next().value
    if (confirmed.size > REMEMBERED_MAX && oldest !== undefined) confirmed.delete(oldest)
  }

  /** Waits for a confirmation of anything, but no longer than `ms`. */
  function nextConfirmation(ms: number): Promise<void> {
    const over = new AbortController()
    const wake = () => over.abort()
    waiting.add(wake)
    return clock.sleep(ms, over.signal).finally(() => waiting.delete(wake))
  }

  return {
    async awaitPropagation({ workspace, env, revision, startedAt }) {
      const name = rulesetName(workspace, env)
      const deadline = clock.monotonic() + WAIT_MS_MAX
      function answer(propagated: boolean): Propagated {
        const tookMs = Math.max(0, clock.monotonic() - startedAt)
        observe(tookMs)
        return { propagated, propagationMs: Math.round(tookMs) }
      }
      const missing = await missingEvaluators(kv, name, revision)
      if (missing === null) return answer(false)
      const isConfirmed = (id: string) => (confirmed.get(`${id} ${name}`) ?? 0) >= revision
      let pollAt = clock.monotonic() + POLL_MS
      while (true) {
        for (const id of missing) if (isConfirmed(id)) missing.delete(id)
        if (missing.size === 0) return answer(true)
        const now = clock.monotonic()
        if (now >= deadline) return answer(false)
        await nextConfirmation(Math.max(1, Math.min(pollAt, deadline) - now))
        if (clock.monotonic() < pollAt) continue
        // A confirmation whose hint was lost is also in the heartbeat; whoever left need not confirm any more.
        const still = await missingEvaluators(kv, name, revision)
        for (const id of missing) if (still !== null && !still.has(id)) missing.delete(id)
        if (missing.size === 0 && still !== null) return answer(true)
        pollAt = clock.monotonic() + POLL_MS
      }
    },
    close: unsubscribe,
  }
}

/** Those whose heartbeat does not show the revision; null when nobody is registered or nobody can tell. */
async function missingEvaluators(kv: Pick<Kv, 'scan'>, name: string, revision: number): Promise<Set<string> | null> {
  try {
    const evaluators = await list(kv)
    if (evaluators.length === 0) return null
    return new Set(evaluators.filter(({ confirmed }) => (confirmed[name] ?? 0) < revision).map(({ id }) => id))
  } catch (error) {
    if (error instanceof Unavailable) return null
    throw error
  }
}
