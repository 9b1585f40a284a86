// The kv as a thread sees it that has no connection of its own: each call goes over a line to the thread that has one.

import type { Clock } from '../lib/clock.ts'
import type { Line } from '../lib/line.ts'
import { textBytes } from './checks.ts'
import type { Commit, KeyRange, Kv, KvKey, Prepared, Scope } from './kv.ts'
import { prepareCommit } from './lmdb-commit.ts'

/** What deciding and accepting need of a kv. */
export type ThreadKv = Pick<Kv, 'get' | 'scan' | 'position' | 'commit'>

const CALLS = {
  get: 'kv.get',
  scan: 'kv.scan',
  position: 'kv.position',
  commit: 'kv.commit',
  prepared: 'kv.prepared',
} as const

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

/**
 * `embeddedBy`: the clock of a thread behind whose line is LMDB. What a checkpoint writes is laid out on that thread then: the one that
 * writes would be busy with it for as long as with the writing, and flush no log meanwhile.
 */
export const openRemoteKv = (line: Line, embeddedBy: Pick<Clock, 'now'> | null): ThreadKv => ({
  async get(scope, keys) {
    checkKeys(keys)
    return line.call(CALLS.get, scope, keys) as never
  },
  scan: (scope, collection, range) => line.call(CALLS.scan, scope, collection, range) as never,
  position: (scope, source) => line.call(CALLS.position, scope, source) as ReturnType<Kv['position']>,
  async commit(commits) {
    const answer =
      embeddedBy === null ? asTheyAre(line, commits) : line.call(CALLS.prepared, prepareAll(commits, embeddedBy.now()))
    line.flush()
    return answer as ReturnType<Kv['commit']>
  },
})

function asTheyAre(line: Line, commits: readonly Commit[]): Promise<unknown> {
  for (const commit of commits) checkKeys(keysOf(commit))
  return line.call(CALLS.commit, commits)
}

const prepareAll = (commits: readonly Commit[], nowMs: number): Prepared[] =>
  commits.map((commit) => prepareCommit(commit, nowMs))

export function serveKv(line: Line, kv: ThreadKv & Pick<Kv, 'commitPrepared'>): void {
  line.serve(CALLS.get, (scope: Scope, keys: KvKey[]) => kv.get(scope, keys))
  line.serve(CALLS.scan, (scope: Scope, collection: string, range: KeyRange) => kv.scan(scope, collection, range))
  line.serve(CALLS.position, (scope: Scope, source: string) => kv.position(scope, source))
  line.serve(CALLS.commit, (commits: Commit[]) => kv.commit(commits))
  const { commitPrepared } = kv
  if (commitPrepared !== undefined) line.serve(CALLS.prepared, (all: Prepared[]) => commitPrepared(all))
}
