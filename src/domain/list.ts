// Lists as the contract has them (src/docs/contract.md, Lists): their nouns, their limits, and the one spelling of each entry.

import { isVisitorId } from './ids.ts'
import { formatCidr, parseCidr } from './ip.ts'

export type ListType = 'visitor' | 'ip' | 'email'
export const LIST_TYPES: readonly ListType[] = ['visitor', 'ip', 'email']

/** Who put an entry on a list: a call of the API, a rule's side effect, or a file. */
export type EntrySource = 'api' | 'rule' | 'import'
export const ENTRY_SOURCES: readonly EntrySource[] = ['api', 'rule', 'import']

export const LIST_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$'
export const LIST_NAME_CHARS_MAX = 64
export const LIST_DESCRIPTION_CHARS_MAX = 500
/** Ten years. */
export const TTL_SECONDS_MAX = 315_360_000
export const ENTRIES_PER_CALL_MAX = 1_000
export const ENTRY_BYTES_MAX = 320
export const REASON_CHARS_MAX = 200

export interface List {
  readonly id: string
  /** Unique without regard to case. */
  readonly name: string
  readonly type: ListType
  readonly description: string | null
  /** Seconds that new entries live; null: for ever. */
  readonly ttl: number | null
  readonly entryCount: number
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly updatedAt: number
}

const LIST_NAME = new RegExp(LIST_NAME_PATTERN)
export const isListName = (text: string): boolean => LIST_NAME.test(text)
/** What names are compared by. */
export const foldListName = (name: string): string => name.toLowerCase()

const VISITOR = /^pv_[0-9A-Za-z_-]{1,64}$/
const EMAIL = /^[^\s@\p{Cc}\p{Surrogate}]+@[^\s@\p{Cc}\p{Surrogate}]+$/u

/**
 * The one spelling of an entry: a visitor id, a canonical address or range (`203.0.113.0/24`, host bits cleared), a trimmed
 * email in lower case. null when the text is none of its list's type.
 */
export function normaliseEntry(type: ListType, text: string): string | null {
  if (text.length > 2 * ENTRY_BYTES_MAX) return null
  const trimmed = text.trim()
  const entry = type === 'ip' ? canonicalRange(trimmed) : type === 'email' ? emailOf(trimmed) : visitorOf(trimmed)
  return entry !== null && Buffer.byteLength(entry) <= ENTRY_BYTES_MAX ? entry : null
}

/** The same for one that is added: of visitors it has the form ids have. What is asked for or taken off may be anything ever taken. */
export function normaliseNewEntry(type: ListType, text: string): string | null {
  const entry = normaliseEntry(type, text)
  return entry !== null && type === 'visitor' && !isVisitorId(entry) ? null : entry
}

const visitorOf = (text: string): string | null => (VISITOR.test(text) ? text : null)

function emailOf(text: string): string | null {
  const folded = text.toLowerCase()
  return EMAIL.test(folded) ? folded : null
}

function canonicalRange(text: string): string | null {
  // A zone names an interface of one machine: it has no place on a list.
  const cidr = text.includes('%') ? null : parseCidr(text)
  return cidr === null ? null : formatCidr(cidr)
}
