// Which entries of the state a batch needs, and which known visitors each identification is compared with.

import { unpackVisitor, type VisitorState } from '../identity/visitor.ts'
import { ERASED, type Erasure, erasedId } from '../records/erasures.ts'
import type { Candidates, Case } from './judge.ts'
import type { Loadable, PartitionState, Wanted } from './state.ts'

const EXACT_CANDIDATES_MAX = 8
const LINKED_CANDIDATES_MAX = 32
const PER_KEY_MAX = 10

/** A record that is no identification at all keeps its place in the batch. */
export type Opened =
  | Case
  | { readonly seq: number; readonly erasure: Erasure }
  | { readonly seq: number; readonly broken: string }

export const scopedId = (at: { readonly workspace: string; readonly env: string }, id: string): string =>
  `${at.workspace}/${at.env}/${id}`

export interface Lookup {
  /** What is not in memory yet of all that the batch needs. */
  wanted(batch: readonly Opened[]): Wanted[]
  candidates(c: Case): Candidates
  /** Whether the token names a visitor that was erased: it counts as none. */
  tokenErased(c: Case): boolean
  /** The index keys an erasure is to remove the visitor from. */
  keysOf(erasure: Erasure): readonly string[]
}

export function createLookup(state: PartitionState): Lookup {
  /** Ids to compare with, newest first: look-alikes under the exact key, else whatever shares a blocking key. */
  function candidateIds(c: Case): { exact: string[]; linked: string[] } {
    const { exactKey } = c
    const exact = exactKey === null ? [] : [...(state.index(scopedId(c.meta, exactKey))?.ids ?? [])].reverse()
    if (exact.length > 0) return { exact: exact.slice(0, EXACT_CANDIDATES_MAX), linked: [] }
    const linked = new Set<string>()
    for (const key of c.keys) {
      if (key === exactKey) continue
      for (const id of (state.index(scopedId(c.meta, key))?.ids ?? []).slice(-PER_KEY_MAX).reverse()) {
        if (linked.size < LINKED_CANDIDATES_MAX) linked.add(id)
      }
    }
    return { exact: [], linked: [...linked] }
  }

  const tombstoneOf = ({ workspace, env }: Pick<Case['meta'], 'workspace' | 'env'>, visitorId: string) =>
    erasedId(workspace, env, visitorId)

  /** `erasing`: visitors that this batch erases. */
  function wantedFor(c: Case, erasing: ReadonlySet<string>): Wanted[] {
    const wanted: Wanted[] = []
    const want = (kind: Loadable, scoped: string) => {
      if (state.missing(kind, scoped)) wanted.push({ kind, id: scoped })
    }
    const { token } = c.meta
    let tokenCounts = false
    if (token !== null) {
      const visitor = scopedId(c.meta, token.visitorId)
      want('visitor', visitor)
      const known = state.visitor(visitor)
      // Only of a visitor that is gone can there be a tombstone.
      if (known === null) want(ERASED, tombstoneOf(c.meta, token.visitorId))
      // Only keys this visitor was not indexed under will be written, so only those must be known.
      if (known !== undefined) {
        for (const key of c.keys) if (!known?.keys.includes(key)) want('index', scopedId(c.meta, key))
      }
      tokenCounts = !erasing.has(visitor) && !tokenErased(c)
    }
    if (tokenCounts || wanted.length > 0) return wanted
    for (const key of c.keys) want('index', scopedId(c.meta, key))
    if (wanted.length > 0) return wanted
    const { exact, linked } = candidateIds(c)
    for (const id of [...exact, ...linked]) want('visitor', scopedId(c.meta, id))
    return wanted
  }

  function wantedToErase({ workspace, env, visitorId }: Erasure): Wanted[] {
    const at = { workspace, env }
    const wanted: Wanted[] = []
    const want = (kind: Loadable, id: string) => {
      if (state.missing(kind, id)) wanted.push({ kind, id })
    }
    want('visitor', scopedId(at, visitorId))
    want(ERASED, tombstoneOf(at, visitorId))
    for (const key of state.visitor(scopedId(at, visitorId))?.keys ?? []) want('index', scopedId(at, key))
    return wanted
  }

  function tokenErased(c: Case): boolean {
    const { token } = c.meta
    if (token === null || state.visitor(scopedId(c.meta, token.visitorId))) return false
    return Boolean(state.tombstone(tombstoneOf(c.meta, token.visitorId)))
  }

  function held(id: string): VisitorState | null {
    const visitor = state.visitor(id)
    return visitor ? unpackVisitor(visitor.state) : null
  }

  return {
    wanted(batch) {
      const erasing = new Set<string>()
      for (const one of batch) if ('erasure' in one) erasing.add(scopedId(one.erasure, one.erasure.visitorId))
      const wanted = new Map<string, Wanted>()
      for (const one of batch) {
        if ('broken' in one) continue
        const its = 'erasure' in one ? wantedToErase(one.erasure) : wantedFor(one, erasing)
        for (const w of its) wanted.set(`${w.kind} ${w.id}`, w)
      }
      return [...wanted.values()]
    },
    tokenErased,
    keysOf: (erasure) => state.visitor(scopedId(erasure, erasure.visitorId))?.keys ?? [],
    candidates(c) {
      if (c.meta.token !== null) {
        return { tokenVisitor: held(scopedId(c.meta, c.meta.token.visitorId)), exact: [], linked: [] }
      }
      const { exact, linked } = candidateIds(c)
      const states = (ids: string[]) => ids.map((id) => held(scopedId(c.meta, id))).filter((v) => v !== null)
      return { tokenVisitor: null, exact: states(exact), linked: states(linked) }
    },
  }
}
