// The id that an app sends of its installation or device, as far as it names one.

import type { Native } from '../domain/native.ts'

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
