// The kv as a thread sees it that has no connection of its own: each call goes over a line to the thread that has one.

import type { Clock } from '../lib/clock.ts'
import type { Line } from '../lib/line.ts'
import { must } from '../lib/must.ts'
import { textBytes } from './checks.ts'
import type { KeyRange, Kv, KvKey, Prepared, Scope } from './kv.ts'
import { prepareInTurns } from './lmdb-commit.ts'

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

/** What a commit writes is laid out here: the thread that writes it would be busy for as long again, and flush no log meanwhile. */
export const openRemoteKv = (line: Line, clock: Pick<Clock, 'now'>): ThreadKv => ({
  async get(scope, keys) {
    checkKeys(keys)
    return line.call(CALLS.get, scope, keys) as never
  },
  scan: (scope, collection, range) => line.call(CALLS.scan, scope, collection, range) as never,
  position: (scope, source) => line.call(CALLS.position, scope, source) as ReturnType<Kv['position']>,
  async commit(commits) {
    const prepared = await prepareInTurns(commits, clock.now())
    const answer = line.call(CALLS.commit, prepared) as ReturnType<Kv['commit']>
    line.flush()
    return answer
  },
})

export function serveKv(line: Line, kv: Pick<Kv, 'get' | 'scan' | 'position' | 'commitPrepared'>): void {
  const commitPrepared = must(kv.commitPrepared, 'a kv that takes prepared commits')
  line.serve(CALLS.get, (scope: Scope, keys: KvKey[]) => kv.get(scope, keys))
  line.serve(CALLS.scan, (scope: Scope, collection: string, range: KeyRange) => kv.scan(scope, collection, range))
  line.serve(CALLS.position, (scope: Scope, source: string) => kv.position(scope, source))
  line.serve(CALLS.commit, (prepared: Prepared[]) => commitPrepared(prepared))
}
