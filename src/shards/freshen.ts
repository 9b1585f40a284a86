// Brings the kv up to date with what was decided of a partition, before somebody reads it: the owner, in this process or in one that
// hears the question on the bus, makes its checkpoint.

import type { Ask } from '../bus/ask.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { pollUntil, whenAvailable } from '../lib/poll.ts'
import { within } from '../lib/within.ts'
import type { Log } from '../log/log.ts'
import { ENGINE_POSITION, partitionScope } from '../records/partitions.ts'
import type { Shards } from './shards.ts'

export interface FreshenNeeds {
  /** null: this process has none. */
  readonly shards: Pick<Shards, 'freshen'> | null
  /** null: no other process decides. */
  readonly ask: Ask | null
  readonly log: Pick<Log, 'last'>
  readonly kv: Pick<Kv, 'position'>
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
}

/**
 * Resolves with true when the kv has what was answered before of a partition. With false where it does not get there within `waitMsMax`,
 * since nobody owns the partition or its owner is too slow, or where the partition has lost its position. Its owner is asked once in any
 * case, which takes half a second at most. Fails with Unavailable when log or kv do not answer.
 */
export type Freshen = (partition: number, waitMsMax: number) => Promise<boolean>

const SUBJECT = 'freshen'
/** A question may be lost on its way, or its owner wait for a disk. */
const ANSWER_MS_MAX = 500
const LOOK_MS = 20

export function openFreshen({ shards, ask, log, kv, clock }: FreshenNeeds): Freshen {
  /** null where this process does not own it, or its shard dies meanwhile. */
  const freshenOwn = (partition: number) =>
    whenAvailable(async () => ((await shards?.freshen(partition)) === true ? true : null))()

  // Who does not own it says nothing.
  ask?.answer(SUBJECT, (partition) => freshenOwn(partition as number))
  const enough = (answers: readonly unknown[]) => answers.length > 0

  /** Resolves when somebody has answered, or half a second later. */
  async function askOwner(partition: number): Promise<void> {
    if (ask !== null) return void (await ask.ask(SUBJECT, partition, { enough, timeoutMs: ANSWER_MS_MAX }))
    await within(clock, ANSWER_MS_MAX, freshenOwn(partition))
  }

  return async (partition, waitMsMax) => {
    // What was answered is in the log, whoever decided it. The word of an owner is not enough: one that was frozen for longer than its
    // lease has stored all that it knows of, and learns later that somebody else has decided more (D242).
    const decided = await log.last('events', partition)
    /** null: not yet. */
    const isStored = async (): Promise<boolean | null> => {
      const position = await kv.position(partitionScope(partition), ENGINE_POSITION)
      if (position === null) return false
      return position >= decided ? true : null
    }
    const storedAfterAsking = async () => {
      await askOwner(partition)
      return isStored()
    }
    const pace = { forMs: waitMsMax, everyMs: LOOK_MS }
    return (await isStored()) ?? (await pollUntil(clock, pace, storedAfterAsking)) ?? false
  }
}
