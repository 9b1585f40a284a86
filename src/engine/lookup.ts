// Which entries of the state a batch needs, and which known visitors each identification is compared with.

import { hash32 } from '../domain/ids.ts'
import { mayBeOneLife, mayHeal } from '../identity/healing.ts'
import { isSparse } from '../identity/keys.ts'
import { newMatchStatistics } from '../identity/match-statistics.ts'
import { worthHiding } from '../identity/observation.ts'
import { type Shortlist, shortlist } from '../identity/shortlist.ts'
import { mayTeach, sourceOf } from '../identity/sources.ts'
import type { VisitorState } from '../identity/visitor.ts'
import { roomFor } from '../lib/room.ts'
import { ERASED, erasedId } from '../records/erasures.ts'
import { earlierKeysWith, type HeldVisitor, ownerOfToken, tooEarly } from '../records/visitors.ts'
import type { Candidates } from './decide-event.ts'
import { type HeldIndex, readIndex } from './index-entry.ts'
import { keysBeside } from './items.ts'
import type { MergedRecords } from './merged-records.ts'
import type { Loadable, PartitionState, WantedEntry } from './state.ts'
import type { FailedVisit, Visit } from './visit.ts'
import type { Annotating, VisitorCommand, VisitorCommands } from './visitor-commands.ts'

const NATIVE_CANDIDATES_MAX = 4
/** One in so many visits with a token that can teach is also looked at without it, to learn how well that goes; until enough were, all. */
const BLIND_EVERY = 16
const BLIND_FIRST = 400

const NO_TEXTS: readonly string[] = []
const NOBODY: readonly VisitorState[] = []
const NO_TOTALS: Readonly<Record<string, number>> = {}

/** A record that is no identification at all keeps its place in the batch. */
export type OpenedRecord =
  | Visit
  | FailedVisit
  | VisitorCommand
  | Annotating
  | { readonly seq: number; readonly broken: string }

export const isOrder = (one: OpenedRecord): one is VisitorCommand =>
  'erasure' in one || 'aliasing' in one || 'splitting' in one || 'expiry' in one || 'unnaming' in one

interface Listing {
  readonly keys: readonly string[]
  readonly ids: readonly string[]
  /** As they were when the list was made. */
  readonly entries: (HeldIndex | null | undefined)[]
  /** `indexChanges` then. */
  changes: number
  made: Listed | null
}

interface Listed extends Shortlist {
  /** Where the state has its visitors: to look a text up by, once its hash is known, is not making one anew. */
  readonly visitors: readonly string[]
}

export interface Lookup {
  /** Lets go of the visits of a batch, and of whom they were compared with. */
  forget(): void
  /**
   * What is not in memory yet of what these need, and who of them needs it: as long as nothing leaves the state, the others need
   * nothing more. `unsettled`: visitors that their batch erases or splits.
   */
  wanted(
    some: readonly OpenedRecord[],
    unsettled: ReadonlySet<string>,
  ): { readonly wanted: WantedEntry[]; readonly lacking: OpenedRecord[] }
  candidates(c: Visit): Candidates
  /** The same with its token naming the visitor whose it is since a split; without one that is nobody's. */
  settled(c: Visit): Visit
  /** Whether the token names a visitor that was erased: it counts as none. */
  tokenErased(c: Visit): boolean
}

