// How long bodies stay: each has an expiry, which moves on as long as a delivery waits for it or may be asked for again, and comes
// nearer when the only webhook that is told by it has it.

import type { Commit, Kv } from '../kv/kv.ts'
import { DAY_MS, HOUR_MS } from '../lib/durations.ts'
import {
  DUE,
  deliveriesScope,
  deliveryKey,
  FAILED_KEPT_MS,
  PAYLOAD_KEPT_MS,
  type Payload,
  type PayloadPlace,
  payloadKey,
  readDueDeliveryId,
  readPayloadEntries,
  type StoredDelivery,
} from '../records/deliveries.ts'
import { mentionsIn } from './mentions.ts'

export const EXTEND_EVERY_MS = 12 * HOUR_MS
/** Long, because nobody extends anything while the service is away. */
const AHEAD_MS = FAILED_KEPT_MS / 2
const AT_ONCE = 200

/** Writes bodies again with another expiry, only where they still are: one that was erased meanwhile must not come back. */
async function keepCommits(
  kv: Pick<Kv, 'get'>,
  places: Iterable<PayloadPlace>,
  ttlMs: number,
): Promise<{ readonly id: string; readonly commit: Commit }[]> {
  return (await readPayloadEntries(kv, places)).map(({ scope, entry: { key, value, version } }) => {
    const mentions = mentionsIn(key[1], value).map(({ id, payload }) => ({ key: payloadKey(id), value: payload }))
    const put = [{ key, value }, ...mentions].map((one) => ({ ...one, ttlMs }))
    return { id: key[1], commit: { scope, check: [[key, version]], put } }
  })
}

/** To be committed with what made them due. */
export async function shortenCommits(
  kv: Pick<Kv, 'get'>,
  places: Iterable<PayloadPlace>,
  ttlMs: number,
): Promise<Commit[]> {
  return (await keepCommits(kv, places, ttlMs)).map(({ commit }) => commit)
}

/** Resolves with the ids of those that are kept. */
async function prolong(kv: Pick<Kv, 'get' | 'commit'>, places: Iterable<PayloadPlace>): Promise<ReadonlySet<string>> {
  const commits = await keepCommits(kv, places, FAILED_KEPT_MS)
  if (commits.length === 0) return new Set()
  const done = await kv.commit(commits.map(({ commit }) => commit))
  // One that was refused was prolonged by somebody else just now, or is gone.
  return new Set(commits.filter((_, i) => done[i] === true).map(({ id }) => id))
}

/** What fails may be asked for again much later, so its body stays as long as it does. The deliveries say how long that is. */
export async function prolongPayloads(
  kv: Pick<Kv, 'get' | 'commit'>,
  deliveries: readonly StoredDelivery[],
  nowMs: number,
): Promise<readonly StoredDelivery[]> {
  const isEnding = ({ payloadUntil }: StoredDelivery) => payloadUntil < nowMs + FAILED_KEPT_MS - DAY_MS
  const kept = await prolong(kv, deliveries.filter(isEnding))
  return deliveries.map((one) =>
    isEnding(one) && kept.has(one.payloadId) ? { ...one, payloadUntil: nowMs + FAILED_KEPT_MS } : one,
  )
}

/** Until when a body stays at least after an attempt that left its delivery so. */
export function payloadUntilOf({ ofMany }: Payload, { status, payloadUntil }: StoredDelivery, nowMs: number): number {
  if (status !== 'delivered') return nowMs + FAILED_KEPT_MS
  return ofMany === true ? payloadUntil : Math.min(payloadUntil, nowMs + PAYLOAD_KEPT_MS)
}

/** Looks at everything that waits for a webhook. May run beside its sender. */
export async function extendPayloadTtls(
  kv: Pick<Kv, 'get' | 'scan' | 'commit'>,
  webhookId: string,
  nowMs: number,
): Promise<void> {
  const scope = deliveriesScope(webhookId)
  for (let after = ''; ; ) {
    const page = await kv.scan(scope, DUE, { after, limit: AT_ONCE })
    const last = page.at(-1)?.key[1]
    if (last === undefined) return
    after = last
    const found = await kv.get<StoredDelivery>(
      scope,
      page.map(({ key }) => deliveryKey(readDueDeliveryId(key[1]).deliveryId)),
    )
    const ending = found.flatMap((entry) =>
      entry !== null && entry.value.status === 'pending' && entry.value.payloadUntil < nowMs + AHEAD_MS ? [entry] : [],
    )
    if (ending.length > 0) {
      const kept = await prolong(
        kv,
        ending.map(({ value }) => value),
      )
      const commits = ending.flatMap(({ key, value, version }): Commit[] => {
        if (!kept.has(value.payloadId)) return []
        const delivery = { ...value, payloadUntil: nowMs + FAILED_KEPT_MS }
        return [{ scope, check: [[key, version]], put: [{ key, value: delivery }] }]
      })
      // One that changed meanwhile is looked at again in the next round.
      if (commits.length > 0) await kv.commit(commits)
    }
    if (page.length < AT_ONCE) return
  }
}
