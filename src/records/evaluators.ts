// Who decides by rules right now: each evaluator keeps a heartbeat that also says which revisions it has loaded.

import type { Env } from '../domain/event.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { SYSTEM, scanAll } from './scopes.ts'

const EVALUATOR = 'evaluator'
/** An evaluator that has not been heard of for this long does not count. */
const EVALUATOR_TTL_MS = 10_000
/** Only the newest confirmations fit a heartbeat; older ones have long been answered. */
const CONFIRMATIONS_MAX = 4_096

export const rulesetName = (workspace: string, env: Env): string => `${workspace}/${env}`

export interface Evaluator {
  readonly id: string
  /** Revision by `rulesetName`. */
  readonly confirmed: Readonly<Record<string, number>>
}

const keyOf = (id: string): KvKey => [EVALUATOR, id]

/**
 * Registers the evaluator or renews its heartbeat: at the start, after every swap of a ruleset, and at least every
 * three seconds. `confirmed` holds the revisions it decides by, by `rulesetName`, the latest swap last.
 */
export async function registerEvaluator(
  kv: Pick<Kv, 'commit'>,
  id: string,
  confirmed: ReadonlyMap<string, number>,
): Promise<void> {
  const newest = Object.fromEntries([...confirmed].slice(-CONFIRMATIONS_MAX))
  const value: Evaluator = { id, confirmed: newest }
  await kv.commit([{ scope: SYSTEM, put: [{ key: keyOf(id), value, ttlMs: EVALUATOR_TTL_MS }] }])
}

/** Nobody waits for its confirmations any more. */
export async function unregister(kv: Pick<Kv, 'commit'>, id: string): Promise<void> {
  await kv.commit([{ scope: SYSTEM, drop: [keyOf(id)] }])
}

/** The evaluators that are running. */
export async function list(kv: Pick<Kv, 'scan'>): Promise<Evaluator[]> {
  const found: Evaluator[] = []
  for await (const entry of scanAll<Evaluator>(kv, SYSTEM, EVALUATOR)) found.push(entry.value)
  return found
}
