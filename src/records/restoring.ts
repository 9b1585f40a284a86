// How far a restore into this deployment has come, kept in the kv from before its first record until all of it is there.

import type { Kv } from '../kv/kv.ts'
import { SYSTEM } from './scopes.ts'

/** A position in `system`: a restore that was begun and not finished must not be taken for a deployment. */
export const RESTORE = 'restore'
export const RESTORING = 0
export const RESTORED = 1

/** What is there then can be neither started, rebuilt nor restored into: all three say this. In a cluster the restore may be at work. */
export const HALF_RESTORED =
  'a restore into this deployment was begun and not finished: unless it still runs, empty the deployment and run restore again'

export const isHalfRestored = async (kv: Pick<Kv, 'position'>): Promise<boolean> =>
  (await kv.position(SYSTEM, RESTORE)) === RESTORING
