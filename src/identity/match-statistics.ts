// What a partition has learned of one browser family in one environment from its own traffic: how values and networks keep
// between visits that a token proves to be of one device, how many visitors there are, after how long they return, and how
// often a device that hides its token would be found. Counts only, bounded and decayed; nothing in here is personal.

import { AGES, HOURS_MAX, SPAN_BOUNDS_HOURS, SPANS, spanOf } from './absences.ts'
import { ELSEWHERE, type NetworkMatch, SAME_PROVIDER } from './agreement.ts'
import { learnAudit, newAudits } from './calibration.ts'
import { FIRST_VALUES, VALUE_NAMES } from './profile.ts'
import { learnStrangers, learnTraits, newRarity } from './rarity.ts'
import { newSources, noteSource } from './sources.ts'
import { joinPairs, splitPairs } from './value-pairs.ts'
import { learnVersion, newVersions, updateOf } from './versions.ts'

export const VALUES = VALUE_NAMES.length
/** Bounds of bins for the chance of being new. */
export const BIN_BOUNDS = [0.2, 0.5, 0.8, 0.95, 0.99] as const
export const BINS = BIN_BOUNDS.length + 1

/** Above this many observations, old ones count half. */
const OBSERVATIONS_MAX = 20_000
const BLIND_KEPT_MIN = 1_000

export interface MatchStatistics {
  /** Visitors that were new here, ever. */
  visitors: number
  /** Per age and value of a profile: [equal, compared]. */
  readonly pairs: number[]
  /** Per age: [same address, same network, another]. */
  readonly networks: number[]
  /** Per age, of visits from another network: [known provider, all]. */
  readonly providers: number[]
  /** Of visits with a token from an address that was the visitor's: [those with a look-alike there that has a token too, all]. */
  readonly twins: number[]
  /** Visits without a token: linked, and new by bin of their chance of being new. */
  links: number
  readonly news: number[]
  /** Visits with a token, looked at without it: all, found, and taken for new by bin. */
  blind: number
  blindFound: number
  readonly blindNews: number[]
  /** Of those, visits of looks that only one visitor ever had, and that two had. */
  singles: number
  doubles: number
  /** Per span of absence: [returns without a token outside private windows, other returns, hours spent in it]. */
  readonly returns: number[]
  /** Of links and news, those in private windows. */
  privateLinks: number
  privateNews: number
  /** Versions in use, as versions.ts keeps them. */
  readonly versions: number[]
  /** Per age: hundredths of updates that pairs could have shown, and of those they showed. */
  readonly updates: number[]
  /** Which networks the lessons of late came from, as sources.ts keeps them. */
  readonly sources: number[]
  /** How frequent values are that no key counts, as rarity.ts keeps it. */
  readonly rarity: number[]
  /** What hidden tokens showed, as calibration.ts keeps it. */
  readonly audits: number[]
}

export const newMatchStatistics = (): MatchStatistics => ({
  visitors: 0,
  pairs: new Array<number>(AGES * VALUES * 2).fill(0),
  networks: new Array<number>(AGES * 3).fill(0),
  providers: new Array<number>(AGES * 2).fill(0),
  twins: [0, 0],
  links: 0,
  news: new Array<number>(BINS).fill(0),
  blind: 0,
  blindFound: 0,
  blindNews: new Array<number>(BINS).fill(0),
  singles: 0,
  doubles: 0,
  returns: new Array<number>(SPANS * 3).fill(0),
  privateLinks: 0,
  privateNews: 0,
  versions: newVersions(),
  updates: new Array<number>(AGES * 2).fill(0),
  sources: newSources(),
  rarity: newRarity(),
  audits: newAudits(),
})

