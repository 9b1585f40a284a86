// The engine's side of the kv: entries loaded for a batch, and the lazy, guarded checkpoint of what changed (R2, R3).

import { NONCE_WINDOW_MS } from '../domain/identify.ts'
import type { Key, Kv, Put } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Conflict, Unavailable } from '../lib/failures.ts'
import type { Seq } from '../log/log.ts'
import { DECIDED_TO, ENGINE_POSITION, NONCE, nonceKey, partitionScope, ruleStatKeys } from '../records/partitions.ts'
import type { Load } from './decider.ts'
import type { Checkpoint } from './partition.ts'
import type { Loadable } from './state.ts'

const RETRY_MS = 50
const NONCE_CHUNKS_MAX = 10_000
const NONCE_KEPT_MS = 2 * NONCE_WINDOW_MS

/**
 * `loadRuleset` makes the ruleset of `<workspace>/<env>` known to the next step, when there is one. `checkpointed` is the
 * position the kv must still have: in one that was emptied everybody would look like a stranger. Fails with Conflict then.
 */
export function loadFrom(
  kv: Pick<Kv, 'get' | 'position'>,
  partition: number,
  loadRuleset: (name: string) => Promise<void>,
  checkpointed: () => Seq,
): Load {
  const scope = partitionScope(partition)
  return async (wanted) => {
    const entries: { readonly kind: Loadable; readonly id: string }[] = []
    for (const { kind, id } of wanted) {
      if (kind === 'ruleset') await loadRuleset(id)
      else entries.push({ kind, id })
    }
    if (entries.length === 0) return []
    const expect = checkpointed()
    // Asked behind the entries, over one connection in this order: had they been gone, it would be gone too, or another one.
    const [found, position] = await Promise.all([
      kv.get(
        scope,
        entries.map(({ kind, id }) => [kind, id] as const),
      ),
      kv.position(scope, ENGINE_POSITION),
    ])
    if (position === null || position < expect) throw new Conflict(`partition ${partition} lost its records in the kv`)
    return entries.map((entry, at) => ({ ...entry, value: found[at]?.value ?? null }))
  }
}

/**
 * The nonces stored with checkpoints, which go by the age that this process sees: records that expire by themselves would
 * follow a clock that jumps.
 */
export interface NonceChunks {
  /** Of the last minutes, oldest first. */
  read(): Promise<Uint8Array[]>
  /** Notes a chunk stored with the checkpoint at `seq`. */
  stored(seq: Seq): void
  /** Chunks whose time is over; they are not named again. */
  takeOld(): Key[]
}

export function openNonceChunks(kv: Kv, clock: Pick<Clock, 'monotonic'>, partition: number): NonceChunks {
  const chunks: { readonly key: Key; readonly at: number }[] = []
  return {
    async read() {
      const entries = await kv.scan<Uint8Array>(partitionScope(partition), NONCE, {
        limit: NONCE_CHUNKS_MAX,
        reverse: true,
      })
      entries.reverse()
      for (const { key } of entries) chunks.push({ key, at: clock.monotonic() })
      return entries.map(({ value }) => value)
    },
    stored: (seq) => void chunks.push({ key: nonceKey(seq), at: clock.monotonic() }),
    takeOld() {
      const oldest = clock.monotonic() - NONCE_KEPT_MS
      const kept = chunks.findIndex(({ at }) => at > oldest)
      return chunks.splice(0, kept < 0 ? chunks.length : kept).map(({ key }) => key)
    },
  }
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
  chunks: NonceChunks,
  expect: Seq,
  seq: Seq,
  decidedTo: Seq,
): Promise<Seq> {
  const put: Put[] = []
  const drop: Key[] = chunks.takeOld()
  for (const { kind, id, value } of checkpoint.dirty) {
    if (value === null) drop.push([kind, id])
    else put.push({ key: [kind, id], value })
  }
  const add: (readonly [Key, number])[] = []
  for (const { id, matched, monitored, lastMatchAt } of checkpoint.matches) {
    const keys = ruleStatKeys(id)
    if (matched > 0) {
      add.push([keys.live, matched])
      put.push({ key: keys.last, value: lastMatchAt })
    }
    if (monitored > 0) add.push([keys.monitor, monitored])
  }
  if (checkpoint.nonces !== null) {
    put.push({ key: nonceKey(seq), value: checkpoint.nonces })
    chunks.stored(seq)
  }
  put.push({ key: DECIDED_TO, value: decidedTo })
  const scope = partitionScope(partition)
  const commit = { scope, guard: { source: ENGINE_POSITION, expect, next: seq }, put, drop, add }

  for (let unknown = false; ; unknown = true) {
    try {
      // A commit without an answer may have happened, or happen yet: only the guarded position tells.
      if (unknown && seq !== expect && (await kv.position(scope, ENGINE_POSITION)) === seq) return seq
      const [committed] = await kv.commit([commit])
      if (committed === true) return seq
      if (unknown && (await kv.position(scope, ENGINE_POSITION)) === seq) return seq
      throw new Conflict(`the checkpoint of partition ${partition} is another owner's`)
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      await clock.sleep(RETRY_MS)
    }
  }
}
