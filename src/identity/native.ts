// Recognition of an app by the id it sends. That is a claim and no signature: it leads back only on the same kind of device,
// and as a guess, unless somebody with a secret key says so. An id that turns up on other hardware names nobody.

import type { Native } from '../domain/native.ts'
import type { KeyKind } from '../domain/workspace.ts'
import type { Attributes } from './attributes.ts'
import type { Recognition } from './matcher.ts'
import { MODEL } from './profile.ts'
import type { VisitorState } from './visitor.ts'

const VOUCHED_CONFIDENCE = 0.99
/** Anybody who knows the id can send it. */
const CLAIMED_CONFIDENCE = 0.9
/** A token that is told with less was given out with a guess, and may lie on another device. */
const TOKEN_CONFIDENCE_MIN = 0.995
/** An id of fewer different characters is a default that many devices send. */
const DISTINCT_CHARS_MIN = 4
/** ANDROID_ID of a whole generation of phones and of many emulators. */
const SHARED_IDS: ReadonlySet<string> = new Set(['9774d56d682e549c', '01234567-89ab-cdef-0123-456789abcdef'])

export interface NativeId {
  readonly kind: 'vendor' | 'installation'
  /** Folded, with the platform in front. */
  readonly text: string
}

/**
 * The id that names an installation or its device; null when there is none worth its name. The vendor's comes first, because it
 * survives more.
 */
export function nativeIdOf(native: Native | null | undefined): NativeId | null {
  if (native == null) return null
  return worthy(native, 'vendor', native.vendorId) ?? worthy(native, 'installation', native.installId)
}

function worthy({ platform }: Native, kind: NativeId['kind'], id: string | undefined): NativeId | null {
  const folded = id?.toLowerCase()
  if (folded === undefined || SHARED_IDS.has(folded)) return null
  if (new Set(folded.replace(/[^0-9a-z]/g, '')).size < DISTINCT_CHARS_MIN) return null
  return { kind, text: `${platform}|${folded}` }
}

/** Whether this may be the device the visitor was last seen on: both say what they are, and an update changes neither. */
export function sameHardware({ profile: known }: VisitorState, { profile: seen }: Attributes): boolean {
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
): Recognition | null {
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
    scores: [{ visitorId: visitor.id, posterior: confidence }],
  }
}

/** Whether the id that came with a visit is kept for who was recognised: a guess by looks does not make it lead there for good. */
export function keepsNativeId({ visitor, method, confidence }: Recognition, byId: boolean): boolean {
  return visitor === null || byId || (method === 'token' && confidence >= TOKEN_CONFIDENCE_MIN)
}
