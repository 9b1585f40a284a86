// Cells of a row that are more than one value: the tag as a text the engine can read, and the counters of velocity.

import { type StoredEvent, VELOCITY_NAMES, type Velocity, type VelocityName } from '../domain/event.ts'
import { putAscii, putNumber } from '../lib/json-lines.ts'

/** Of a negative one below 64 bits; above them it are twenty. */
const SMALLEST_UNREADABLE_DIGITS = 19
const LONG_INTEGER = new RegExp(`\\d{${SMALLEST_UNREADABLE_DIGITS}}`)
/** Not the digits behind a point: small fractions have as many. */
const STRING_OR_LONG_INTEGER = new RegExp(
  `"(?:[^"\\\\]|\\\\.)*"|(?<![\\d.])-?\\d{${SMALLEST_UNREADABLE_DIGITS},}(?![\\d.eE])`,
  'g',
)

function isEmpty(tag: StoredEvent['tag']): boolean {
  for (const _ in tag) return false
  return true
}

/** JSON that the engine reads as we do: one integer beyond 64 bits makes it refuse the whole text, an exponent does not. */
export function tagText(tag: StoredEvent['tag']): string {
  if (isEmpty(tag)) return '{}'
  const text = JSON.stringify(tag)
  if (text.length < SMALLEST_UNREADABLE_DIGITS || !LONG_INTEGER.test(text)) return text
  return text.replace(STRING_OR_LONG_INTEGER, (found) => (found[0] === '"' ? found : Number(found).toExponential()))
}

/** As `tagText` wrote it. Earlier releases wrote some fractions so that nobody can read them: such a tag counts as empty. */
export function readTag(text: string): StoredEvent['tag'] {
  try {
    return JSON.parse(text) as StoredEvent['tag']
  } catch {
    return {}
  }
}

/** One more than each counter, so that 0 means there is none; a row without counters has an empty array. */
export function writeVelocity(velocity: Velocity | null): void {
  putAscii(',[')
  for (let i = 0; velocity !== null && i < VELOCITY_NAMES.length; i++) {
    if (i > 0) putAscii(',')
    putNumber((velocity[VELOCITY_NAMES[i] as VelocityName] ?? -1) + 1)
  }
  putAscii(']')
}

export function unpackVelocity(packed: readonly number[]): Velocity | null {
  if (packed.length === 0) return null
  return Object.fromEntries(
    VELOCITY_NAMES.map((name, i) => [name, (packed[i] ?? 0) === 0 ? null : (packed[i] as number) - 1]),
  ) as Velocity
}

/** Float32 in the table: four decimals are what a coordinate of a city is worth. */
export const degrees = (x: number): number => Math.round(x * 10_000) / 10_000
