// Visitors whom nobody saw for so long that they are forgotten, unless somebody cares about them: the order that tells the owner of
// their partition. No tombstone is left: a genuine token revives its visitor's id.

import type { Env } from '../domain/event.ts'

export const EXPIRING_MAX = 100

/** Asks the owner to forget those of these visitors that nobody saw since. */
export interface Expiry {
  readonly workspace: string
  readonly env: Env
  /** At most EXPIRING_MAX, of one partition. */
  readonly visitorIds: readonly string[]
  /** Milliseconds. */
  readonly before: number
}
