// How scopes, collections and ids become Redis keys. The scope is the hash tag, so that everything of a scope lies in one slot;
// the length of the collection comes before it, so that no character of one part can be taken for the border to the next.
import { checkKeyBytes, checkScope, textBytes } from './checks.ts'
import type { Scope } from './kv.ts'

/** No brace, which would begin or end a hash tag, and nothing that a pattern gives a meaning to. */
const PREFIX = /^[\w.:/-]{1,64}$/
/** What SCAN's patterns take for more than itself. */
const GLOB = /[*?[\]\\]/g

export interface CollectionKeys {
  /** A sorted set of the ids, all of score 0. */
  readonly index: string
  /** A sorted set of the ids that expire, by when. */
  readonly expiry: string
  /** What all keys of its records begin with. */
  readonly start: string
  readonly startBytes: number
  record(id: string): string
}

export interface ScopeKeys {
  position(source: string): string
  collection(name: string): CollectionKeys
}

export type KeysOf = (scope: Scope) => ScopeKeys

/** `prefix` tells deployments on the same server apart. */
export function redisKeys(prefix: string): KeysOf {
  if (!PREFIX.test(prefix)) throw new RangeError(`not a prefix: ${JSON.stringify(prefix)}`)
  return (scope) => {
    checkScope(scope)
    const base = `${prefix}:{${scope}}:`
    const scopeBytes = textBytes(scope)
    return {
      position(source) {
        checkKeyBytes(scopeBytes + textBytes(source))
        return `${base}p:${source}`
      },
      collection(name) {
        const nameBytes = scopeBytes + textBytes(name)
        checkKeyBytes(nameBytes)
        const start = `${base}r${nameBytes - scopeBytes}:${name}/`
        return {
          index: `${base}i:${name}`,
          expiry: `${base}x:${name}`,
          start,
          startBytes: Buffer.byteLength(start),
          record(id) {
            checkKeyBytes(nameBytes + textBytes(id))
            return start + id
          },
        }
      },
    }
  }
}

/** The SCAN pattern for everything that begins with `start`. */
export const patternOf = (start: string): string => `${start.replace(GLOB, '\\$&')}*`
