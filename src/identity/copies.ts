// Records that may be of one device: one that was not recognised is given another record, and both are its own.

import type { Life, VisitorState } from './visitor.ts'

/** Never seen but in private windows, which keep nothing: its visits say of no storage that it was alive. */
export const isPrivateOnly = ({ privateVisits, totalVisits }: Pick<Life, 'privateVisits' | 'totalVisits'>): boolean =>
  privateVisits >= totalVisits

/** Whether one device could have left both: one was gone before the other came, or has no storage to be alive. */
function mayBeOne(a: VisitorState, b: VisitorState): boolean {
  if (isPrivateOnly(a) || isPrivateOnly(b)) return true
  return a.lastSeenAt < b.firstSeenAt || b.lastSeenAt < a.firstSeenAt
}

/** A record and how likely a visit is of it. */
export interface Weighed {
  readonly visitor: VisitorState
  readonly chance: number
}

/** How likely the later record is of the same device as the older one: as it was of nobody new, and this one of all that were there before. */
function onenessOf(later: VisitorState, older: Weighed, all: readonly Weighed[]): number {
  let before = 0
  for (const one of all) {
    if (one.visitor.firstSeenAt < later.firstSeenAt && mayBeOne(one.visitor, later)) before += one.chance
  }
  return before === 0 ? 0 : ((1 - later.newness) * older.chance) / before
}

/** How likely two of the records a visit may be of are of one device. */
export function samenessOf(own: Weighed, other: Weighed, all: readonly Weighed[]): number {
  if (other.visitor === own.visitor) return 1
  if (!mayBeOne(own.visitor, other.visitor)) return 0
  const isOlder = other.visitor.firstSeenAt < own.visitor.firstSeenAt
  return isOlder ? onenessOf(own.visitor, other, all) : onenessOf(other.visitor, own, all)
}

/** How likely a visit is of that record's device, under whichever of its records. */
export function deviceChance(own: Weighed, all: readonly Weighed[]): number {
  let chance = 0
  for (const other of all) chance += samenessOf(own, other, all) * other.chance
  return Math.min(1, chance)
}
