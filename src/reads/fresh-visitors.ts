// Visitors as whoever was just told of one expects them: there, although their partition has not made its checkpoint yet.

import { homePartition, isVisitorId } from '../domain/ids.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Log } from '../log/log.ts'
import { ENGINE_POSITION, partitionScope } from '../records/partitions.ts'
import type { VisitorReads } from './visitors.ts'

export interface FreshVisitorsNeeds {
  readonly visitors: VisitorReads
  readonly kv: Pick<Kv, 'position'>
  readonly log: Pick<Log, 'last'>
  readonly clock: Pick<Clock, 'sleep'>
  readonly partitions: number
}

const LOOK_MS = 20
/** Of a partition whose owner cannot be asked for a checkpoint: its own follow decisions within 200 ms, on a machine that has time for them. */
const WAIT_MS_MAX = 2_000

/**
 * The same reads, but who is not found is looked for again when the checkpoint has what was decided before the question: an erasure or
 * a merge right after an identification finds its visitor. What is decided after the question is not waited for, or an answer would never
 * come while others are identified. Throws Unavailable when the checkpoint does not come, as where nobody owns the partition: nobody can
 * say then that there is no such visitor.
 */
export function openFreshVisitors({ visitors, kv, log, clock, partitions }: FreshVisitorsNeeds): VisitorReads {
  return {
    ...visitors,
    async byId(workspace, env, visitorId) {
      const look = () => visitors.byId(workspace, env, visitorId)
      const found = await look()
      if (found !== null || !isVisitorId(visitorId)) return found
      const partition = homePartition(visitorId, partitions)
      const decided = await log.last('events', partition)
      // Told before the next look: a checkpoint that comes behind a look may have the visitor.
      const isStored = async () => ((await kv.position(partitionScope(partition), ENGINE_POSITION)) ?? 0) >= decided
      if (await isStored()) return look()
      // Where the owner can be asked for a checkpoint, it is.
      const asked = await look()
      if (asked !== null) return asked
      for (let waitedMs = 0; waitedMs <= WAIT_MS_MAX; waitedMs += LOOK_MS) {
        if (await isStored()) return look()
        await clock.sleep(LOOK_MS)
      }
      throw new Unavailable('the partition of this visitor is behind')
    },
  }
}
