// Recognition of an app by the id it sends. That is a claim and no signature: it leads back only on the same kind of device,
// and as a guess, unless somebody with a secret key says so. An id that turns up on other hardware names nobody.

import type { KeyKind } from '../domain/workspace.ts'
import type { Attributes } from './attributes.ts'
import type { MatchResult } from './matcher.ts'
import { MODEL } from './profile.ts'
import type { VisitorState } from './visitor.ts'

const VOUCHED_CONFIDENCE = 0.99
/** Anybody who knows the id can send it. */
const CLAIMED_CONFIDENCE = 0.9
/** A token that is told with less was given out with a guess, and may lie on another device. */
const TOKEN_CONFIDENCE_MIN = 0.995

/** Whether this may be the device the visitor was last seen on: both say what they are, and an update changes neither. */
function sameHardware({ profile: known }: VisitorState, { profile: seen }: Attributes): boolean {
  if (known === null) return false
  const model = seen.values[MODEL]
  return known.os === seen.os && model != null && known.values[MODEL] === model
}

/** Whether this is certainly another device than the visitor was last seen on. */
export function otherHardware({ profile: known }: VisitorState, { profile: seen }: Attributes): boolean {
  if (known === null) return false
  const [a, b] = [known.values[MODEL], seen.values[MODEL]]
  return known.os !== seen.os || (a != null && b != null && a !== b)
}

/**
 * Null: none of those who sent this id before is this device. `known` are newest first. A link that nobody vouches for starts a
 * generation of tokens: should the visitor's own storage turn out to be alive, that one is refuted.
 */
export function recogniseNative(
  known: readonly VisitorState[],
  attributes: Attributes,
  keyKind: KeyKind,
): MatchResult | null {
  const visitor = known.find((one) => sameHardware(one, attributes))
  if (visitor === undefined) return null
  const vouched = keyKind === 'secret'
  const confidence = vouched ? VOUCHED_CONFIDENCE : CLAIMED_CONFIDENCE
  return {
    visitor,
    method: 'exact',
    confidence,
    anonymitySet: 1,
    candidates: known.length,
    reissueGeneration: !vouched,
    generation: visitor.generation + (vouched ? 0 : 1),
    evidence: [],
    newChance: 0,
    possible: null,
    seeming: { chance: 0, nearby: false },
    scores: [{ visitorId: visitor.id, posterior: confidence }],
  }
}

/** Whether the id that came with a visit is kept for who was recognised: a guess by looks does not make it lead there for good. */
export function keepsNativeId({ method, confidence }: MatchResult, byId: boolean): boolean {
  return method === 'new' || byId || (method === 'token' && confidence >= TOKEN_CONFIDENCE_MIN)
}
