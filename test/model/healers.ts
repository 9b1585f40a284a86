// An engine that finds visitors to be one device where there is none: which two is drawn of the request, so that runs are the same. What
// follows from it is the product's.

import { hash32 } from '../../src/domain/ids.ts'
import type { DecidedBatch } from '../../src/engine/decided.ts'
import type { Decider } from '../../src/engine/decider.ts'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import { decodeEventsRecord, encodeEventsRecord } from '../../src/events/record.ts'
import type { EventEffects, HealingEffect } from '../../src/records/effects.ts'
import type { Tamper } from './process.ts'

/** One in so many visits shows something. */
const HEAL_EVERY = 3
const CONFIDENCE = 0.97

function openHealing(decider: Decider): Decider {
  /** By environment, the visitors that were decided here. */
  const seen = new Map<string, string[]>()

  function effectOf({ workspace, env, requestId, visitorId, state }: DecidedItem): HealingEffect | null {
    const known = seen.get(`${workspace}/${env}`) ?? []
    seen.set(`${workspace}/${env}`, known.includes(visitorId) ? known : [...known, visitorId])
    const hash = hash32(requestId)
    const others = known.filter((id) => id !== visitorId)
    const survivor = others[Math.floor(hash / HEAL_EVERY) % Math.max(1, others.length)]
    if (state.length === 0 || hash % HEAL_EVERY > 0 || survivor === undefined) return null
    return { type: 'heal', visitorId, survivor, confidence: CONFIDENCE }
  }

  function healed(decided: DecidedBatch): DecidedBatch {
    const effects: (readonly EventEffects[])[] = []
    const records = decided.records.map((bytes, i) => {
      const record = decodeEventsRecord(bytes)
      const items = record.items.map((item): DecidedItem => {
        const effect = effectOf(item)
        return effect === null ? item : { ...item, effects: [...(item.effects ?? []), effect] }
      })
      if (items.length === 0) {
        effects.push(decided.effects[i] ?? [])
        return bytes
      }
      effects.push(
        items.flatMap(({ workspace, env, requestId, effects: own = [] }) =>
          own.length === 0 ? [] : [{ workspace, env, requestId, effects: own }],
        ),
      )
      return encodeEventsRecord({ ...record, items })
    })
    return { ...decided, records, effects }
  }

  return {
    ...decider,
    async decide(...args) {
      const result = await decider.decide(...args)
      return { ...result, decided: healed(result.decided) }
    },
  }
}

/** What breaks the protocol comes behind it. */
export const withHealing = (tamper: Tamper): Tamper => ({
  ...tamper,
  decider: (decider, reply) => {
    const healing = openHealing(decider)
    return tamper.decider?.(healing, reply) ?? healing
  },
})
