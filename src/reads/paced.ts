// ClickHouse for questions that anybody with a public key can cause at will: they are asked one at a time and for half of the
// time at most, and few of a workspace wait, so that they are no way to occupy the machine.

import type { ClickHouse, Params, QueryOptions } from '../clickhouse/clickhouse.ts'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'

/** Of each workspace. */
const WAITING_MAX = 8

/** Every question has a parameter `workspace`. Fails with Unavailable when too many of that wait already. */
export function openPaced(
  clickhouse: Pick<ClickHouse, 'query'>,
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
): Pick<ClickHouse, 'query'> {
  const waiting = new Map<unknown, number>()
  let last: Promise<void> = Promise.resolve()

  return {
    async query<Row>(sql: string, params: Params = {}, opts?: QueryOptions): Promise<Row[]> {
      const { workspace } = params
      const before = waiting.get(workspace) ?? 0
      if (before >= WAITING_MAX) throw new Unavailable('too many questions of this workspace wait for their turn')
      waiting.set(workspace, before + 1)
      const asked = last.then(async () => {
        const startedMs = clock.monotonic()
        const rows = await Promise.allSettled([clickhouse.query<Row>(sql, params, opts)])
        return { rows: rows[0], tookMs: clock.monotonic() - startedMs }
      })
      last = asked.then(({ tookMs }) => clock.sleep(tookMs))
      const { rows } = await asked
      const left = (waiting.get(workspace) ?? 1) - 1
      if (left === 0) waiting.delete(workspace)
      else waiting.set(workspace, left)
      if (rows.status === 'rejected') throw rows.reason
      return rows.value
    },
  }
}
