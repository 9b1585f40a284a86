// What a visit teaches: a token proves two visits to be of one device, and hiding it shows whether its looks alone would
// have found the same visitor.

import { hoursOf, seenAgeOf } from './absences.ts'
import { partsOf } from './address.ts'
import { ELSEWHERE, SAME_ADDRESS } from './agreement.ts'
import { auditPlaces } from './calibration.ts'
import { isAlternate, networkOf } from './compare.ts'
import { isPrivateOnly, samenessOf, type Weighed } from './copies.ts'
import { binOf, type Observation } from './match-statistics.ts'
import { type MatchResult, type RecogniseInput, recognise } from './matcher.ts'
import { FIRST_VALUES, type Profile } from './profile.ts'
import { providerOf } from './provider.ts'
import { traitsOf } from './rarity.ts'
import { mayTeach, sourceOf } from './sources.ts'
import type { VisitorState } from './visitor.ts'

const NONE: readonly number[] = []
const OF_NOBODY = {
  age: 0,
  compared: 0,
  equal: 0,
  network: ELSEWHERE,
  blind: 'none',
  alike: 0,
  hours: -1,
  majorBefore: -1,
  twin: -1,
  traits: NONE,
  strangerCompared: 0,
  strangerEqual: 0,
  audit: NONE,
} as const

/** By how long ago it was last seen, as one bit: what `VisitorState.taught` is made of. */
export const observationBit = (visitor: VisitorState, atMs: number): number => 1 << seenAgeOf(atMs - visitor.lastSeenAt)

const hasTaught = (visitor: VisitorState, atMs: number): boolean =>
  (visitor.taught & observationBit(visitor, atMs)) !== 0

/** Whether hiding the token would teach anything: on the same day next to nothing has changed, and nobody teaches twice. */
export const worthHiding = (visitor: VisitorState, atMs: number): boolean =>
  seenAgeOf(atMs - visitor.lastSeenAt) > 0 && !hasTaught(visitor, atMs)

/** Whether somebody else of that look was at the address, has a token of its own, and lives at the same time. */
const hasTwin = ({ exact }: RecogniseInput, visitor: VisitorState, line: number): boolean =>
  exact.some(
    ({ id, tokenVisits, networks, lastSeenAt }) =>
      id !== visitor.id &&
      tokenVisits > 0 &&
      lastSeenAt >= visitor.firstSeenAt &&
      networks.some((network) => network.ip === line),
  )

/** A visitor beside this one that has a token of its own, lives at the same time, and shares its look or else a key. */
function strangerOf({ exact, linked }: RecogniseInput, visitor: VisitorState): VisitorState | null {
  for (const list of [exact, linked]) {
    for (const one of list) {
      const isOther = one.id !== visitor.id && one.tokenVisits > 0 && visitor.tokenVisits > 0 && one.profile !== null
      if (isOther && one.lastSeenAt >= visitor.firstSeenAt && visitor.lastSeenAt >= one.firstSeenAt) return one
    }
  }
  return null
}

/** Values that no key counts which both told, and those equal, as bits. */
function strangerBits(
  stranger: VisitorState | null,
  { values, os, family }: Profile,
): [compared: number, equal: number] {
  const known = stranger?.profile
  if (known == null || known.os !== os || known.family !== family) return [0, 0]
  let compared = 0
  let equal = 0
  for (let i = FIRST_VALUES; i < values.length; i++) {
    const bit = 1 << (i - FIRST_VALUES)
    if (known.values[i] == null || values[i] == null) continue
    compared |= bit
    if (known.values[i] === values[i]) equal |= bit
  }
  return [compared, equal]
}

/** From this chance on a record counts as one more of the visitor's own device. */
const COPY_MIN = 0.5

/** Of those that a visit without its token may be of, the ones that probably are of its visitor's device, by id. */
function copiesOf({ exact, linked }: RecogniseInput, visitor: VisitorState, blind: MatchResult): ReadonlySet<string> {
  const visitors = new Map([...linked, ...exact].map((one) => [one.id, one]))
  const all: Weighed[] = []
  for (const { visitorId, posterior } of blind.scores) {
    const one = visitorId === visitor.id ? visitor : visitors.get(visitorId)
    if (one !== undefined) all.push({ visitor: one, chance: posterior })
  }
  const own = all.find((one) => one.visitor === visitor) ?? { visitor, chance: 0 }
  const copies = all.filter((one) => one !== own && samenessOf(own, one, all) > COPY_MIN)
  return new Set(copies.map((one) => one.visitor.id))
}

