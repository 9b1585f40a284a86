// The states a webhook's queue goes through in a sender, and every step between them: how much of what is due it holds, whose its
// entry in the index is, and when it is looked at again. Nobody else writes these fields.

/**
 * How much of what is due is in memory:
 * - `partial`: there may be more in the kv
 * - `complete`: all of it is ready, under way or being saved, so what is stored now may be handed over
 * - `loading`: it is being read
 * - `loaded`: it was read to its end, and the load is about to finish
 * - `again`: while it was being read something came that the load may have missed
 */
export type Holding = 'partial' | 'complete' | 'loading' | 'loaded' | 'again'

/** The queue's entry in the index of due webhooks. */
export type DueEntry =
  | { readonly is: 'unseen' }
  /** Another sender wrote it last, and may still take it away. */
  | { readonly is: 'foreign'; readonly version: number }
  /** This sender wrote it anew; its version is known when it is next read. */
  | { readonly is: 'claimed'; readonly version: number | null }

export interface QueueState {
  holding: Holding
  entry: DueEntry
  /** The sender is about to forget this queue and to take its entry away. */
  leaving: boolean
  /** Followers that store something for it just now, trusting that the index has it. */
  reserved: number
  /** Milliseconds since the epoch: there may be something to do then. */
  wakeAt: number
  /** Milliseconds of the monotonic clock since when nothing waits. */
  idleSince: number
}

export const newQueueState = (): QueueState => ({
  holding: 'partial',
  entry: { is: 'unseen' },
  leaving: false,
  reserved: 0,
  wakeAt: 0,
  idleSince: Number.POSITIVE_INFINITY,
})

export const isLoading = ({ holding }: QueueState): boolean =>
  holding === 'loading' || holding === 'loaded' || holding === 'again'

export const isComplete = ({ holding }: QueueState): boolean => holding === 'complete' || holding === 'loaded'

/** Something may be due that is not in memory; a load that is under way goes on to read it. */
export function missSomething(state: QueueState): void {
  state.holding = isLoading(state) ? 'again' : 'partial'
}

/** What was in memory is in the kv alone again: the load under way, if any, need not be repeated for it. */
export function giveBack(state: QueueState): void {
  if (state.holding === 'complete') state.holding = 'partial'
  else if (state.holding === 'loaded') state.holding = 'loading'
}

export function beginLoad(state: QueueState): void {
  state.holding = 'loading'
}

/** The load under way has read everything that was due when it began. */
export function reachEnd(state: QueueState): void {
  if (state.holding === 'loading') state.holding = 'loaded'
}

export function endLoad(state: QueueState): void {
  state.holding = state.holding === 'loaded' ? 'complete' : 'partial'
}

/** There may be something to do at `at`, or sooner where that is known already. */
export function wakeBy(state: QueueState, at: number): void {
  state.wakeAt = Math.min(state.wakeAt, at)
}

/** Returns false when the entry has been seen with this version. */
export function seeEntry(state: QueueState, version: number, dueAt: number): boolean {
  if (state.entry.is !== 'unseen' && state.entry.version === version) return false
  // A time of 0 is that of a queue nobody has looked at yet.
  state.wakeAt = state.wakeAt === 0 ? dueAt : Math.min(state.wakeAt, dueAt)
  state.entry = { is: state.entry.is === 'claimed' ? 'claimed' : 'foreign', version }
  return true
}

export function claimEntry(state: QueueState): void {
  state.entry = { is: 'claimed', version: null }
}

/** The version under which the entry may be taken away; null: it must not be there. */
export const entryVersion = ({ entry }: QueueState): number | null => (entry.is === 'unseen' ? null : entry.version)

/** Returns true when the index has the sender's own entry and will keep it. */
export const isIndexed = ({ entry, leaving }: QueueState): boolean =>
  entry.is === 'claimed' && entry.version !== null && !leaving
