// Which entries of the state a batch needs, and which known visitors each identification is compared with.

import { unpackVisitor, type VisitorState } from '../identity/visitor.ts'
import type { Candidates, Case } from './judge.ts'
import type { PartitionState, Wanted } from './state.ts'

const EXACT_CANDIDATES_MAX = 8
const LINKED_CANDIDATES_MAX = 32
const PER_KEY_MAX = 10

/** A record that is no identification at all keeps its place in the batch. */
export type Opened = Case | { readonly seq: number; readonly broken: string }

export const scopedId = (at: { readonly workspace: string; readonly env: string }, id: string): string =>
  `${at.workspace}/${at.env}/${id}`

export interface Lookup {
  /** What is not in memory yet of all that the batch needs. */
  wanted(batch: readonly Opened[]): Wanted[]
  candidates(c: Case): Candidates
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

  function wantedFor(c: Case): Wanted[] {
    const wanted: Wanted[] = []
    const want = (kind: Wanted['kind'], id: string) => {
      const scoped = scopedId(c.meta, id)
      if (state.missing(kind, scoped)) wanted.push({ kind, id: scoped })
    }
    if (c.meta.token !== null) {
      const { visitorId } = c.meta.token
      want('visitor', visitorId)
      const known = state.visitor(scopedId(c.meta, visitorId))
      // Only keys this visitor was not indexed under will be written, so only those must be known.
      if (known !== undefined) for (const key of c.keys) if (!known?.keys.includes(key)) want('index', key)
      return wanted
    }
    for (const key of c.keys) want('index', key)
    if (wanted.length > 0) return wanted
    const { exact, linked } = candidateIds(c)
    for (const id of [...exact, ...linked]) want('visitor', id)
    return wanted
  }

  function held(id: string): VisitorState | null {
    const visitor = state.visitor(id)
    return visitor ? unpackVisitor(visitor.state) : null
  }

  return {
    wanted(batch) {
      const wanted = new Map<string, Wanted>()
      for (const c of batch) {
        if ('broken' in c) continue
        for (const w of wantedFor(c)) wanted.set(`${w.kind} ${w.id}`, w)
      }
      return [...wanted.values()]
    },
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
