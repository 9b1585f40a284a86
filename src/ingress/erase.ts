// Accepting the erasure of a visitor: a command in the log of its partition, answered when the owner has carried it out.

import { ApiError } from '../domain/errors.ts'
import type { Env } from '../domain/event.ts'
import { homePartition, makeObjectId, type RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Log } from '../log/log.ts'
import { readTombstone } from '../records/erasures.ts'
import { encodeErasure } from '../records/identification.ts'

const WAIT_MS_MAX = 8_000
const POLL_MS_MIN = 10
const POLL_MS_MAX = 200
const RETRY_AFTER_SECONDS = 2

export interface EraseNeeds {
  readonly log: Pick<Log, 'append'>
  readonly kv: Pick<Kv, 'get' | 'position'>
  readonly clock: Clock
  readonly random: RandomBytes
  readonly partitions: number
}

/**
 * Resolves with the id of the erasure when no read returns anything of the visitor any more. Throws ApiError unavailable
 * when that is not known in time: the erasure may still be carried out, and asking again is harmless.
 */
export type Erase = (workspace: string, env: Env, visitorId: string) => Promise<string>

export function openErase({ log, kv, clock, random, partitions }: EraseNeeds): Erase {
  return async (workspace, env, visitorId) => {
    const erasureId = makeObjectId('era', random)
    const home = homePartition(visitorId, partitions)
    try {
      await log.append('identifications', home, [
        encodeErasure({ erasureId, workspace, env, visitorId, at: clock.now() }),
      ])
    } catch (error) {
      throw error instanceof Unavailable ? unavailable() : error
    }
    const deadline = clock.monotonic() + WAIT_MS_MAX
    for (let pauseMs = POLL_MS_MIN; clock.monotonic() < deadline; pauseMs = Math.min(POLL_MS_MAX, pauseMs * 2)) {
      await clock.sleep(pauseMs)
      try {
        // Stored with the checkpoint that leaves the visitor out. Another erasure that was faster is as good.
        const tombstone = await readTombstone(kv, home, workspace, env, visitorId)
        if (tombstone !== null) return tombstone.erasureId
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
      }
    }
    throw unavailable()
  }
}

const unavailable = () => new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