/** What one visit teaches, as few small numbers; applying it is all that changes what is learned. */
export interface Observation {
  /** What it was told: by its token, a link without one, new. */
  readonly kind: 'token' | 'link' | 'new'
  /** Of a token's visit: what it was compared with. */
  readonly age: number
  readonly compared: number
  readonly equal: number
  readonly network: NetworkMatch
  /** Of a new visit, and of a token's visit looked at without it when that found nobody; else -1. */
  readonly bin: number
  /** Whether the token's visit was looked at without it, and what came of it. */
  readonly blind: 'none' | 'found' | 'wrong' | 'new'
  /** Visitors that ever had the exact look of that visit; 0 when nobody counted. */
  readonly alike: number
  readonly isPrivate: boolean
  /** Whole hours since the visitor's latest visit; -1 for somebody new. */
  readonly hours: number
  /** Major version of the browser; -1 when not told. */
  readonly major: number
  /** Of a token's visit: the version before; -1 when not told. */
  readonly majorBefore: number
  /** Whether a look-alike with a token of its own was seen at the address; -1 when nobody looked. */
  readonly twin: -1 | 0 | 1
  /** As `sourceOf` tells the network; 0 when not told. */
  readonly source: number
  /** Codes of the values that no key counts, as rarity.ts makes them; none of one who taught that. */
  readonly traits: readonly number[]
  /** Of those, the ones that another device which looks alike told too, and those it has equal, as bits. */
  readonly strangerCompared: number
  readonly strangerEqual: number
  /** Where it counts among hidden tokens, as `auditPlaces` tells; none where nothing was hidden. */
  readonly audit: readonly number[]
}

const FIXED = 6

/** Pairs of values that builds before did not know. */
export const LATER_PAIRS = AGES * (VALUES - FIRST_VALUES) * 2

/** The stored form: whole numbers in a fixed order. */
export function packMatchStatistics(l: MatchStatistics): number[] {
  const { first, later } = splitPairs(l.pairs)
  return [
    ...[l.visitors, l.links, l.blind, l.blindFound, l.singles, l.doubles],
    ...[...first, ...l.networks, ...l.news, ...l.blindNews],
    ...[...l.returns, l.privateLinks, l.privateNews],
    ...[...l.versions, ...l.updates, ...l.sources, ...l.providers, ...later, ...l.twins],
    ...l.rarity,
    ...l.audits,
  ]
}

/** Counts of another length are of another build: then learning begins anew, but for builds that counted less. */
export function unpackMatchStatistics(packed: readonly number[]): MatchStatistics {
  const learned = newMatchStatistics()
  const { pairs, networks, news, blindNews, returns, versions, updates, sources, providers, twins, rarity, audits } =
    learned
  const { first, later } = splitPairs(pairs)
  let at = 0
  const fill = (list: number[]) => {
    for (let i = 0; i < list.length; i++) list[i] = packed[at++] as number
  }
  const fixed = new Array<number>(FIXED).fill(0)
  const windows = [0, 0]
  // In the order in which builds came to count them.
  for (const lists of [
    [fixed, first, networks, news, blindNews],
    [returns, windows],
    [versions, updates],
    [sources],
    [providers, later, twins],
    [rarity, audits],
  ]) {
    if (at === packed.length && at > 0) break
    if (packed.length < at + lists.reduce((sum, list) => sum + list.length, 0)) return newMatchStatistics()
    lists.forEach(fill)
  }
  if (at !== packed.length) return newMatchStatistics()
  joinPairs(pairs, first, later)
  const [visitors = 0, links = 0, blind = 0, blindFound = 0, singles = 0, doubles = 0] = fixed
  const [privateLinks = 0, privateNews = 0] = windows
  return { ...learned, visitors, links, blind, blindFound, singles, doubles, privateLinks, privateNews }
}

const KINDS = ['token', 'link', 'new'] as const
const BLINDS = ['none', 'found', 'wrong', 'new'] as const
/** As records of decisions carry it. */
export type PackedObservation = readonly number[]

export const packObservation = (l: Observation): PackedObservation => [
  KINDS.indexOf(l.kind),
  l.age,
  l.compared,
  l.equal,
  l.network,
  l.bin,
  BLINDS.indexOf(l.blind),
  l.alike,
  l.isPrivate ? 1 : 0,
  l.hours,
  l.major,
  l.majorBefore,
  l.source,
  l.twin,
  l.strangerCompared,
  l.strangerEqual,
  l.audit[0] ?? -1,
  l.audit[1] ?? -1,
  ...l.traits,
]

/** Builds before wrote neither windows nor hours, later ones no versions, then no source, and the last of these nothing of look-alikes. */
export function unpackObservation(packed: PackedObservation): Observation {
  const [kind = 0, age = 0, compared = 0, equal = 0, network = 0, bin = 0, blind = 0, alike = 0] = packed
  const [isPrivate = 0, hours = -1, major = -1, majorBefore = -1, source = 0, twin = -1, ...more] = packed.slice(8)
  const [strangerCompared = 0, strangerEqual = 0, seemed = -1, other = -1, ...traits] = more
  return {
    kind: KINDS[kind] ?? 'link',
    age,
    compared,
    equal,
    network: network as NetworkMatch,
    bin,
    blind: BLINDS[blind] ?? 'none',
    alike,
    isPrivate: isPrivate === 1,
    hours,
    major,
    majorBefore,
    source,
    twin: twin as Observation['twin'],
    traits,
    strangerCompared,
    strangerEqual,
    audit: seemed < 0 ? [] : [seemed, other],
  }
}

