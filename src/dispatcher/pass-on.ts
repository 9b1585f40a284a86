// From what is to be told to who sends it: stored first; then handed over within the process where that is possible, and announced
// to others where it is not.

import type { Bus } from '../bus/bus.ts'
import type { Kv } from '../kv/kv.ts'
import type { Payload } from '../records/deliveries.ts'
import { publishHint } from '../records/hints.ts'
import type { Handover } from './handover.ts'
import type { OutboxEntries } from './match.ts'
import { storeOutbox } from './outbox.ts'

export interface PassOnNeeds {
  readonly kv: Pick<Kv, 'get' | 'commit'>
  readonly bus: Bus
  readonly handover: Handover
}

/** Resolves when all of it is durable. `mayHandOver`: whether every payload may still be sent as it was rendered. */
export async function passOn(
  { kv, bus, handover }: PassOnNeeds,
  told: OutboxEntries,
  nowMs: number,
  mayHandOver = true,
): Promise<void> {
  if (told.deliveries.length === 0) return
  const reserved = handover.reserve(new Set(told.deliveries.map(({ webhookId }) => webhookId)))
  try {
    const { woken, fresh } = await storeOutbox(kv, told, nowMs, reserved.isAwake)
    const handed = mayHandOver ? fresh.filter(({ webhookId }) => reserved.isAwake(webhookId)) : []
    if (handed.length > 0) {
      handover.offer(handed, new Map(told.payloads.map(({ id, payload }): [string, Payload] => [id, payload])))
    }
    // One that somebody else stored before has to be read.
    const silent = handed.length === told.deliveries.length
    if (silent) return
    const quiet = new Set(handed.map(({ webhookId }) => webhookId))
    const unsure = new Set(fresh)
    for (const delivery of told.deliveries) if (!unsure.has(delivery)) quiet.delete(delivery.webhookId)
    for (const [shard, ids] of woken) {
      const webhookIds = [...ids].filter((id) => !quiet.has(id))
      if (webhookIds.length > 0) publishHint(bus, 'deliveries.due', { shard, webhookIds })
    }
  } finally {
    reserved.done()
  }
}
