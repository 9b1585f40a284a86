// Doing something once at a time, and what came of it.

import { useState } from 'preact/hooks'
import { RefusedError } from './api.ts'
import { notify } from './notices.ts'

export interface Act {
  readonly isBusy: boolean
  readonly error: Error | null
  readonly clear: () => void
  /** Resolves with whether it was done; a second start while the first is under way does nothing. */
  readonly run: (work: () => Promise<unknown>, done?: string) => Promise<boolean>
}

export function useAct(): Act {
  const [isBusy, setIsBusy] = useState(false)
  const [error, setError] = useState<Error | null>(null)
  return {
    isBusy,
    error,
    clear: () => setError(null),
    async run(work, done) {
      if (isBusy) return false
      setIsBusy(true)
      setError(null)
      try {
        await work()
        if (done !== undefined) notify(done)
        return true
      } catch (failure) {
        setError(failure as Error)
        return false
      } finally {
        setIsBusy(false)
      }
    },
  }
}

/** A sentence for a person. */
export function sentenceOf(error: Error): string {
  if (!(error instanceof RefusedError)) return error.message
  const where = error.field === null ? '' : `${error.field}: `
  const when = error.retryAfter === null ? '' : ` Try again in ${error.retryAfter} s.`
  return `${where}${error.message}${when}`
}