export function binOf(chance: number): number {
  let bin = 0
  while (bin < BIN_BOUNDS.length && chance >= (BIN_BOUNDS[bin] as number)) bin++
  return bin
}

const halve = (counts: number[]): void => {
  for (let i = 0; i < counts.length; i++) counts[i] = Math.floor((counts[i] as number) / 2)
}

const add = (counts: number[], at: number, n = 1): void => {
  counts[at] = (counts[at] as number) + n
}

function learnReturn({ returns }: MatchStatistics, { kind, isPrivate, hours }: Observation): void {
  const span = spanOf(hours)
  add(returns, span * 3 + (kind === 'link' && !isPrivate ? 0 : 1))
  let from = 0
  for (let i = 0; i <= span; i++) {
    const to = Math.min(hours + 1, SPAN_BOUNDS_HOURS[i] ?? HOURS_MAX + 1)
    add(returns, i * 3 + 2, to - from)
    from = to
  }
  const counted = returns.reduce((sum, n, i) => (i % 3 === 2 ? sum : sum + n), 0)
  if (counted > OBSERVATIONS_MAX) halve(returns)
}

function learnUpdate({ versions, updates }: MatchStatistics, { age, major, majorBefore }: Observation): void {
  if (major < 0 || majorBefore < 0) return
  const [could, moved] = updateOf(versions, majorBefore, major)
  add(updates, age * 2, could)
  add(updates, age * 2 + 1, moved)
}

/** CHANGES what is given. */
export function addObservation(learned: MatchStatistics, lesson: Observation): void {
  const { kind, age, bin } = lesson
  if (lesson.source > 0) noteSource(learned.sources, lesson.source)
  if (kind === 'token') {
    for (let i = 0; i < VALUES; i++) {
      if (((lesson.compared >> i) & 1) === 0) continue
      const at = (age * VALUES + i) * 2
      add(learned.pairs, at + 1)
      if (((lesson.equal >> i) & 1) === 1) add(learned.pairs, at)
    }
    add(learned.networks, age * 3 + Math.min(lesson.network, ELSEWHERE))
    if (lesson.network >= ELSEWHERE) {
      add(learned.providers, age * 2 + 1)
      if (lesson.network === SAME_PROVIDER) add(learned.providers, age * 2)
    }
    learnUpdate(learned, lesson)
    if (lesson.twin >= 0) {
      add(learned.twins, 0, lesson.twin)
      add(learned.twins, 1)
    }
    if (learned.networks.reduce((sum, n) => sum + n, 0) > OBSERVATIONS_MAX) {
      halve(learned.updates)
      halve(learned.pairs)
      halve(learned.networks)
      halve(learned.providers)
      halve(learned.twins)
    }
  }
  if (lesson.blind !== 'none') {
    learned.blind++
    if (lesson.blind === 'found') learned.blindFound++
    if (lesson.blind === 'new') add(learned.blindNews, bin)
    if (lesson.alike === 1) learned.singles++
    if (lesson.alike === 2) learned.doubles++
  }
  learnTraits(learned.rarity, lesson.traits)
  learnStrangers(learned.rarity, lesson.strangerEqual, lesson.strangerCompared)
  learnAudit(learned.audits, lesson.audit)
  if (lesson.hours >= 0) learnReturn(learned, lesson)
  if (lesson.major >= 0) learnVersion(learned.versions, lesson.major)
  if (kind === 'link') learned.links++
  if (kind === 'link' && lesson.isPrivate) learned.privateLinks++
  if (kind === 'new' && lesson.isPrivate) learned.privateNews++
  if (kind === 'new') {
    learned.visitors++
    add(learned.news, bin)
  }
  // Not while few were looked at blindly: who asks for more of those counts on their number never falling back there.
  if (learned.blind > BLIND_KEPT_MIN && learned.links + learned.blind > OBSERVATIONS_MAX) {
    learned.links >>= 1
    learned.privateLinks >>= 1
    learned.privateNews >>= 1
    learned.blind >>= 1
    learned.blindFound >>= 1
    learned.singles >>= 1
    learned.doubles >>= 1
    halve(learned.news)
    halve(learned.blindNews)
  }
}
