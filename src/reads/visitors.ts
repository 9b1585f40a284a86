// Questions about visitors, answered from their partition's checkpoint (at most 100 ms behind).

import type { Env } from '../domain/event.ts'
import { homePartition, isVisitorId } from '../domain/ids.ts'
import { unpackVisitor, type VisitorState } from '../identity/visitor.ts'
import type { Kv } from '../kv/kv.ts'
import { Unavailable } from '../lib/failures.ts'
import { ENGINE_POSITION, partitionScope, visitorKey } from '../records/partitions.ts'
import { unpackHeldVisitor } from '../records/visitors.ts'

export interface VisitorReads {
  /** Throws Unavailable when that cannot be told. */
  byId(workspace: string, env: Env, visitorId: string): Promise<VisitorState | null>
}

export function openVisitorReads(kv: Pick<Kv, 'get' | 'position'>, partitions: number): VisitorReads {
  return {
    async byId(workspace, env, visitorId) {
      if (!isVisitorId(visitorId)) return null
      const scope = partitionScope(homePartition(visitorId, partitions))
      const [entry] = await kv.get<Uint8Array>(scope, [visitorKey(workspace, env, visitorId)])
      if (entry) return unpackVisitor(unpackHeldVisitor(entry.value).state)
      if ((await kv.position(scope, ENGINE_POSITION)) !== null) return null
      throw new Unavailable('the visitors of this partition are lost: run fingerpost rebuild')
    },
  }
}
