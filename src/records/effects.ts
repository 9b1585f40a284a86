// Side effects as they are decided, with all they need. Those of the deciding rule: on lists, which become commands in `changes`, and
// notifications for whoever delivers; each is known by request, rule and place, so that twice equals once. And records that are healed.

import type { Env } from '../domain/event.ts'

interface Place {
  readonly ruleId: string
  /** Place of the effect in the rule's sideEffects. */
  readonly index: number
}

/** Two records that a visit showed to be one device: the younger visitor is to be the older one's. */
export interface HealingEffect {
  readonly type: 'heal'
  readonly visitorId: string
  readonly survivor: string
  /** That they are one: 0 to 1, four decimals. */
  readonly confidence: number
}

export type DecidedEffect = RuleEffect | HealingEffect

export type RuleEffect = Place &
  (
    | {
        readonly type: 'addToList'
        readonly list: string
        /** As the event has it; the list's owner normalises. */
        readonly value: string
        readonly ttl?: number | null
        readonly reason?: string
      }
    | { readonly type: 'removeFromList'; readonly list: string; readonly value: string }
    | { readonly type: 'webhook'; readonly webhookId: string }
    /** The message is rendered: at most RENDERED_BYTES_MAX bytes of UTF-8. */
    | { readonly type: 'slack'; readonly url: string; readonly message: string }
  )

/** Lines of one event, more than any sensible set of rules asks for: no further ones are made. Together they stay far below the limit of a record. */
export const LINES_MAX = 50

/** What a `log` side effect of the deciding rule, or of a monitored one, is to write. */
export interface LogLine extends Place {
  readonly level: 'info' | 'warn' | 'error'
  /** At most RENDERED_BYTES_MAX bytes of UTF-8. */
  readonly message: string
}

export interface RuleLog extends LogLine {
  readonly requestId: string
}

/** Those of one event. */
export interface EventEffects {
  readonly workspace: string
  readonly env: Env
  readonly requestId: string
  readonly effects: readonly DecidedEffect[]
}

/** Of decided items those that have any. */
export function eventEffectsOf(
  items: readonly (Omit<EventEffects, 'effects'> & { readonly effects?: readonly DecidedEffect[] })[],
): EventEffects[] {
  const all: EventEffects[] = []
  for (const { workspace, env, requestId, effects } of items) {
    if (effects !== undefined && effects.length > 0) all.push({ workspace, env, requestId, effects })
  }
  return all
}
