// Whether a request of a page may go on: the identification it names is read from the service, never believed from the browser.

import { FingerpostError } from './call.ts'
import type { Fingerpost } from './client.ts'
import type { Event } from './types.ts'

export interface JudgeOptions {
  readonly fingerpost: Pick<Fingerpost, 'events'>
  /** An older identification counts as none; default 300,000. */
  readonly ageMsMax?: number
  /** Whether requests pass while the service gives no answer; default true. A forged or missing identification never passes. */
  readonly failOpen?: boolean
  /** Milliseconds since the epoch; default: the time of this machine. */
  readonly now?: () => number
}

export type Judgement =
  | { readonly passes: true; readonly event: Event }
  /** The service gave no answer, and `failOpen` lets the request pass. */
  | { readonly passes: true; readonly event: null; readonly error: FingerpostError }
  | { readonly passes: false; readonly reason: 'block' | 'challenge'; readonly event: Event }
  | { readonly passes: false; readonly reason: 'missing' | 'unknown' | 'stale'; readonly event: null }
  | { readonly passes: false; readonly reason: 'unavailable'; readonly event: null; readonly error: FingerpostError }

const AGE_MS_MAX = 300_000
const REQUEST_ID = /^req_[0-9A-Z]{26}$/

/**
 * `requestId` is what the page sent along. An identification may be named more than once until it is too old: where each may count
 * once only, remember those that were used.
 */
export async function judge(requestId: unknown, options: JudgeOptions): Promise<Judgement> {
  const { fingerpost, ageMsMax = AGE_MS_MAX, failOpen = true, now = Date.now } = options
  if (typeof requestId !== 'string' || !REQUEST_ID.test(requestId)) return refused('missing')
  let event: Event
  try {
    event = await fingerpost.events.get(requestId)
  } catch (error) {
    if (!(error instanceof FingerpostError)) throw error
    if (error.status === 404) return refused('unknown')
    const isAway = error.status === 0 || error.status === 202 || error.status === 429 || error.status >= 500
    // A wrong key or address is a mistake of the set-up that must show.
    if (!isAway) throw error
    return failOpen
      ? { passes: true, event: null, error }
      : { passes: false, reason: 'unavailable', event: null, error }
  }
  if (now() - Date.parse(event.timestamp) > ageMsMax) return refused('stale')
  const { verdict } = event
  if (verdict === 'block' || verdict === 'challenge') return { passes: false, reason: verdict, event }
  return { passes: true, event }
}

const refused = (reason: 'missing' | 'unknown' | 'stale'): Judgement => ({ passes: false, reason, event: null })
