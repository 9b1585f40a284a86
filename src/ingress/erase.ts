// Accepting the erasure of a visitor and of all that were merged into it: a command for each in the log of its partition,
// answered when the owners have carried them out.

import { ApiError } from '../domain/errors.ts'
import type { Env } from '../domain/event.ts'
import { homePartition, makeObjectId, type RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { type PollPace, pollUntil, whenAvailable } from '../lib/poll.ts'
import type { Log } from '../log/log.ts'
import { groupOf } from '../records/aliases.ts'
import { readTombstone } from '../records/erasures.ts'
import { encodeErasure } from '../records/identification.ts'

const PACE: PollPace = { forMs: 8_000, everyMs: 10, everyMsMax: 200, pauseFirst: true }
const RETRY_AFTER_SECONDS = 2

export interface EraseNeeds {
  readonly log: Pick<Log, 'append'>
  readonly kv: Pick<Kv, 'get' | 'position'>
  readonly clock: Clock
  readonly random: RandomBytes
  readonly partitions: number
}

export interface ErasedVisitor {
  readonly visitorId: string
  readonly erasureId: string
}

/**
 * Resolves when no read returns anything of the visitor any more, with its erasure and those of the visitors merged into it;
 * of an id that stands for another, with the other's first. Throws ApiError unavailable when that is not known in time: the
 * erasure may still be carried out, and asking again is harmless.
 */
export type Erase = (
  workspace: string,
  env: Env,
  visitorId: string,
) => Promise<readonly [ErasedVisitor, ...ErasedVisitor[]]>

export function openErase({ log, kv, clock, random, partitions }: EraseNeeds): Erase {
  async function eraseOne(workspace: string, env: Env, visitorId: string): Promise<ErasedVisitor> {
    const home = homePartition(visitorId, partitions)
    const order = { erasureId: makeObjectId('era', random), workspace, env, visitorId, at: clock.now() }
    await log.append('identifications', home, [encodeErasure(order)])
    // Stored with the checkpoint that leaves the visitor out. Another erasure that was faster is as good.
    const tombstone = await pollUntil(
      clock,
      PACE,
      whenAvailable(() => readTombstone(kv, home, workspace, env, visitorId)),
    )
    if (tombstone !== null) return { visitorId, erasureId: tombstone.erasureId }
    throw unavailable()
  }

  return async (workspace, env, visitorId) => {
    try {
      const [survivor, ...aliases] = await groupOf(kv, workspace, env, visitorId)
      // Whoever was merged is erased with the survivor behind its back too, but perhaps later than this is answered.
      const [own, others] = await Promise.all([
        eraseOne(workspace, env, survivor),
        Promise.all(aliases.map((id) => eraseOne(workspace, env, id))),
      ])
      return [own, ...others]
    } catch (error) {
      throw error instanceof Unavailable ? unavailable() : error
    }
  }
}

const unavailable = () => new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
