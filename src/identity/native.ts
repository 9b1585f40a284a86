// Recognition of an app by the id it sends: as good as a storage token while the device behind it stays the same kind of
// device. It is a claim and not a signature, so an id that turns up on other hardware names nobody.

import type { Native } from '../domain/native.ts'
import type { Attributes } from './attributes.ts'
import type { Recognition } from './matcher.ts'
import { MODEL } from './profile.ts'
import type { VisitorState } from './visitor.ts'

const NATIVE_CONFIDENCE = 0.99
/** An id of fewer different characters is a default that many devices send. */
const DISTINCT_CHARS_MIN = 4
/** ANDROID_ID of a whole generation of phones and of many emulators. */
const SHARED_IDS: ReadonlySet<string> = new Set(['9774d56d682e549c', '01234567-89ab-cdef-0123-456789abcdef'])

/**
 * The id that names an installation or its device, with the platform in front; null when there is none worth its name. The
 * vendor's comes first, because it survives more.
 */
export function nativeIdOf(native: Native | null | undefined): string | null {
  for (const id of [native?.vendorId, native?.installId]) {
    const folded = id?.toLowerCase()
    if (folded === undefined || SHARED_IDS.has(folded)) continue
    if (new Set(folded.replace(/[^0-9a-z]/g, '')).size >= DISTINCT_CHARS_MIN) return `${native?.platform}|${folded}`
  }
  return null
}

/** Whether this may be the device the visitor was last seen on: a system or a model is not changed by an update. */
export function sameHardware({ profile: known }: VisitorState, { profile: seen }: Attributes): boolean {
  if (known === null) return true
  const [a, b] = [known.values[MODEL], seen.values[MODEL]]
  return known.os === seen.os && (a == null || b == null || a === b)
}

/** Null: none of those who sent this id before is this device. `known` are newest first. */
export function recogniseNative(known: readonly VisitorState[], attributes: Attributes): Recognition | null {
  const visitor = known.find((one) => sameHardware(one, attributes))
  if (visitor === undefined) return null
  return {
    visitor,
    method: 'exact',
    confidence: NATIVE_CONFIDENCE,
    anonymitySet: 1,
    candidates: known.length,
    reissueGeneration: false,
    // The id proves as much as its token would, so the storage is the same one.
    generation: visitor.generation,
    evidence: [],
    newChance: 0,
    scores: [{ visitorId: visitor.id, posterior: NATIVE_CONFIDENCE }],
  }
}
