// How followers hand what they stored a moment ago to the sender of the same process.

import type { Payload } from '../records/deliveries.ts'
import type { NewDelivery } from './match.ts'

/** For followers in the same process: what they store goes on without being read again. */
export interface Handover {
  /** Of these the index has an entry that stays until `done` is called. */
  reserve(webhookIds: Iterable<string>): { readonly isAwake: (webhookId: string) => boolean; done(): void }
  offer(fresh: readonly NewDelivery[], payloads: ReadonlyMap<string, Payload>): void
}
