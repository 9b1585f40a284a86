// The kv as small as it can be: maps of packed values, one scope per commit, each commit all or nothing.

import { Packr } from 'msgpackr'
import {
  COMMIT_KEYS_MAX,
  type Commit,
  type Kv,
  type KvEntry,
  type KvKey,
  type Scope,
  VALUE_BYTES_MAX,
  type Version,
} from '../../src/kv/kv.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { CallOptions, Host } from './host.ts'

interface Stored {
  /** A number is a counter, bytes are as they are, `packed` is anything else. */
  readonly value: number | Uint8Array | { readonly packed: Uint8Array }
  readonly version: Version
  readonly expiresAt: number
}
interface ScopeStore {
  readonly collections: Map<string, Map<string, Stored>>
  readonly positions: Map<string, number>
}
export interface KvStore {
  readonly scopes: Map<Scope, ScopeStore>
  version: Version
}
export const createKvStore = (): KvStore => ({ scopes: new Map(), version: 0 })

const packr = new Packr({ useRecords: false, copyBuffers: true })
const SCOPE = /^[\w.:/-]+$/
const TEXT_BYTES_MAX = 512
const LIMIT_MAX = 10_000
const ASCII = /^[\x20-\x7e]*$/

/** Few scopes are asked for all the time. */
const scopes = new Set<Scope>()

function checkScope(scope: Scope): void {
  if (scopes.has(scope)) return
  if (!SCOPE.test(scope)) throw new RangeError('not a scope')
  scopes.add(scope)
}

function checkKey(scope: Scope, [collection, id]: KvKey): void {
  const text = scope + collection + id
  const bytes = ASCII.test(text) ? text.length : Buffer.byteLength(text)
  if (collection === '' || id === '' || bytes > TEXT_BYTES_MAX) throw new RangeError('not a key')
  if (bytes !== text.length && !text.isWellFormed()) throw new RangeError('not text')
}

const byBytes = (a: string, b: string): number =>
  ASCII.test(a) && ASCII.test(b) ? (a < b ? -1 : 1) : Buffer.compare(Buffer.from(a), Buffer.from(b))

function encode(value: unknown): Stored['value'] {
  const encoded = value instanceof Uint8Array ? new Uint8Array(value) : { packed: new Uint8Array(packr.pack(value)) }
  const { length } = encoded instanceof Uint8Array ? encoded : encoded.packed
  if (length > VALUE_BYTES_MAX) throw new RangeError('a value is too long')
  return encoded
}

function decode(value: Stored['value']): unknown {
  if (typeof value === 'number') return value
  return value instanceof Uint8Array ? new Uint8Array(value) : packr.unpack(value.packed)
}

interface Prepared extends Omit<Commit, 'put'> {
  readonly put: readonly { readonly key: KvKey; readonly value: Stored['value']; readonly expiresAt: number }[]
}

function prepare(commit: Commit, now: number): Prepared {
  const { scope, guard, check = [], drop = [], add = [] } = commit
  const put = [...(commit.put ?? [])]
  checkScope(scope)
  if (check.length + put.length + drop.length + add.length > COMMIT_KEYS_MAX) throw new RangeError('too many keys')
  if (guard !== undefined && !Number.isSafeInteger(guard.next)) throw new RangeError('not a position')
  for (const [key] of check) checkKey(scope, key)
  for (const { key } of put) checkKey(scope, key)
  for (const key of drop) checkKey(scope, key)
  for (const [key] of add) checkKey(scope, key)
  for (const [, by] of add) if (!Number.isSafeInteger(by)) throw new RangeError('a counter takes integers')
  return {
    ...commit,
    check: check.map(([key, version]) => [key, version] as const),
    put: put.map(({ key, value, ttlMs }) => {
      if (ttlMs !== undefined && !(ttlMs > 0 && ttlMs < Number.POSITIVE_INFINITY)) throw new RangeError('not a ttl')
      return { key, value: encode(value), expiresAt: ttlMs === undefined ? Number.POSITIVE_INFINITY : now + ttlMs }
    }),
  }
}

