// Questions about visitors, answered from the checkpoints of their partitions.

import type { Env } from '../domain/event.ts'
import { homePartition, isVisitorId } from '../domain/ids.ts'
import { joinVisitors } from '../identity/joined.ts'
import type { VisitorState } from '../identity/visitor.ts'
import { unpackVisitor } from '../identity/visitor-record.ts'
import type { Kv } from '../kv/kv.ts'
import { Unavailable } from '../lib/failures.ts'
import { groupOf } from '../records/aliases.ts'
import { readTombstone } from '../records/erasures.ts'
import { ENGINE_POSITION, partitionScope, visitorKey } from '../records/partitions.ts'
import { unpackHeldVisitor } from '../records/visitors.ts'

export interface VisitorReads {
  /** The visitor an id stands for, with the visits of all that were merged into it. Throws Unavailable when that cannot be told. */
  byId(workspace: string, env: Env, visitorId: string): Promise<VisitorState | null>
  /** The record of this id alone; null when it has no visits. */
  record(workspace: string, env: Env, visitorId: string): Promise<VisitorState | null>
  /** The ids under which its events are: the survivor's first. Of an id that names nothing, that id alone. */
  idsOf(workspace: string, env: Env, visitorId: string): Promise<readonly [string, ...string[]]>
}

export function openVisitorReads(kv: Pick<Kv, 'get' | 'position'>, partitions: number): VisitorReads {
  async function record(workspace: string, env: Env, visitorId: string): Promise<VisitorState | null> {
    const scope = partitionScope(homePartition(visitorId, partitions))
    const [entry] = await kv.get<Uint8Array>(scope, [visitorKey(workspace, env, visitorId)])
    if (entry) {
      const visitor = unpackVisitor(unpackHeldVisitor(entry.value).state)
      // All of its visits turned out to be others'.
      return visitor.totalVisits === 0 ? null : visitor
    }
    if ((await kv.position(scope, ENGINE_POSITION)) !== null) return null
    throw new Unavailable('the visitors of this partition are lost: run fingerpost rebuild')
  }

  /** A merge that came while one of both was erased stands until lists have forgotten that one; nobody follows it. */
  async function group(workspace: string, env: Env, visitorId: string): ReturnType<typeof groupOf> {
    const found = await groupOf(kv, workspace, env, visitorId)
    if (found.length === 1 && found[0] === visitorId) return found
    const named = [...new Set([visitorId, found[0]])]
    const tombstones = await Promise.all(
      named.map((id) => readTombstone(kv, homePartition(id, partitions), workspace, env, id)),
    )
    return tombstones.every((one) => one === null) ? found : [visitorId]
  }

  return {
    record,
    async byId(workspace, env, visitorId) {
      if (!isVisitorId(visitorId)) return null
      const [survivor, ...aliases] = await group(workspace, env, visitorId)
      const all = await Promise.all([survivor, ...aliases].map((id) => record(workspace, env, id)))
      const [first, ...others] = all.filter((one) => one !== null)
      if (first === undefined) return null
      return others.length === 0 && first.id === survivor
        ? first
        : joinVisitors([{ ...first, id: survivor }, ...others])
    },
    idsOf: group,
  }
}
