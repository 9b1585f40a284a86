// How many bytes of an LMDB environment are in use. Counting its pages after each of hundreds of transactions a second costs more than
// it tells: what was written since the last count is added up, and counted only when somebody asks or it matters.

export interface Usage {
  /** A transaction that may have added as many bytes was made; one that only freed room may pass 0. */
  wrote(bytes: number): void
  /** As of the last transaction. */
  bytes(): number
  /** Whether `bytes` more stay within `bytesMax`. */
  fits(bytes: number, bytesMax: number): boolean
  /** Counts at once. */
  measure(): number
  /** Counts no more: the environment is about to be closed. */
  end(): void
}

/** What is added up are estimates. */
const ESTIMATED_BYTES_MAX = 16 * 1024 * 1024

export function openUsage(count: () => number): Usage {
  let counted = count()
  let estimated = 0
  let isStale = false
  let hasEnded = false

  function measure(): number {
    if (hasEnded) return counted
    counted = count()
    estimated = 0
    isStale = false
    return counted
  }

  const bytes = () => (isStale ? measure() : counted)

  return {
    wrote(added) {
      isStale = true
      estimated += added
      if (estimated > ESTIMATED_BYTES_MAX) measure()
    },
    bytes,
    fits: (more, bytesMax) => counted + estimated + more <= bytesMax || bytes() + more <= bytesMax,
    measure,
    end() {
      bytes()
      hasEnded = true
    },
  }
}
