// Accepting what is said of an event afterwards: a command in the log of the partition that decided it, answered when the owner
// has carried it out.

import { ApiError } from '../domain/errors.ts'
import { makeObjectId, type RandomBytes } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Log } from '../log/log.ts'
import { type Annotation, isAnnotated } from '../records/annotations.ts'
import { encodeAnnotation } from '../records/identification.ts'

const WAIT_MS_MAX = 8_000
const POLL_MS_MIN = 5
const POLL_MS_MAX = 200
const RETRY_AFTER_SECONDS = 2

export interface AnnotateNeeds {
  readonly log: Pick<Log, 'append'>
  readonly kv: Pick<Kv, 'get'>
  readonly clock: Clock
  readonly random: RandomBytes
}

/**
 * Resolves when every read of the event shows the changes. Throws ApiError unavailable when that is not known in time: they may
 * still come, and asking again is harmless.
 */
export type Annotate = (partition: number, what: Omit<Annotation, 'annotationId'>) => Promise<void>

export function openAnnotate({ log, kv, clock, random }: AnnotateNeeds): Annotate {
  return async (partition, what) => {
    const annotation: Annotation = { ...what, annotationId: makeObjectId('ann', random) }
    try {
      await log.append('identifications', partition, [encodeAnnotation(annotation)])
    } catch (error) {
      throw error instanceof Unavailable ? unavailable() : error
    }
    const deadline = clock.monotonic() + WAIT_MS_MAX
    for (let pauseMs = POLL_MS_MIN; clock.monotonic() < deadline; pauseMs = Math.min(POLL_MS_MAX, pauseMs * 2)) {
      await clock.sleep(pauseMs)
      try {
        if (await isAnnotated(kv, partition, annotation.annotationId)) return
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
      }
    }
    throw unavailable()
  }
}

const unavailable = () => new ApiError('unavailable', { retryAfter: RETRY_AFTER_SECONDS })
