// A decided event as the events log carries it for adoption.

import type { StoredEvent } from '../domain/event.ts'
import type { DecidedItem } from '../events/packed-items.ts'
import { type Observation, packObservation } from '../identity/match-statistics.ts'
import type { DecidedEffect, LogLine, RuleLog } from '../records/effects.ts'
import type { UnreadVisit } from './visit.ts'

/** What a decision leaves besides its row. */
export interface VisitOutcome {
  /** Whose state it is, which may be an alias of the event's. */
  readonly visitorId: string
  readonly state: Uint8Array
  readonly indexed: readonly string[]
  readonly left: readonly string[]
  readonly effects: readonly DecidedEffect[]
  readonly lesson: Observation | null
  /** What it adds to the counters of its address and account. */
  readonly counted: readonly (number | null)[] | null
  readonly lines: readonly LogLine[]
}

const NO_MATCHES: readonly (readonly [string, number])[] = []

type Draft = { -readonly [Field in keyof DecidedItem]: DecidedItem[Field] }

/** `rowBytes`: with the newline behind the row. */
export function itemOf(c: UnreadVisit, event: StoredEvent, rowBytes: number, outcome: VisitOutcome): DecidedItem {
  const { requestId, workspace, env } = event
  const { visitorId, state, indexed, left, effects, lesson, counted, lines } = outcome
  const { matchedRules, monitorMatches } = event
  let matches = NO_MATCHES
  if (matchedRules.length > 0) matches = matchedRules.map(({ id }) => [id, 1] as const)
  if (monitorMatches.length > 0) matches = [...matches, ...monitorMatches.map(({ id }) => [id, 0] as const)]
  // One object of one shape, filled in two steps: copying members costs more than all else here.
  const item: Draft = {
    seq: c.seq,
    requestId,
    workspace,
    env,
    visitorId,
    state,
    indexed,
    matches,
    nonceHash: c.nonceHash,
    bodyHash: c.bodyHash,
    acceptedAt: c.meta.acceptedAt,
    keyKind: c.meta.keyKind,
    replyTo: c.meta.replyTo,
    rowBytes,
  }
  if (left.length > 0) item.left = left
  if (effects.length > 0) item.effects = effects
  if (lesson !== null) item.lesson = [c.familyId, packObservation(lesson)]
  if (counted !== null) item.counted = counted
  if (c.meta.trace !== undefined) item.trace = c.meta.trace
  if (lines.length > 0) item.logs = lines
  return item
}

const NO_KEYS: readonly string[] = []

/** Those of `keys` that are not among `others`: mostly none. */
export function keysBeside(keys: readonly string[], others: readonly string[]): readonly string[] {
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string
    // Mostly they are the same in the same order.
    if (key !== others[i] && !others.includes(key)) return keys.filter((one) => !others.includes(one))
  }
  return NO_KEYS
}

/** The lines of an event that is adopted, which may have been written already: each is known by request, rule and place. */
export const ruleLogsOf = ({ requestId, logs = [] }: DecidedItem): RuleLog[] =>
  logs.map((line) => ({ requestId, ...line }))
