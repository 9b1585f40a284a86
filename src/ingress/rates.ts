// How many identifications a client address and a workspace may ask for within a second; off unless configured.

import { ApiError } from '../domain/errors.ts'
import { SECOND_MS } from '../lib/durations.ts'
import type { Limits, RateRule } from '../limits/limits.ts'
import type { Caller } from '../records/auth.ts'

const RETRY_AFTER_SECONDS = 1

export interface IngressRates {
  /** 0: any number. */
  readonly perIp: number
  readonly perWorkspace: number
}

/** null at once when nothing is limited; else rejects with rate_limited when there were too many. */
export type TakeIngress = (caller: Caller, address: string) => Promise<void> | null

/** `refused`: told of each that was too many. */
export function openIngressRates(
  limits: Pick<Limits, 'take'>,
  refused: () => void,
  { perIp, perWorkspace }: IngressRates,
): TakeIngress {
  if (perIp === 0 && perWorkspace === 0) return () => null

  async function take(key: string, limit: number): Promise<void> {
    if (limit === 0) return
    const rule: RateRule = { name: 'identify', kind: 'fixed', limit, windowMs: SECOND_MS }
    const { allowed } = await limits.take(key, [rule])
    if (allowed) return
    refused()
    throw new ApiError('rate_limited', { retryAfter: RETRY_AFTER_SECONDS })
  }

  return async ({ workspace }, address) => {
    await take(`${workspace.id}/ip/${address}`, perIp)
    await take(workspace.id, perWorkspace)
  }
}
