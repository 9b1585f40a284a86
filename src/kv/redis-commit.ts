// One commit as the keys and arguments of commit.lua, and one record as the bytes of a Redis string:
// the kind, the version in 8 bytes, then the value (a counter in decimal, so that the script can add to it).
import type { RandomBytes } from '../domain/ids.ts'
import { Unreadable } from '../lib/failures.ts'
import { checkCommit, checkKeys, checkTtl } from './checks.ts'
import type { Commit, KvEntry, KvKey, Scope, Version } from './kv.ts'
import { COUNTER, decodeBody, encodeBody } from './record.ts'
import type { CollectionKeys, KeysOf } from './redis-keys.ts'

const VERSION_AT = 1
const VERSION_BYTES = 8
const VALUE_AT = VERSION_AT + VERSION_BYTES
const NOTHING = Buffer.alloc(0)
/** Due index entries a commit clears: more than it adds, so that what expires cannot pile up. */
const CLEARED_PER_PUT = 2
const CLEARED_MIN = 16
const CLEARED_MAX = 1_000

export interface PreparedCommit {
  readonly scope: Scope
  readonly keys: readonly string[]
  readonly args: readonly (string | number | Buffer)[]
  /** What it takes on the way to the server, about. */
  readonly bytes: number
}

interface Group {
  readonly names: CollectionKeys
  /** By id, the last put of a record only. */
  readonly puts: Map<string, { readonly record: Buffer; readonly ttlMs: number | null }>
  readonly drops: Set<string>
  readonly adds: (readonly [id: string, by: number])[]
}

/**
 * Throws RangeError for what no backend takes. The version is drawn at random: one that was counted would come back after
 * the server lost the count, be it to a wipe or to a failover.
 */
export function prepareRedisCommit(
  commit: Commit,
  keysOf: KeysOf,
  unsorted: ReadonlySet<string>,
  random: RandomBytes,
): PreparedCommit {
  checkCommit(commit)
  const { scope, guard, check = [], put = [], drop = [], add = [] } = commit
  const names = keysOf(scope)
  const version = drawVersion(random)
  const groups = new Map<string, Group>()
  const groupOf = (collection: string): Group => {
    const found = groups.get(collection)
    if (found !== undefined) return found
    const made = { names: names.collection(collection), puts: new Map(), drops: new Set<string>(), adds: [] }
    groups.set(collection, made)
    return made
  }
  let puts = 0
  for (const { key, value, ttlMs } of put) {
    puts++
    const record = encodeRecord(value, version)
    groupOf(key[0]).puts.set(key[1], { record, ttlMs: ttlMs === undefined ? null : checkTtl(ttlMs) })
  }
  checkKeys(commit, puts)
  for (const [collection, id] of drop) {
    const group = groupOf(collection)
    group.puts.delete(id)
    group.drops.add(id)
  }
  for (const [[collection, id], by] of add) groupOf(collection).adds.push([id, by])

  const keys: string[] = []
  const args: (string | number | Buffer)[] = [version, guard ? 1 : 0, check.length, groups.size]
  if (guard) {
    keys.push(names.position(guard.source))
    args.push(guard.expect === null ? '' : String(guard.expect), String(guard.next))
  }
  for (const [[collection, id], expected] of check) {
    keys.push(names.collection(collection).record(id))
    args.push(expected === null ? NOTHING : encodeVersion(expected))
  }
  for (const [collection, group] of groups) writeGroup(group, !unsorted.has(collection), keys, args)
  let bytes = 0
  for (const key of keys) bytes += key.length
  for (const arg of args) bytes += typeof arg === 'number' ? 8 : arg.length
  return { scope, keys, args, bytes }
}

/** Clears index entries whose records expired, and does nothing else. */
export function prepareClearing(scope: Scope, names: CollectionKeys, random: RandomBytes): PreparedCommit {
  return {
    scope,
    keys: [names.index, names.expiry],
    args: [drawVersion(random), 0, 0, 1, names.startBytes + 1, CLEARED_MAX, 0, 0, 0, 0],
    bytes: 0,
  }
}

function writeGroup(
  { names, puts, drops, adds }: Group,
  sorted: boolean,
  keys: string[],
  args: (string | number | Buffer)[],
) {
  const lasting = [...puts].filter(([, { ttlMs }]) => ttlMs === null)
  const passing = [...puts].filter(([, { ttlMs }]) => ttlMs !== null)
  const clear = passing.length === 0 ? 0 : Math.min(CLEARED_MIN + CLEARED_PER_PUT * passing.length, CLEARED_MAX)
  args.push(sorted ? names.startBytes + 1 : 0, clear, lasting.length, passing.length, drops.size, adds.length)
  if (sorted) keys.push(names.index, names.expiry)
  for (const [id, { record }] of lasting) {
    keys.push(names.record(id))
    args.push(record)
  }
  for (const [id, { record, ttlMs }] of passing) {
    keys.push(names.record(id))
    args.push(record, ttlMs as number)
  }
  for (const id of drops) keys.push(names.record(id))
  for (const [id, by] of adds) {
    keys.push(names.record(id))
    args.push(puts.has(id) ? '!' : String(by))
  }
}

export function decodeRecord<T>(key: KvKey, bytes: Buffer): KvEntry<T> {
  if (bytes.length < VALUE_AT) throw new Unreadable('a stored record is too short')
  const kind = bytes[0] as number
  const value =
    kind === COUNTER ? Number(bytes.toString('latin1', VALUE_AT)) : decodeBody(kind, bytes, VALUE_AT, bytes.length)
  return { key, value: value as T, version: bytes.readDoubleBE(VERSION_AT) }
}

function encodeRecord(value: unknown, version: Buffer): Buffer {
  const { kind, body } = encodeBody(value)
  const bytes = Buffer.allocUnsafe(VALUE_AT + body.length)
  bytes[0] = kind
  bytes.set(version, VERSION_AT)
  bytes.set(body, VALUE_AT)
  return bytes
}

function encodeVersion(version: Version): Buffer {
  const bytes = Buffer.allocUnsafe(VERSION_BYTES)
  bytes.writeDoubleBE(version)
  return bytes
}

/** An integer of 53 random bits. */
function drawVersion(random: RandomBytes): Buffer {
  const drawn = Buffer.from(random(VERSION_BYTES))
  return encodeVersion((drawn.readUInt32BE(0) >>> 11) * 2 ** 32 + drawn.readUInt32BE(4))
}
