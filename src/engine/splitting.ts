// A split decided: both records as they are from then on, and where each is found.

import type { DecidedSplit } from '../events/record.ts'
import { withoutVisits } from '../identity/parting.ts'
import { newVisitor, type VisitorState } from '../identity/visitor.ts'
import { packVisitor, unpackVisitor } from '../identity/visitor-record.ts'
import { type Splitting, timeOf } from '../records/splits.ts'
import { type HeldVisitor, PARTED_MAX, packHeldVisitor, unpackHeldVisitor } from '../records/visitors.ts'

const NO_STATE = new Uint8Array(0)

/** Of somebody without visits: who has none left, or none that could be decided, still tells whose its tokens are. */
export const blankVisitor = (id: string, atMs: number): HeldVisitor =>
  unpackHeldVisitor(packHeldVisitor([], packVisitor(newVisitor(id, atMs))))

/** null: told twice. `held`: the record the visits are of; null when there is none any more. */
export function decideSplit(order: Splitting, held: HeldVisitor | null): DecidedSplit | null {
  const { parting, ...what } = order
  const { to, requestIds, uncounted = [], generations, at } = order
  if (held?.parted.some((one) => one.to === to)) return null
  const issued = requestIds.map(timeOf)
  const times = requestIds.filter((id) => !uncounted.includes(id)).map(timeOf)
  const [firstAt, lastAt] = [Math.min(...times), Math.max(...times)]
  const parted = [...(held?.parted ?? []), { to, upTo: at, issued, generations }].slice(-PARTED_MAX)
  const none = { toIndexed: [], dropped: [], toState: NO_STATE }
  if (order.isRebuilt === true) {
    const own = held ?? blankVisitor(order.visitorId, Math.min(...issued))
    return { ...what, ...none, state: packHeldVisitor(own.keys, own.state, { ...own, parted }) }
  }
  if (held === null) return null
  const before = unpackVisitor(held.state)
  const wasLatest = lastAt >= before.lastSeenAt
  const moved = parting === null ? plainVisitor(to, times) : unpackVisitor(Buffer.from(parting.state, 'base64'))
  const after = withoutVisits(before, { visits: times.length, firstAt, lastAt, moved, parting })
  // The record looks like its latest visit. Whoever has that visit keeps the look; the other has none until its next visit.
  const [keys, toKeys] = wasLatest ? [[], held.keys] : [held.keys, []]
  const toProfile = wasLatest ? before.profile : null
  const survivor = order.survivor
  return {
    ...what,
    state: packHeldVisitor(keys, packVisitor(after), { ...held, parted }),
    toState: packHeldVisitor(toKeys, packVisitor({ ...moved, profile: toProfile }), { survivor }),
    toIndexed: toKeys,
    dropped: toKeys,
  }
}

/** When nothing but the ids of its visits is known. */
function plainVisitor(id: string, times: readonly number[]): VisitorState {
  const state = newVisitor(id, Math.min(...times))
  return { ...state, lastSeenAt: Math.max(...times), totalVisits: times.length }
}
