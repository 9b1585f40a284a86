// What every backend of the kv refuses before it looks at any data, so that all of them refuse the same.
import { COMMIT_KEYS_MAX, type Commit, type KeyRange } from './kv.ts'

const KEY_TEXT_BYTES_MAX = 512
export const GET_KEYS_MAX = 10_000
const SCAN_LIMIT_MAX = 10_000

/** Scopes name a cluster slot, so they hold no character that means something to the backend. */
const SCOPE = /^[\w.:/-]+$/
const LONE_SURROGATE = /\p{Surrogate}/u
const TTL_MS_MAX = 100 * 365 * 24 * 3_600_000

export function checkScope(scope: string): void {
  if (!SCOPE.test(scope)) throw new RangeError(`not a scope: ${JSON.stringify(scope)}`)
}

/** The length in UTF-8 of one part of a key. */
export function textBytes(text: string): number {
  if (text.length === 0) throw new RangeError('a part of a key is empty')
  const bytes = Buffer.byteLength(text)
  // Two ids that differ only in broken characters would become the same bytes.
  if (bytes !== text.length && LONE_SURROGATE.test(text))
    throw new RangeError('a part of a key is not well-formed text')
  return bytes
}

export function checkKeyBytes(bytes: number): void {
  if (bytes > KEY_TEXT_BYTES_MAX) {
    throw new RangeError(`scope, collection and id take up to ${KEY_TEXT_BYTES_MAX} bytes`)
  }
}

export function checkGet(keys: readonly unknown[]): void {
  if (keys.length > GET_KEYS_MAX) throw new RangeError(`a get takes up to ${GET_KEYS_MAX} keys, not ${keys.length}`)
}

export function checkRange({ limit }: KeyRange): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > SCAN_LIMIT_MAX) {
    throw new RangeError(`a scan takes a limit of 1 to ${SCAN_LIMIT_MAX}, not ${limit}`)
  }
}

export function checkSorted(collection: string, unsorted: ReadonlySet<string>): void {
  if (unsorted.has(collection)) throw new RangeError(`${collection} is kept unsorted: it can only be walked`)
}

/** The guard and the addends; keys and values are checked as they are encoded, and what is put is counted then: see `checkKeys`. */
export function checkCommit({ guard, add = [] }: Commit): void {
  if (guard && !Number.isSafeInteger(guard.next)) throw new RangeError(`not a position: ${guard.next}`)
  for (const [, by] of add) if (!Number.isSafeInteger(by)) throw new RangeError(`a counter takes integers, not ${by}`)
}

/** Whether a commit with so many records put has no more keys than it may. */
export function checkKeys({ check = [], drop = [], add = [] }: Commit, puts: number): void {
  const keys = check.length + puts + drop.length + add.length
  if (keys > COMMIT_KEYS_MAX) throw new RangeError(`a commit takes up to ${COMMIT_KEYS_MAX} keys, not ${keys}`)
}

/** Commits that are decided together. */
export function checkScopes(commits: readonly Commit[]): void {
  const scopes = new Set(commits.map(({ scope }) => scope))
  if (scopes.size < commits.length) throw new RangeError('commits of one scope cannot be decided together')
}

/** A time to live in whole milliseconds. */
export function checkTtl(ttlMs: number): number {
  if (!(ttlMs > 0 && ttlMs <= TTL_MS_MAX)) throw new RangeError(`not a time to live: ${ttlMs} ms`)
  return Math.ceil(ttlMs)
}
