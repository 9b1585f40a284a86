// Two records of one device: a visitor that lost its token and was not recognised is new, until a visit shows that it is one who
// was known before. Only a genuine token says so, with looks that leave hardly a doubt, of two lives that never were at one time.

import type { TokenClaims } from '../domain/identify.ts'
import { isPrivateOnly } from './copies.ts'
import { type RecogniseInput, recognise } from './matcher.ts'
import type { Life, VisitorState } from './visitor.ts'

/** The younger of two visitors is the older one. */
export interface Healing {
  readonly visitorId: string
  readonly survivor: string
  /** That a visit without its token would have been the other's: 0 to 1, four decimals. */
  readonly confidence: number
}

/** Far above what a link is taken from: whom it is wrong about carries a stranger's id with every token from then on. */
const HEAL_MIN = 0.95
/** A token is its visitor's own: neither a guess gave it out nor has it been seen elsewhere. */
const TOKEN_MIN = 0.99
/** Storages of tabs that race live at one time. */
const APART_MS = 10 * 60_000

const isDoubted = ({ refutedFrom, olderAt }: Life): boolean => refutedFrom > 0 || olderAt > 0

/**
 * Whether a visit of its token may show who it was before: its first return, its second, fourth, eighth and so on, since looking
 * others up costs as much as a visit without a token.
 */
export function mayHeal(visitor: VisitorState): boolean {
  const returns = visitor.tokenVisits + 1
  return (returns & (returns - 1)) === 0 && !isDoubted(visitor)
}

const isOlder = (other: Life, own: Life): boolean => other.firstSeenAt < own.firstSeenAt

/**
 * Whether two visitors may be one device by when they were here: one was there before the other began, or has only ever been in private
 * windows, which have storages of their own. Whoever is doubted is nobody else.
 */
export function mayBeOneLife(own: Life, other: Life): boolean {
  if (isDoubted(own) || isDoubted(other)) return false
  const [older, younger] = isOlder(other, own) ? [other, own] : [own, other]
  return older.lastSeenAt + APART_MS < younger.firstSeenAt || isPrivateOnly(younger)
}

/** Without the visitor itself, which each key that it is found under counts as one. */
function withoutOwn(input: RecogniseInput, own: string, keys: readonly string[]): RecogniseInput {
  const isOther = ({ id }: VisitorState): boolean => id !== own
  const totals: Record<string, number> = { ...input.totals }
  for (const key of keys) {
    const letter = key[0] as string
    if (totals[letter] !== undefined) totals[letter] = Math.max(1, totals[letter] - 1)
  }
  const { exact, linked } = input
  return {
    ...input,
    token: null,
    tokenVisitor: null,
    exact: exact.filter(isOther),
    linked: linked.filter(isOther),
    totals,
  }
}

/**
 * What a visit with a token shows; null: nothing. `confidence`: of its recognition; `keys`: those its visitor is found under. Pure, and
 * to be asked before the visit is recorded.
 */
export function healingOf(
  input: RecogniseInput,
  own: VisitorState,
  token: TokenClaims,
  confidence: number,
  keys: readonly string[],
): Healing | null {
  if (confidence < TOKEN_MIN || isDoubted(own) || token.generation < own.generation) return null
  const [best] = recognise(withoutOwn(input, own.id, keys)).scores
  if (best === undefined || best.posterior < HEAL_MIN) return null
  const other = [...input.exact, ...input.linked].find(({ id }) => id === best.visitorId)
  if (other === undefined || !mayBeOneLife(own, other)) return null
  const [older, younger] = isOlder(other, own) ? [other, own] : [own, other]
  return { visitorId: younger.id, survivor: older.id, confidence: best.posterior }
}
