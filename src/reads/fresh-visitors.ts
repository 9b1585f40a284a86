// Visitors as whoever was just told of one expects them: nobody is said to be unknown on the word of a state that may be behind.

import { homePartition, isVisitorId } from '../domain/ids.ts'
import { Unavailable } from '../lib/failures.ts'
import type { VisitorReads } from './visitors.ts'

export interface FreshVisitorsNeeds {
  /** Over a kv that owners bring up to date, as far as they can be asked. */
  readonly visitors: VisitorReads
  /** Whether the kv has, when it resolves, what was answered before of a partition. */
  readonly isFresh: (partition: number) => Promise<boolean>
  readonly partitions: number
}

/**
 * The same reads, but who is not found is looked for again when the kv is known to have what was answered before the question: an erasure or
 * a merge right after an identification finds its visitor. Throws Unavailable where it does not, as where nobody owns the partition: nobody
 * can say then that there is no such visitor.
 */
export function openFreshVisitors({ visitors, isFresh, partitions }: FreshVisitorsNeeds): VisitorReads {
  return {
    ...visitors,
    async byId(workspace, env, visitorId) {
      const found = await visitors.byId(workspace, env, visitorId)
      if (found !== null || !isVisitorId(visitorId)) return found
      if (await isFresh(homePartition(visitorId, partitions))) return visitors.byId(workspace, env, visitorId)
      throw new Unavailable('the partition of this visitor is behind')
    },
  }
}
