// Accepting what is said of an event afterwards: a command in the log of the partition that decided it, answered when the owner
// has carried it out.

import { ApiError } from '../domain/errors.ts'
import { makeObjectId, type RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { type PollPace, pollUntil, whenAvailable } from '../lib/poll.ts'
import type { Log } from '../log/log.ts'
import { type Annotation, isAnnotated } from '../records/annotations.ts'
import { encodeAnnotation } from '../records/identification.ts'

const PACE: PollPace = { forMs: 8_000, everyMs: 5, everyMsMax: 200, pauseFirst: true }
const RETRY_AFTER_SECONDS = 2

export interface AnnotateNeeds {
  readonly log: Pick<Log, 'append'>
  readonly kv: Pick<Kv, 'get'>
  readonly clock: Clock
  readonly random: RandomBytes
}

/**
 * Resolves when every read of the events, all of one partition and at most APPEND_RECORDS_MAX, shows the changes. Throws ApiError unavailable when that is not known in time: they may
 * still come, and asking again is harmless.
 */
export type Annotate = (partition: number, ...said: Omit<Annotation, 'annotationId'>[]) => Promise<void>

export function openAnnotate({ log, kv, clock, random }: AnnotateNeeds): Annotate {
  return async (partition, ...said) => {
    const annotations = said.map((what): Annotation => ({ ...what, annotationId: makeObjectId('ann', random) }))
    // They are decided in order.
    const last = annotations.at(-1)
    if (last === undefined) return
    try {
      await log.append('identifications', partition, annotations.map(encodeAnnotation))
    } catch (error) {
      throw error instanceof Unavailable ? unavailable() : error
    }
    const done = await pollUntil(
      clock,
      PACE,
      whenAvailable(async () => (await isAnnotated(kv, partition, last.annotationId)) || null),
    )
    if (done === null) throw unavailable()
  }
}

const unavailable = () => new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