/** `unsorted` collections are walked but never scanned. */
export function bindKv(store: KvStore, host: Host, unsorted: readonly string[] = []): Kv {
  let closed = false
  const open = () => {
    if (closed) throw new Unavailable('the kv is closed')
  }
  const at = (scope: Scope): ScopeStore => {
    let found = store.scopes.get(scope)
    if (found === undefined) {
      found = { collections: new Map(), positions: new Map() }
      store.scopes.set(scope, found)
    }
    return found
  }
  const stored = (scope: Scope, [collection, id]: KvKey): Stored | null => {
    const found = store.scopes.get(scope)?.collections.get(collection)?.get(id)
    return found === undefined || found.expiresAt <= host.clock.now() ? null : found
  }
  const write = (scope: Scope, [collection, id]: KvKey, value: Stored['value'], expiresAt: number) => {
    const { collections } = at(scope)
    const ids = collections.get(collection) ?? new Map<string, Stored>()
    collections.set(collection, ids)
    store.version += 1
    ids.set(id, { value, version: store.version, expiresAt })
  }

  function holds({ scope, guard, check = [] }: Prepared): boolean {
    if (guard !== undefined && (at(scope).positions.get(guard.source) ?? null) !== guard.expect) return false
    return check.every(([key, version]) => (stored(scope, key)?.version ?? null) === version)
  }

  /** Refuses before anything is written. */
  function checkSums({ scope, put, drop = [], add = [] }: Prepared): void {
    const same = (a: KvKey, b: KvKey) => a[0] === b[0] && a[1] === b[1]
    const sums = new Map<string, number>()
    for (const [key, by] of add) {
      const before = drop.some((k) => same(k, key)) ? null : stored(scope, key)
      const replaced = put.some((p) => same(p.key, key)) && !drop.some((k) => same(k, key))
      if (replaced || (before !== null && typeof before.value !== 'number'))
        throw new TypeError('only a counter can be added to')
      const name = JSON.stringify(key)
      const sum = (sums.get(name) ?? (before?.value as number | undefined) ?? 0) + by
      if (!Number.isSafeInteger(sum)) throw new RangeError('a counter would leave the safe integers')
      sums.set(name, sum)
    }
  }

  /** All or none. */
  function apply(commits: readonly Prepared[]): boolean {
    if (!commits.every(holds)) return false
    for (const commit of commits) checkSums(commit)
    for (const { scope, guard, put, drop = [], add = [] } of commits) {
      if (guard !== undefined) at(scope).positions.set(guard.source, guard.next)
      for (const { key, value, expiresAt } of put) write(scope, key, value, expiresAt)
      for (const [collection, id] of drop) at(scope).collections.get(collection)?.delete(id)
      for (const [key, by] of add) {
        const sum = ((stored(scope, key)?.value as number | undefined) ?? 0) + by
        write(scope, key, sum, Number.POSITIVE_INFINITY)
      }
    }
    return true
  }

  /** Calls that change what they look at may happen twice. */
  const options = (commits: readonly Prepared[]): CallOptions => ({
    twice: commits.every(({ guard, check, add }) => guard || (check && check.length > 0) || !add),
  })
  const labelOf = ({ scope, guard, put }: Prepared): string =>
    `commit ${scope} ${guard === undefined ? (put[0]?.key[0] ?? '') : guard.source}`

  return {
    async get<T>(scope: Scope, keys: readonly KvKey[]) {
      open()
      checkScope(scope)
      for (const key of keys) checkKey(scope, key)
      return host.call(`get ${scope} ${keys[0]?.[0] ?? ''}`, () =>
        keys.map((key) => {
          const found = stored(scope, key)
          return found === null ? null : { key, value: decode(found.value) as T, version: found.version }
        }),
      )
    },
    async scan<T>(
      scope: Scope,
      collection: string,
      { after, upTo, limit, reverse = false }: Parameters<Kv['scan']>[2],
    ) {
      open()
      checkScope(scope)
      if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) throw new RangeError('not a limit')
      if (unsorted.includes(collection)) throw new RangeError('an unsorted collection')
      return host.call(`scan ${scope} ${collection}`, () => {
        const ids = [...(store.scopes.get(scope)?.collections.get(collection)?.keys() ?? [])]
        const within = ids.filter(
          (id) =>
            (after === undefined || after === '' || (byBytes(id, after) > 0 && id !== after)) &&
            (upTo === undefined || id === upTo || byBytes(id, upTo) < 0) &&
            stored(scope, [collection, id]) !== null,
        )
        within.sort(byBytes)
        if (reverse) within.reverse()
        return within.slice(0, limit).map((id): KvEntry<T> => {
          const { value, version } = stored(scope, [collection, id]) as Stored
          return { key: [collection, id], value: decode(value) as T, version }
        })
      })
    },
    async *walk<T>(scope: Scope, collection: string) {
      open()
      checkScope(scope)
      const found = await host.call(`walk ${scope} ${collection}`, () =>
        [...(store.scopes.get(scope)?.collections.get(collection)?.keys() ?? [])].flatMap((id): KvEntry<T>[] => {
          const entry = stored(scope, [collection, id])
          if (entry === null) return []
          return [{ key: [collection, id], value: decode(entry.value) as T, version: entry.version }]
        }),
      )
      yield* found
    },
    async position(scope, source) {
      open()
      checkScope(scope)
      return host.call(`position ${scope} ${source}`, () => store.scopes.get(scope)?.positions.get(source) ?? null)
    },
    async commit(commits) {
      open()
      const now = host.clock.now()
      const prepared = commits.map((commit) => prepare(commit, now))
      if (prepared.length === 0) return []
      const label = labelOf(prepared[0] as Prepared)
      return host.call(label, () => prepared.map((commit) => apply([commit])), options(prepared))
    },
    async commitTogether(commits) {
      open()
      if (new Set(commits.map(({ scope }) => scope)).size < commits.length) throw new RangeError('one scope twice')
      const now = host.clock.now()
      const prepared = commits.map((commit) => prepare(commit, now))
      if (prepared.length === 0) return true
      return host.call(`together ${labelOf(prepared[0] as Prepared)}`, () => apply(prepared), options(prepared))
    },
    async close() {
      closed = true
    },
  }
}

/** Every record of scopes that begin so as text: its name, and all that it holds, packed or not. */
export function* texts(store: KvStore, prefix: string): Generator<readonly [name: string, text: string]> {
  for (const [scope, { collections }] of store.scopes) {
    if (!scope.startsWith(prefix)) continue
    for (const [collection, records] of collections) {
      for (const [id, { value }] of records) {
        const bytes = typeof value === 'number' ? null : value instanceof Uint8Array ? value : value.packed
        const text = bytes === null ? '' : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
        yield [`${scope} ${collection} ${id}`, `${id} ${text}`]
      }
    }
  }
}

/** The value of a record as of now, whether it has expired or not. */
export function peek(store: KvStore, scope: Scope, [collection, id]: KvKey): unknown {
  const found = store.scopes.get(scope)?.collections.get(collection)?.get(id)
  return found === undefined ? undefined : decode(found.value)
}
