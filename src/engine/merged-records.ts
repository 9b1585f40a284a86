// The other records of visitors that were merged: what rules are told of one of them is the sum of all. Records of this partition
// are in its state; those of others are read from their checkpoints, anew for every batch that needs them, so that they are as
// fresh as what reads show.

import { homePartition } from '../domain/ids.ts'
import type { VisitorState } from '../identity/visitor.ts'
import { unpackVisitor } from '../identity/visitor-record.ts'
import { type HeldVisitor, unpackHeldVisitor } from '../records/visitors.ts'
import { type Counters, unpackCounters } from './velocity/counters.ts'
import { type Visit, visitorIdIn } from './visit.ts'

/** What is asked for by the id of the survivor. */
export const MERGED_RECORDS = 'kin'

/** Everybody who is one visitor, and of those in other partitions the records, packed. */
export interface StoredMergedRecords {
  readonly ids: readonly string[]
  readonly elsewhere: readonly (readonly [visitorId: string, packed: Uint8Array])[]
}

/** The rest of a visitor. */
export interface Relatives {
  readonly visitors: readonly VisitorState[]
  readonly counters: readonly Counters[]
}

type At = Pick<Visit, 'tenant' | 'tokenId' | 'meta'>

interface KinWanted {
  readonly kind: typeof MERGED_RECORDS | 'visitor'
  readonly id: string
}

/** What is asked of the state of the partition. */
export interface MergedRecordsState {
  visitor(id: string): HeldVisitor | null | undefined
  survivor(id: string): string | null | undefined
  missing(kind: 'visitor', id: string): boolean
}

export interface MergedRecords {
  /** What was read for the batch before is forgotten. `joining`: survivors of those whom the batch itself makes aliases. */
  begin(joining: ReadonlyMap<string, string>): void
  /** What is missing to know the relatives of these, named as the state names visitors. */
  wanted(at: At, ids: readonly string[]): KinWanted[]
  load(id: string, stored: StoredMergedRecords): void
  of(at: At, visitorId: string): Relatives
}

const NOBODY: Relatives = { visitors: [], counters: [] }

export function createMergedRecords(
  state: MergedRecordsState,
  { partition, partitions }: { readonly partition: number; readonly partitions: number },
): MergedRecords {
  let groups = new Map<string, { readonly ids: readonly string[]; readonly elsewhere: Map<string, HeldVisitor> }>()
  let coming: ReadonlyMap<string, string> = new Map()

  function groupIdOf({ tenant }: At, id: string): string | null {
    // Hardly any batch merges anybody: to look a text up costs more than to ask.
    const survivor = (coming.size === 0 ? null : coming.get(id)) ?? state.survivor(id) ?? null
    return survivor === null ? null : tenant + survivor
  }

  return {
    begin(joining) {
      groups = new Map()
      coming = joining
    },
    wanted(at, ids) {
      const wanted: KinWanted[] = []
      for (const one of ids) {
        const groupId = groupIdOf(at, one)
        if (groupId === null) continue
        const group = groups.get(groupId)
        if (group === undefined) wanted.push({ kind: MERGED_RECORDS, id: groupId })
        for (const other of group?.ids ?? []) {
          const id = at.tenant + other
          const isHere = homePartition(other, partitions) === partition
          if (isHere && state.missing('visitor', id)) wanted.push({ kind: 'visitor', id })
        }
      }
      return wanted
    },
    load(id, { ids, elsewhere }) {
      groups.set(id, { ids, elsewhere: new Map(elsewhere.map(([one, packed]) => [one, unpackHeldVisitor(packed)])) })
    },
    of(at, visitorId) {
      const groupId = groupIdOf(at, visitorIdIn(at, visitorId))
      const group = groupId === null ? undefined : groups.get(groupId)
      if (group === undefined) return NOBODY
      const visitors: VisitorState[] = []
      const counters: Counters[] = []
      for (const other of group.ids) {
        if (other === visitorId) continue
        const held = group.elsewhere.get(other) ?? state.visitor(at.tenant + other)
        if (!held) continue
        const visitor = unpackVisitor(held.state)
        // All of its visits were split off: its counters age out by themselves.
        if (visitor.totalVisits > 0) visitors.push(visitor)
        if (held.counters.length > 0) counters.push(unpackCounters(held.counters))
      }
      return { visitors, counters }
    },
  }
}
