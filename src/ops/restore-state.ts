// The records of a partition out of a backup: its state as it was, then the decisions that were not in it yet.

import { homePartition } from '../domain/ids.ts'
import { openStateReplay } from '../engine/replay.ts'
import { type DecidedSplit, decodeEventsRecord, type EventsRecord } from '../events/record.ts'
import type { Kv, KvKey, Put } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unreadable } from '../lib/failures.ts'
import type { Seq } from '../log/log.ts'
import type { Annotation } from '../records/annotations.ts'
import { ERASED, erasedId } from '../records/erasures.ts'
import { NONCE, partitionScope, ruleStatKeys, visitorKey } from '../records/partitions.ts'
import { readLogRecords, readValues } from './backup-files.ts'
import type { BackupFile } from './backup-format.ts'
import { type Erased, type Inserts, isErased } from './restore-rows.ts'

export interface RestoreStateNeeds {
  readonly kv: Pick<Kv, 'get' | 'commit'>
  readonly clock: Pick<Clock, 'monotonic' | 'now'>
  readonly partitions: number
  readonly inserts: Inserts
  readonly erased: Erased
}

const PUT_KEYS = 500
const ID_CHARS_MAX = 400
const [RULESTAT] = ruleStatKeys('').live
const COUNTERS = [ruleStatKeys('').live[1], ruleStatKeys('').monitor[1]]
const utf8 = new TextDecoder()

/** `stateAt`: the state in the backup holds what was decided up to this record of `events`. */
export async function restoreState(
  needs: RestoreStateNeeds,
  dir: string,
  files: { readonly state: BackupFile; readonly events: BackupFile },
  partition: number,
  stateAt: Seq,
): Promise<void> {
  const { kv, clock, partitions, inserts, erased } = needs
  const scope = partitionScope(partition)
  let nonceChunks = 0
  // Before all that the new owner will write, and never in its way.
  const nextNonceKey = (): KvKey => [NONCE, `-${String(++nonceChunks).padStart(15, '0')}`]

  let put: Put[] = []
  let add: (readonly [KvKey, number])[] = []
  async function write(): Promise<void> {
    await kv.commit([{ scope, put, add }])
    put = []
    add = []
  }
  for await (const value of readValues(dir, files.state)) {
    const entry = checkEntry(value, partition, partitions)
    const [collection, id] = entry.key
    if (collection === 'visitor' && isErasedId(erased, id)) continue
    if (collection === RULESTAT && COUNTERS.some((end) => id.endsWith(end))) add.push([entry.key, Number(entry.value)])
    else if (collection === 'index') put.push({ ...entry, value: withoutErased(erased, id, entry.value) })
    else put.push({ ...entry, key: collection === NONCE ? nextNonceKey() : entry.key })
    if (put.length + add.length >= PUT_KEYS) await write()
  }
  for (const [id, { erasureId, at, partition: home }] of erased) {
    if (home === partition) put.push({ key: [ERASED, id], value: { erasureId, at } })
    if (put.length >= PUT_KEYS) await write()
  }
  await write()

  async function moveAgain(split: DecidedSplit): Promise<void> {
    await inserts.move(split)
    const { workspace, env, to } = split
    const tombstone = erased.get(erasedId(workspace, env, to))
    if (tombstone !== undefined) await inserts.erase({ ...tombstone, workspace, env, visitorId: to }, partition)
  }
  const annotations: Annotation[] = []
  const replay = openStateReplay({ kv, clock, partition, partitions, nextNonceKey })
  for await (const { seq, bytes } of readLogRecords(dir, files.events)) {
    const record = decoded(bytes)
    if (seq > stateAt) await replay.apply([bytes])
    await inserts.events(linesOf(record, erased))
    if (record.erasure !== undefined) await inserts.erase(record.erasure, partition)
    if (record.annotation !== undefined) annotations.push(record.annotation)
    if (record.split !== undefined) await moveAgain(record.split)
    const named = record.split === undefined ? record.items : [{ ...record.split, visitorId: record.split.to }]
    const gone = named.filter((item) => isErased(erased, item.workspace, item.env, item.visitorId))
    if (gone.length === 0) continue
    await replay.flush()
    await kv.commit([{ scope, drop: gone.map((item) => visitorKey(item.workspace, item.env, item.visitorId)) }])
  }
  await replay.flush()
  await inserts.annotate(annotations)
}

function decoded(bytes: Uint8Array): EventsRecord {
  try {
    return decodeEventsRecord(bytes)
  } catch (cause) {
    throw new Unreadable('the backup holds a record of events that cannot be read', { cause })
  }
}

function* linesOf({ items, rows }: EventsRecord, erased: Erased): Generator<string> {
  let at = 0
  for (const { rowBytes, workspace, env, visitorId } of items) {
    const line = utf8.decode(rows.subarray(at, at + rowBytes - 1))
    at += rowBytes
    if (!isErased(erased, workspace, env, visitorId)) yield line
  }
}

/** `<workspace>/<env>/<visitorId>` */
function isErasedId(erased: Erased, id: string): boolean {
  const [workspace = '', env, visitorId = ''] = id.split('/')
  return isErased(erased, workspace, env === 'test' ? 'test' : 'live', visitorId)
}

/** An entry of the index without those who were erased since. */
function withoutErased(erased: Erased, id: string, value: unknown): unknown {
  const [total, ...ids] = value as readonly [number, ...string[]]
  const tenant = id.slice(0, id.lastIndexOf('/') + 1)
  const left = ids.filter((visitorId) => !isErasedId(erased, tenant + visitorId))
  return left.length === ids.length ? value : [total - ids.length + left.length, ...left]
}

/** Throws Unreadable for an entry that no partition holds. */
function checkEntry(value: unknown, partition: number, partitions: number): { key: KvKey; value: unknown } {
  const [collection, id, held] = Array.isArray(value) ? (value as readonly unknown[]) : []
  const fits = FORMS.get(collection as string)
  if (typeof id !== 'string' || id.length === 0 || id.length > ID_CHARS_MAX || fits?.(held) !== true) {
    throw new Unreadable('the backup holds a record of state that cannot be read')
  }
  if (collection === 'visitor' && homePartition(id.slice(id.lastIndexOf('/') + 1), partitions) !== partition) {
    throw new Unreadable('the backup holds a visitor in a partition that is not its home')
  }
  return { key: [collection as string, id], value: held }
}

const isBytes = (value: unknown): boolean => value instanceof Uint8Array
const FORMS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['visitor', isBytes],
  [NONCE, isBytes],
  ['index', (value) => Array.isArray(value) && typeof value[0] === 'number'],
  ['learned', (value) => Array.isArray(value) && value.every((count) => typeof count === 'number')],
  [RULESTAT, (value) => Number.isSafeInteger(value)],
  [ERASED, (value) => typeof (value as { erasureId?: unknown } | null)?.erasureId === 'string'],
])
