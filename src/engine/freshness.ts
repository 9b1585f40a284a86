// Checkpoints that somebody waits for: readers of the kv ask the owner of a partition that what it has decided be there.

export interface Freshness {
  /** Resolves with true when everything that was answered before the call is in the kv; with false when the partition is not, or no more, owned here. */
  ask(partition: number): Promise<boolean>
  /** The owner's side of a partition, for one tenure. */
  own(partition: number): OwnedFreshness
}

export interface OwnedFreshness {
  isAsked(): boolean
  /** Aborts when somebody asks: the owner stops waiting for records. Another one after each checkpoint. */
  signal(): AbortSignal
  /** Decisions were made that no checkpoint has. */
  changed(): void
  /** A checkpoint of all decisions so far is taken; the returned function is called when it is committed. */
  taken(): () => void
  end(): void
}

interface Owned {
  hasChanged: boolean
  /** Checkpoints taken and not committed. */
  committing: number
  waiting: ((isStored: boolean) => void)[]
  asked: AbortController
}

export function createFreshness(): Freshness {
  const owned = new Map<number, Owned>()

  function settle(one: Owned, isStored: boolean): void {
    for (const resolve of one.waiting.splice(0)) resolve(isStored)
  }

  return {
    ask(partition) {
      const one = owned.get(partition)
      if (one === undefined) return Promise.resolve(false)
      if (!one.hasChanged && one.committing === 0) return Promise.resolve(true)
      return new Promise((resolve) => {
        one.waiting.push(resolve)
        if (one.hasChanged) one.asked.abort()
      })
    },
    own(partition) {
      const one: Owned = { hasChanged: false, committing: 0, waiting: [], asked: new AbortController() }
      owned.set(partition, one)
      return {
        isAsked: () => one.waiting.length > 0,
        signal: () => one.asked.signal,
        changed() {
          one.hasChanged = true
        },
        taken() {
          const { waiting } = one
          one.hasChanged = false
          one.waiting = []
          one.committing++
          if (one.asked.signal.aborted) one.asked = new AbortController()
          return () => {
            one.committing--
            for (const resolve of waiting) resolve(true)
            if (!one.hasChanged && one.committing === 0) settle(one, true)
          }
        },
        end() {
          if (owned.get(partition) === one) owned.delete(partition)
          settle(one, false)
        },
      }
    },
  }
}
