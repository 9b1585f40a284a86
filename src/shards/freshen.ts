// Has the owner of a partition store what it has decided, before somebody reads it: a shard of this process, or of one that hears the
// question on the bus.

import type { Ask } from '../bus/ask.ts'
import type { Shards } from './shards.ts'

export interface FreshenNeeds {
  /** null: this process has none. */
  readonly shards: Pick<Shards, 'freshen'> | null
  /** null: no other process decides. */
  readonly ask: Ask | null
}

/**
 * Resolves when the kv has what was answered before of a partition, or a second later: then nobody owns it, or its owner is too slow, and
 * the kv is read as old as it is.
 */
export type Freshen = (partition: number) => Promise<void>

const SUBJECT = 'freshen'
/** A question may be lost on its way. */
const QUESTIONS_MAX = 2
const TIMEOUT_MS = 500

export function openFreshen({ shards, ask }: FreshenNeeds): Freshen {
  /** False where it is not of this process. */
  const freshenOwn = async (partition: number) => (await shards?.freshen(partition)) ?? false
  // Who does not own it says nothing.
  ask?.answer(SUBJECT, async (partition) => (await freshenOwn(partition as number)) || null)
  const enough = (answers: readonly unknown[]) => answers.length > 0

  return async (partition) => {
    if ((await freshenOwn(partition)) || ask === null) return
    for (let asked = 0; asked < QUESTIONS_MAX; asked++) {
      if (enough(await ask.ask(SUBJECT, partition, { enough, timeoutMs: TIMEOUT_MS }))) return
    }
  }
}
