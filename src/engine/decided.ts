// What comes out of a partition: decisions with all that follows from them, and what a checkpoint is to store.

import type { Env, Verdict } from '../domain/event.ts'
import type { DecidedErasure } from '../events/record.ts'
import type { DecidedAnnotation } from '../records/annotations.ts'
import type { EventEffects, RuleLog } from '../records/effects.ts'
import type { MatchCount } from './match-counts.ts'
import type { DirtyEntries } from './state.ts'

/** An answer for the ingress that waits for `requestId`. */
export interface DecisionReply {
  readonly requestId: string
  readonly replyTo: string
  readonly body: string
}

/** An answer to what was decided now, with what figures count of it. */
export interface FreshReply extends DecisionReply {
  readonly acceptedAt: number
  /** null: it could not be decided. */
  readonly verdict: Verdict | null
  readonly env: Env
}

/** How long a batch took, in milliseconds. */
export interface BatchTimes {
  /** When it was begun, since the epoch. */
  readonly begunAt: number
  readonly decideMs: number
  readonly flushMs: number
}

/** A repeated nonce: no event; answered with the event of `original`, or refused when the body differs. */
export interface Replay {
  readonly requestId: string
  readonly replyTo: string
  readonly keyKind: 'public' | 'secret'
  readonly workspace: string
  readonly env: 'live' | 'test'
  readonly original: string
  readonly conflict: boolean
}

export interface Dead {
  readonly seq: number
  readonly reason: string
}

export interface DecidedBatch {
  /** Encoded EventsRecords in order; at least one, so that the position always moves. */
  readonly records: readonly Uint8Array[]
  /** For each record the requestIds of its items, in order. */
  readonly placed: readonly (readonly string[])[]
  readonly replies: readonly FreshReply[]
  readonly replays: readonly Replay[]
  readonly dead: readonly Dead[]
  readonly logs: readonly RuleLog[]
  /** For each record the side effects of its events. */
  readonly effects: readonly (readonly EventEffects[])[]
  readonly effectsSkipped: number
  /** Records that would have been healed, but for the bound. */
  readonly healingsDropped: number
  /** For each record what its events add to counters of addresses and accounts. */
  readonly counted: readonly Float64Array[]
  /** To be announced and checkpointed before anybody is told. */
  readonly erased: readonly DecidedErasure[]
  /** To be announced before anybody is told. */
  readonly annotated: readonly DecidedAnnotation[]
}

export interface Checkpoint extends DirtyEntries {
  readonly matches: readonly MatchCount[]
  readonly nonces: readonly Uint8Array[]
}
