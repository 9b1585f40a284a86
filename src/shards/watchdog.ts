// Ends threads of shards that have not turned their loop for too long.

import type { Logger } from '../lib/logger.ts'
import type { Thread } from './thread.ts'

export interface WatchdogNeeds {
  /** Counted up by each shard as long as its loop turns. */
  readonly beats: Int32Array
  /** Checks without a beat after which a shard hangs: checks and not time, so that a process that was stopped blames nobody. */
  readonly missedMax: number
  readonly logger: Logger
}

/** A beat and the check that follows it may come in either order. */
const MISSED_MAX_LEAST = 2

/** The returned function checks the threads of all shards, in their order. */
export function createWatchdog({
  beats,
  missedMax,
  logger,
}: WatchdogNeeds): (threads: readonly (Thread | null)[]) => void {
  const watched = Array.from(beats, () => ({ thread: null as Thread | null, beat: 0, missed: 0, hasBegun: false }))

  /** Its partitions would be decided by nobody, and nothing that was accepted is lost with the process. */
  function giveUp(error: unknown): void {
    logger.error({ error }, 'a shard hangs and cannot be ended: the process ends itself')
    process.kill(process.pid, 'SIGKILL')
  }

  return (threads) => {
    for (const [index, one] of watched.entries()) {
      const thread = threads[index] ?? null
      const beat = Atomics.load(beats, index)
      const isSame = thread === one.thread
      const hasBeaten = beat !== one.beat
      // Until its first beat a thread loads its code, which on a busy machine takes as long as it takes.
      const hasBegun = isSame && (one.hasBegun || hasBeaten)
      const missed = hasBegun && !hasBeaten ? one.missed + 1 : 0
      Object.assign(one, { thread, beat, missed, hasBegun })
      if (thread === null || one.missed < Math.max(MISSED_MAX_LEAST, missedMax)) continue
      one.missed = 0
      logger.error({ shard: index }, 'a shard hangs and is replaced')
      thread.endHanging().catch(giveUp)
    }
  }
}
