// A cancellation that very many wait for at once: an AbortSignal goes through all its listeners for each that comes or leaves.

export interface Cancel {
  readonly isCancelled: boolean
  /** Called once when it is cancelled, unless what is returned is called before; never when it was cancelled already. */
  whenCancelled(act: () => void): () => void
}

export interface CancelSource extends Cancel {
  cancel(): void
}

export function openCancel(): CancelSource {
  const waiting = new Set<() => void>()
  let isCancelled = false
  return {
    get isCancelled() {
      return isCancelled
    },
    whenCancelled(act) {
      const once = () => act()
      waiting.add(once)
      return () => void waiting.delete(once)
    },
    cancel() {
      isCancelled = true
      const all = [...waiting]
      waiting.clear()
      for (const act of all) act()
    },
  }
}
