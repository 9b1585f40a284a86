// The engine's side of the kv: entries loaded for a batch, and the lazy, guarded checkpoint of what changed (R2, R3).

import { NONCE_WINDOW_MS } from '../domain/identify.ts'
import type { Key, Kv, Put } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Conflict, Unavailable } from '../lib/failures.ts'
import type { Seq } from '../log/log.ts'
import { DECIDED_TO, ENGINE_POSITION, nonceKey, partitionScope, ruleStatKeys } from '../records/partitions.ts'
import type { Load } from './decider.ts'
import type { Checkpoint } from './partition.ts'

const RETRY_MS = 50
const NONCE_CHUNKS_MAX = 10_000

export function loadFrom(kv: Kv, partition: number): Load {
  const scope = partitionScope(partition)
  return async (wanted) => {
    const entries = await kv.get(
      scope,
      wanted.map((w) => [w.kind, w.id] as const),
    )
    return wanted.map((w, i) => ({ ...w, value: entries[i]?.value ?? null }))
  }
}

/** The nonces of the last minutes, oldest first. */
export async function nonceChunks(kv: Kv, partition: number): Promise<Uint8Array[]> {
  const entries = await kv.scan<Uint8Array>(partitionScope(partition), 'nonce', {
    limit: NONCE_CHUNKS_MAX,
    reverse: true,
  })
  return entries.reverse().map((entry) => entry.value)
}

/**
 * Commits the state as of the events record `seq`, provided the stored position still is `expect`. Resolves with the new
 * position; throws Conflict when another owner has committed.
 */
export async function commitCheckpoint(
  kv: Kv,
  clock: Clock,
  partition: number,
  checkpoint: Checkpoint,
  expect: Seq,
  seq: Seq,
  decidedTo: Seq,
): Promise<Seq> {
  const put: Put[] = checkpoint.dirty.map(({ kind, id, value }) => ({ key: [kind, id] as const, value }))
  const add: (readonly [Key, number])[] = []
  for (const { id, matched, monitored, lastMatchAt } of checkpoint.matches) {
    const keys = ruleStatKeys(id)
    if (matched > 0) {
      add.push([keys.live, matched])
      put.push({ key: keys.last, value: lastMatchAt })
    }
    if (monitored > 0) add.push([keys.monitor, monitored])
  }
  if (checkpoint.nonces !== null) put.push({ key: nonceKey(seq), value: checkpoint.nonces, ttlMs: 2 * NONCE_WINDOW_MS })
  put.push({ key: DECIDED_TO, value: decidedTo })
  const scope = partitionScope(partition)
  const commit = { scope, guard: { source: ENGINE_POSITION, expect, next: seq }, put, add }

  for (;;) {
    try {
      const [committed] = await kv.commit([commit])
      if (committed === true) return seq
      throw new Conflict(`the checkpoint of partition ${partition} is another owner's`)
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      await clock.sleep(RETRY_MS)
      // The commit may have happened: only the guarded position tells.
      const position = await kv.position(scope, ENGINE_POSITION).catch(() => expect)
      if (position === seq && seq !== expect) return seq
    }
  }
}
