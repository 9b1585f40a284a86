// Erasing a visitor: the command in `identifications`, the tombstone that stops it from coming back, and the list of erasures
// that ClickHouse has still to execute, which reads exclude meanwhile.

import { createHash } from 'node:crypto'
import type { Env } from '../domain/event.ts'
import { isVisitorId } from '../domain/ids.ts'
import { getAll } from '../kv/get-all.ts'
import type { Kv, KvKey, Put, Scope } from '../kv/kv.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Seq } from '../log/log.ts'
import { ENGINE_POSITION, partitionScope, SINK_POSITION } from './partitions.ts'
import { scanAll, under } from './scopes.ts'

/** What is asked of the owner of the visitor's partition. */
export interface RecordedErasure {
  readonly erasureId: string
  readonly workspace: string
  readonly env: Env
  readonly visitorId: string
  /** Milliseconds. */
  readonly at: number
  /** Of a visitor that is gone: keys under which the index was found to name it all the same. */
  readonly found?: readonly string[]
}

/** What is left of the visitor. */
export interface Tombstone {
  readonly erasureId: string
  readonly at: number
}

/** Collection of tombstones in a partition's scope. */
export const ERASED = 'erased'
/** Collection in a partition's scope: erasures answered, or about to be, that ClickHouse has not executed yet. */
const ERASING = 'erasing'
const HASH_CHARS = 32

/** Names a visitor without being its id, which must not outlive it. */
export const erasedId = (workspace: string, env: Env, visitorId: string): string =>
  `${workspace}/${env}/${createHash('sha256').update(`${workspace}/${env}/${visitorId}`).digest('hex').slice(0, HASH_CHARS)}`

/** As `erasedId` makes it, of a row of events. */
export const ERASED_ID_SQL = `concat(workspace_id, '/', toString(env), '/',
  lower(substring(hex(SHA256(concat(workspace_id, '/', toString(env), '/', visitor_id))), 1, ${HASH_CHARS})))`

/** Throws Unavailable where the partition's records are lost: what is missing then is not known to be absent. */
export async function readTombstone(
  kv: Pick<Kv, 'get' | 'position'>,
  partition: number,
  workspace: string,
  env: Env,
  visitorId: string,
): Promise<Tombstone | null> {
  const scope = partitionScope(partition)
  const [entry] = await kv.get<Tombstone>(scope, [[ERASED, erasedId(workspace, env, visitorId)]])
  refuseWiped(partition, await kv.position(scope, ENGINE_POSITION))
  return entry?.value ?? null
}

/** `position` was read after what it vouches for: read before, or at the same time, it may be from before the loss. */
function refuseWiped(partition: number, position: number | null): void {
  if (position === null)
    throw new Unavailable(`partition ${partition} has no position in the kv: run fingerpost rebuild`)
}

/** Whose name its events may carry besides its own: those it was merged into. */
export interface ErasedNames {
  readonly survivor?: string
  readonly former?: readonly string[]
}
type Announced = RecordedErasure & ErasedNames

type Whose = Pick<RecordedErasure, 'workspace' | 'env' | 'visitorId'>
const erasingKey = ({ workspace, env, visitorId }: Whose): KvKey => [ERASING, erasedId(workspace, env, visitorId)]
/** As earlier releases announced it, by the id itself. */
const plainErasingKey = ({ workspace, env, visitorId }: Whose): KvKey => [ERASING, `${workspace}/${env}/${visitorId}`]

/** Apart from those of the survivor's own erasure, which another range of the log may end. */
const erasingAsKeys = ({ workspace, env, erasureId, survivor, former = [] }: Announced): KvKey[] =>
  (survivor === undefined ? [] : [survivor, ...former]).map((visitorId) => [
    ERASING,
    `${erasedId(workspace, env, visitorId)}/${erasureId}`,
  ])

/** By which reads leave the visitors out. */
export const erasingPuts = (erasures: readonly Announced[]): Put[] =>
  erasures.flatMap((erasure) =>
    [erasingKey(erasure), ...erasingAsKeys(erasure)].map((key) => ({ key, value: erasure.erasureId })),
  )

/**
 * From now on reads know what ClickHouse does not. Called before the decisions are appended behind `last`. False when the sink
 * is past that: then somebody else has decided, and what the sink has executed already must not be announced any more.
 */
export async function announce(
  kv: Pick<Kv, 'commit' | 'position'>,
  partition: number,
  put: readonly Put[],
  last: Seq,
): Promise<boolean> {
  for (;;) {
    const sunk = await kv.position(partitionScope(partition), SINK_POSITION)
    if (sunk === null || sunk > last) return false
    if (await announceAgain(kv, partition, put, sunk)) return true
  }
}

/** The same for decisions found in `events` behind the sink's position `sunk`; false when the sink has moved meanwhile. */
export async function announceAgain(
  kv: Pick<Kv, 'commit'>,
  partition: number,
  put: readonly Put[],
  sunk: Seq,
): Promise<boolean> {
  const guard = { source: SINK_POSITION, expect: sunk, next: sunk }
  const [done] = await kv.commit([{ scope: partitionScope(partition), guard, put }])
  return done === true
}

/** Of visitors by `erasedId` whose records the scope holds: those who are erased, or are about to be. */
export async function erasedAmong(
  kv: Pick<Kv, 'get'>,
  scope: Scope,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const keys = [ERASED, ERASING].flatMap((collection) => ids.map((id): KvKey => [collection, id]))
  const found = await getAll(kv, scope, keys)
  return new Set(found.flatMap((entry) => (entry === null ? [] : [entry.key[1]])))
}

/** What the sink drops, with its own step forward, when ClickHouse holds nothing of these visitors any more. */
export const executedKeys = (erasures: readonly Announced[]): KvKey[] =>
  erasures.flatMap((erasure) => [erasingKey(erasure), ...erasingAsKeys(erasure), plainErasingKey(erasure)])

/**
 * Visitors that reads must leave out although ClickHouse may still have their events, by `erasedId`. Throws Unavailable like
 * `readTombstone`.
 */
export async function listErasing(
  kv: Pick<Kv, 'scan' | 'position'>,
  partitions: number,
  workspace: string,
  env: Env,
): Promise<string[]> {
  const prefix = `${workspace}/${env}`
  async function scan(scope: Scope): Promise<string[]> {
    const ids: string[] = []
    for await (const { key } of scanAll(kv, scope, ERASING, under(prefix))) {
      const [name = ''] = key[1].slice(prefix.length + 1).split('/')
      ids.push(isVisitorId(name) ? erasedId(workspace, env, name) : `${prefix}/${name}`)
    }
    return ids
  }
  async function ofPartition(partition: number): Promise<string[]> {
    const scope = partitionScope(partition)
    const ids = await scan(scope)
    refuseWiped(partition, await kv.position(scope, ENGINE_POSITION))
    return ids
  }
  return (await Promise.all(Array.from({ length: partitions }, (_, partition) => ofPartition(partition)))).flat()
}
