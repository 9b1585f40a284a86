// The kv as a thread sees it that has no connection of its own: each call goes over a line to the thread that has one.

import type { Line } from '../lib/line.ts'
import { textBytes } from './checks.ts'
import type { Commit, KeyRange, Kv, KvKey, Scope } from './kv.ts'

/** What deciding and accepting need of a kv. */
export type ThreadKv = Pick<Kv, 'get' | 'scan' | 'position' | 'commit'>

const CALLS = { get: 'kv.get', scan: 'kv.scan', position: 'kv.position', commit: 'kv.commit' } as const

/** On its way broken text would become other text, and a key another key. */
function checkKeys(keys: readonly KvKey[]): void {
  for (const [collection, id] of keys) {
    textBytes(collection)
    textBytes(id)
  }
}

const keysOf = ({ check = [], put = [], drop = [], add = [] }: Commit): KvKey[] => [
  ...check.map(([key]) => key),
  ...put.map(({ key }) => key),
  ...drop,
  ...add.map(([key]) => key),
]

export const openRemoteKv = (line: Line): ThreadKv => ({
  async get(scope, keys) {
    checkKeys(keys)
    return line.call(CALLS.get, scope, keys) as never
  },
  scan: (scope, collection, range) => line.call(CALLS.scan, scope, collection, range) as never,
  position: (scope, source) => line.call(CALLS.position, scope, source) as ReturnType<Kv['position']>,
  async commit(commits) {
    for (const commit of commits) checkKeys(keysOf(commit))
    const answer = line.call(CALLS.commit, commits) as ReturnType<Kv['commit']>
    line.flush()
    return answer
  },
})

export function serveKv(line: Line, kv: ThreadKv): void {
  line.serve(CALLS.get, (scope: Scope, keys: KvKey[]) => kv.get(scope, keys))
  line.serve(CALLS.scan, (scope: Scope, collection: string, range: KeyRange) => kv.scan(scope, collection, range))
  line.serve(CALLS.position, (scope: Scope, source: string) => kv.position(scope, source))
  line.serve(CALLS.commit, (commits: Commit[]) => kv.commit(commits))
}