/** What came of the visit without its token, and what would have come of it had its device never been here. */
function auditOf(input: RecogniseInput, visitor: VisitorState, blind: MatchResult): readonly number[] {
  const copies = copiesOf(input, visitor, blind)
  const others = (some: readonly VisitorState[]) =>
    some.filter((one) => one.id !== visitor.id && !isPrivateOnly(one) && !copies.has(one.id))
  const bestId = blind.visitor?.id ?? blind.scores[0]?.visitorId ?? ''
  const isBest = ({ id }: VisitorState): boolean => id === bestId
  const best = input.exact.find(isBest) ?? input.linked.find(isBest)
  // A private window keeps no token that could say whose it was, this device's or another's: nothing is proven.
  if (best !== undefined && best.id !== visitor.id && isPrivateOnly(best)) return NONE
  const totals: Record<string, number> = {}
  for (const letter in input.totals) totals[letter] = Math.max(0, (input.totals[letter] as number) - 1)
  const without = { exact: others(input.exact), linked: others(input.linked), totals }
  const stranger = recognise({ ...input, token: null, tokenVisitor: null, ...without })
  return auditPlaces({
    best: blind.seeming,
    isRight: bestId === visitor.id || copies.has(bestId),
    stranger: stranger.seeming,
  })
}

/**
 * Of a visitor once after each kind of absence, and of a network no more than its share: who keeps a few visitors could else say what
 * is believed of all. Must be taken before the visit is recorded. `blind` is what was answered to the same visit without its token. Null when there
 * is nothing to learn.
 */
export function observationOf(
  input: RecogniseInput,
  recognition: MatchResult,
  blind: MatchResult | null,
): Observation | null {
  const { method, visitor, newChance } = recognition
  const { ip, asn } = input
  const source = sourceOf(ip)
  if (visitor !== null && hasTaught(visitor, input.atMs)) return null
  if (!mayTeach(input.statistics?.sources ?? [], source)) return null
  const isPrivate = input.incognito
  const { profile } = input.attributes
  const major = profile.major ?? -1
  if (method === 'new')
    return { ...OF_NOBODY, kind: 'new', bin: binOf(newChance), isPrivate, major, source, traits: traitsOf(profile) }
  const hours = visitor === null ? -1 : hoursOf(input.atMs - visitor.lastSeenAt)
  if (method !== 'token') return { ...OF_NOBODY, kind: 'link', bin: -1, isPrivate, hours, major, source }
  const known = visitor?.profile
  if (visitor == null || known == null || known.os !== profile.os || known.family !== profile.family) return null
  let compared = 0
  let equal = 0
  for (let i = 0; i < profile.values.length; i++) {
    const a = known.values[i]
    const b = profile.values[i]
    if (a == null || b == null) continue
    compared |= 1 << i
    if (a === b || isAlternate(visitor, i, b)) equal |= 1 << i
  }
  const { lineHash: line, subnetHash, masked } = partsOf(ip)
  const network = networkOf(visitor, line, subnetHash, providerOf(ip, asn ?? null), masked)
  const [strangerCompared, strangerEqual] = strangerBits(blind === null ? null : strangerOf(input, visitor), profile)
  const found =
    blind === null ? 'none' : blind.visitor === null ? 'new' : blind.visitor.id === visitor.id ? 'found' : 'wrong'
  return {
    kind: 'token',
    age: seenAgeOf(input.atMs - visitor.lastSeenAt),
    compared,
    equal,
    network,
    bin: found === 'new' ? binOf(blind?.newChance ?? 1) : -1,
    blind: found,
    alike: blind === null ? 0 : (input.totals?.e ?? 0),
    isPrivate,
    hours,
    major,
    majorBefore: known.major ?? -1,
    source,
    traits: traitsOf(profile),
    strangerCompared,
    strangerEqual,
    audit: blind === null ? NONE : auditOf(input, visitor, blind),
    twin: blind === null || network !== SAME_ADDRESS ? -1 : hasTwin(input, visitor, line) ? 1 : 0,
  }
}
