// Checkpoints that somebody waits for: readers of the kv ask the owner of a partition that what it has decided be there.

export interface Freshness {
  /** Resolves with true when everything that was answered before the call is in the kv; with false when the partition is not, or no more, owned here. */
  ask(partition: number): Promise<boolean>
  /** The owner's side of a partition, for one tenure, which `signal` ends. */
  own(partition: number, signal: AbortSignal): OwnedFreshness
}

export interface OwnedFreshness {
  isAsked(): boolean
  /** Aborts when somebody asks or the tenure ends: the owner stops waiting for records. Another one after each checkpoint. */
  signal(): AbortSignal
  /** Decisions were made that no checkpoint has. */
  changed(): void
  /** A checkpoint of all decisions so far is taken; the returned function is called when it is committed. */
  taken(): () => void
  end(): void
}

interface Owned {
  hasChanged: boolean
  /** Checkpoints, counted from the first of the tenure; they are committed in this order. */
  taken: number
  committed: number
  /** Who waits, each until the checkpoint is committed that has what was decided before. */
  waiting: { readonly checkpoint: number; readonly resolve: (isStored: boolean) => void }[]
  asked: AbortController
}

export function createFreshness(): Freshness {
  const owned = new Map<number, Owned>()

  return {
    ask(partition) {
      const one = owned.get(partition)
      if (one === undefined) return Promise.resolve(false)
      const checkpoint = one.hasChanged ? one.taken + 1 : one.taken
      if (checkpoint <= one.committed) return Promise.resolve(true)
      return new Promise((resolve) => {
        one.waiting.push({ checkpoint, resolve })
        if (one.hasChanged) one.asked.abort()
      })
    },
    own(partition, signal) {
      const one: Owned = { hasChanged: false, taken: 0, committed: 0, waiting: [], asked: new AbortController() }
      owned.set(partition, one)
      // One listener for the whole tenure: what `AbortSignal.any` makes of each question would stay with the signal of the process.
      const endWaiting = () => one.asked.abort()
      signal.addEventListener('abort', endWaiting)
      return {
        isAsked: () => one.waiting.some(({ checkpoint }) => checkpoint > one.taken),
        signal: () => one.asked.signal,
        changed() {
          one.hasChanged = true
        },
        taken() {
          one.hasChanged = false
          const checkpoint = ++one.taken
          if (one.asked.signal.aborted && !signal.aborted) one.asked = new AbortController()
          return () => {
            one.committed = checkpoint
            const { waiting } = one
            one.waiting = waiting.filter((its) => its.checkpoint > checkpoint)
            for (const its of waiting) if (its.checkpoint <= checkpoint) its.resolve(true)
          }
        },
        end() {
          signal.removeEventListener('abort', endWaiting)
          if (owned.get(partition) === one) owned.delete(partition)
          for (const { resolve } of one.waiting.splice(0)) resolve(false)
        },
      }
    },
  }
}