export function createLookup(
  state: PartitionState,
  orders: VisitorCommands,
  mergedRecords: Pick<MergedRecords, 'wanted'>,
  heals: boolean,
): Lookup {
  /** Visits with a token whose candidates were asked for: without them a visit is compared with nobody. */
  let looked = new Set<Visit['body']>()

  /** Without handing it out. */
  function remembered(id: string): VisitorState | null {
    const visitor = state.peek(id)
    return visitor && visitor.totalVisits > 0 ? visitor : null
  }

  function isBlind({ meta, tokenId, familyId, atMs, ip }: Visit): boolean {
    if (tokenId === null) return false
    // Nothing is learned of a visitor nobody remembers: its genuine token brings it back.
    const visitor = remembered(tokenId)
    if (visitor === null || !worthHiding(visitor, atMs)) return false
    const statistics = state.learned(familyId)
    const isChosen = (statistics?.blind ?? 0) < BLIND_FIRST || hash32(meta.requestId) % BLIND_EVERY === 0
    return isChosen && (!statistics || mayTeach(statistics.sources, sourceOf(ip)))
  }

  /** Whether the visit may show that its visitor is one who was known before. Whom people merged stays as they said. */
  function isHealing({ tokenId }: Visit): boolean {
    if (!heals || tokenId === null || state.survivor(tokenId)) return false
    const visitor = remembered(tokenId)
    return visitor !== null && mayHeal(visitor)
  }

  let listings = new Map<Visit, Listing>()

  function listingOf(c: Visit): Listing {
    const known = listings.get(c)
    if (known !== undefined) return known
    const keys = c.nativeKey === null ? c.keys : c.keys.filter((key) => key !== c.nativeKey)
    const listing = {
      keys,
      ids: keys.map((key) => c.tenant + key),
      entries: roomFor<HeldIndex>(keys.length),
      changes: 0,
      made: null,
    }
    listings.set(c, listing)
    return listing
  }

  /** Asked for more than once per visit: made again only when an entry has changed meanwhile. */
  function candidatesOf(c: Visit): Listed {
    const listing = listingOf(c)
    const { keys, ids, entries } = listing
    const changes = state.indexChanges()
    if (listing.made !== null && listing.changes === changes) return listing.made
    listing.changes = changes
    for (let i = 0; i < ids.length; i++) {
      const entry = state.index(ids[i] as string)
      if (entry !== entries[i]) listing.made = null
      entries[i] = entry
    }
    if (listing.made === null) {
      const read = entries.map((entry) => (entry ? readIndex(entry) : null))
      const { ids: found, exact, totals } = shortlist(keys, read)
      listing.made = { ids: found, exact, totals, visitors: found.map((id) => c.tenant + id) }
    }
    return listing.made
  }

  /** Whether nobody is compared with it by looks, of which it tells too few. */
  const isAlone = ({ meta, attributes }: Visit): boolean => meta.token === null && isSparse(attributes.profile)

  /** Found by the id an app sent, newest first, as the state names visitors. */
  function nativeVisitors({ tenant, nativeKey }: Visit): readonly string[] {
    if (nativeKey === null) return NO_TEXTS
    const entry = state.index(tenant + nativeKey)
    const ids = entry ? readIndex(entry).ids.toReversed().slice(0, NATIVE_CANDIDATES_MAX) : []
    return ids.map((id) => tenant + id)
  }

  const tombstoneOf = ({ workspace, env }: Pick<Visit['meta'], 'workspace' | 'env'>, visitorId: string) =>
    erasedId(workspace, env, visitorId)

  function settled(c: Visit): Visit {
    const { meta, tenant } = c
    let { token } = meta
    let { tokenId } = c
    for (;;) {
      const held = tokenId === null ? null : state.visitor(tokenId, c.keys)
      if (token === null || !held) break
      const visitorId = ownerOfToken(held, token)
      if (visitorId === token.visitorId) break
      token = visitorId === null ? null : { ...token, visitorId }
      tokenId = visitorId === null ? null : tenant + visitorId
    }
    return token === meta.token ? c : { ...c, meta: { ...meta, token }, tokenId }
  }

  /** What the visit asked about last lacks: to be read before the next one is asked about. */
  const lacked: WantedEntry[] = []

  function want(kind: Loadable, scoped: string): void {
    if (state.missing(kind, scoped)) lacked.push({ kind, id: scoped })
  }

  /** Entries it leaves, being found under too many others since. */
  function wantLeft(held: HeldVisitor | null | undefined, { tenant, keys }: Visit): void {
    if (held) for (const key of tooEarly(earlierKeysWith(held, keys))) want('index', tenant + key)
  }

  function wantedFor(given: Visit, unsettled: ReadonlySet<string>): readonly WantedEntry[] {
    const c = settled(given)
    lacked.length = 0
    const { token } = c.meta
    const { tokenId } = c
    let tokenCounts = false
    want('learned', c.familyId)
    if (token !== null && tokenId !== null) {
      const known = state.visitor(tokenId)
      if (known === undefined) lacked.push({ kind: 'visitor', id: tokenId })
      // Only of a visitor that is gone can there be a tombstone.
      if (known === null) want(ERASED, tombstoneOf(c.meta, token.visitorId))
      // Only keys this visitor was not indexed under will be written, so only those must be known.
      if (known !== undefined) {
        for (const key of keysBeside(c.keys, known?.keys ?? NO_TEXTS)) want('index', c.tenant + key)
        wantLeft(known, c)
      }
      const named =
        unsettled.size > 0 && [given.meta.token, token].some((one) => one && unsettled.has(c.tenant + one.visitorId))
      tokenCounts = !named && !tokenErased(c)
    }
    if (lacked.length > 0) return lacked
    const named = tokenId === null ? NO_TEXTS : [tokenId]
    const blind = !tokenCounts || isBlind(c)
    if (!blind && !isHealing(c)) return mergedRecords.wanted(c, named)
    for (const id of listingOf(c).ids) want('index', id)
    if (c.nativeKey !== null) want('index', c.tenant + c.nativeKey)
    if (lacked.length > 0) return lacked
    if (!blind && !hasOtherLife(c)) return lacked.length > 0 ? lacked : mergedRecords.wanted(c, named)
    looked.add(c.body)
    const alike = isAlone(c) ? NO_TEXTS : candidatesOf(c).visitors
    const native = nativeVisitors(c)
    const found = native.length === 0 ? alike : [...alike, ...native]
    for (const id of found) {
      want('visitor', id)
      if (state.mayHaveManyKeys(id)) wantLeft(state.visitor(id), c)
    }
    return lacked.length > 0 ? lacked : mergedRecords.wanted(c, named.length === 0 ? found : [...named, ...found])
  }

  /** Whether one of those that a visit which may heal would be compared with may be its visitor by when it was here: mostly none. */
  function hasOtherLife(c: Visit): boolean {
    const own = c.tokenId === null ? null : remembered(c.tokenId)
    if (own === null) return false
    for (const id of candidatesOf(c).visitors) {
      if (id === c.tokenId) continue
      const other = state.life(id)
      if (other === undefined) want('visitor', id)
      else if (other !== null && mayBeOneLife(own, other)) return true
    }
    return false
  }

  function tokenErased(c: Visit): boolean {
    const { token } = c.meta
    if (token === null || c.tokenId === null || state.visitor(c.tokenId)) return false
    return Boolean(state.tombstone(tombstoneOf(c.meta, token.visitorId)))
  }

  function known(id: string): VisitorState | null {
    const visitor = state.known(id)
    // All of its visits were another's.
    return !visitor || visitor.totalVisits === 0 ? null : visitor
  }

  /** Of records that are one visitor, the one seen last, or that of the token: as rivals none of them would be found. */
  function oneOfEach({ tenant, tokenId }: Visit, ids: readonly string[]): ReadonlyMap<string, VisitorState> {
    const chosen = new Map<string, VisitorState>()
    const latest = new Map<string, string>()
    for (const id of ids) {
      const visitor = known(id)
      if (visitor === null) continue
      const survivor = state.survivor(id) ?? null
      const rival = survivor === null ? undefined : latest.get(tenant + survivor)
      if (rival !== undefined) {
        const isLater = visitor.lastSeenAt > (chosen.get(rival)?.lastSeenAt ?? 0)
        if (rival === tokenId || (id !== tokenId && !isLater)) continue
        chosen.delete(rival)
      }
      if (survivor !== null) latest.set(tenant + survivor, id)
      chosen.set(id, visitor)
    }
    return chosen
  }

  return {
    forget() {
      if (looked.size > 0) looked = new Set()
      if (listings.size > 0) listings = new Map()
    },
    wanted(some, unsettled) {
      const wanted = new Map<string, WantedEntry>()
      const lacking: OpenedRecord[] = []
      for (const one of some) {
        if ('broken' in one || 'failed' in one) continue
        const its = 'meta' in one ? wantedFor(one, unsettled) : orders.wanted(one)
        if (its.length === 0) continue
        lacking.push(one)
        for (const w of its) wanted.set(`${w.kind} ${w.id}`, w)
      }
      return { wanted: [...wanted.values()], lacking }
    },
    settled,
    tokenErased,
    candidates(c) {
      const { token } = c.meta
      const statistics = state.learned(c.familyId) ?? newMatchStatistics()
      // Asked first: what is peeked at is handed out with the next line.
      const blind = looked.has(c.body) && isBlind(c)
      const healing = looked.has(c.body) && isHealing(c)
      const tokenVisitor = c.tokenId === null ? null : known(c.tokenId)
      const native = token === null ? nativeVisitors(c).flatMap((id) => known(id) ?? []) : NOBODY
      if ((token !== null && !blind && !healing) || isAlone(c)) {
        return {
          tokenVisitor,
          exact: NOBODY,
          linked: NOBODY,
          native,
          totals: NO_TOTALS,
          statistics,
          blind,
          healing,
        }
      }
      const { ids, visitors, exact, totals } = candidatesOf(c)
      const chosen = oneOfEach(c, visitors)
      const [alike, linked]: [VisitorState[], VisitorState[]] = [[], []]
      for (let i = 0; i < visitors.length; i++) {
        const visitor = chosen.get(visitors[i] as string)
        if (visitor !== undefined) (exact.includes(ids[i] as string) ? alike : linked).push(visitor)
      }
      return {
        tokenVisitor,
        exact: alike,
        linked,
        native,
        totals,
        statistics,
        blind,
        healing,
      }
    },
  }
}
