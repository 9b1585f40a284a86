// The kv as a thread sees it that has no connection of its own: each call goes over a line to the thread that has one.

import type { Line } from '../lib/line.ts'
import type { Commit, Key, Kv, Range, Scope } from './kv.ts'

/** What deciding and accepting need of a kv. */
export type ThreadKv = Pick<Kv, 'get' | 'scan' | 'position' | 'commit'>

const CALLS = { get: 'kv.get', scan: 'kv.scan', position: 'kv.position', commit: 'kv.commit' } as const

export const openRemoteKv = (line: Line): ThreadKv => ({
  get: (scope, keys) => line.call(CALLS.get, scope, keys) as ReturnType<Kv['get']> as never,
  scan: (scope, collection, range) => line.call(CALLS.scan, scope, collection, range) as never,
  position: (scope, source) => line.call(CALLS.position, scope, source) as ReturnType<Kv['position']>,
  commit(commits) {
    const answer = line.call(CALLS.commit, commits) as ReturnType<Kv['commit']>
    line.flush()
    return answer
  },
})

export function serveKv(line: Line, kv: ThreadKv): void {
  line.serve(CALLS.get, (scope: Scope, keys: Key[]) => kv.get(scope, keys))
  line.serve(CALLS.scan, (scope: Scope, collection: string, range: Range) => kv.scan(scope, collection, range))
  line.serve(CALLS.position, (scope: Scope, source: string) => kv.position(scope, source))
  line.serve(CALLS.commit, (commits: Commit[]) => kv.commit(commits))
}
