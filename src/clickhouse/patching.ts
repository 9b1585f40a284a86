// Patches that no mutation loses.

import { setTimeout as sleep } from 'node:timers/promises'
import { Unavailable } from '../lib/failures.ts'
import type { ClickHouse } from './clickhouse.ts'

const MUTATIONS = `SELECT max(toUInt64OrZero(extract(mutation_id, '[0-9]+'))) AS newest, countIf(NOT is_done) AS underWay
  FROM system.mutations WHERE database = currentDatabase() AND table = {table:String}`
const LOOK_MS = 100

/**
 * Executes `write` until no mutation of the table began beside it. A patch has its number before it is there: a mutation that takes a
 * higher one in between rewrites the part without it, and the new part counts as if it had it. One that was under way already has a
 * lower number, and one that begins later finds the patch. The repetition waits for the mutation to end: until then the first
 * patch may still hide the rows that the second is to find. It gives up with Unavailable after `waitMsMax`.
 */
export function openPatching(clickhouse: Pick<ClickHouse, 'query'>, waitMsMax: number) {
  /** By table: the newest mutation there was after a patch. One that began between two patches costs a repetition. */
  const seen = new Map<string, number>()

  async function look(table: string): Promise<{ readonly newest: number; readonly underWay: number }> {
    const [row] = await clickhouse.query<{ newest: number; underWay: number }>(MUTATIONS, { table })
    return row ?? { newest: 0, underWay: 0 }
  }

  async function ended(table: string): Promise<void> {
    for (let waitedMs = 0; (await look(table)).underWay > 0; waitedMs += LOOK_MS) {
      if (waitedMs >= waitMsMax) throw new Unavailable(`a mutation of ${table} does not end`)
      await sleep(LOOK_MS)
    }
  }

  return async (table: string, write: () => Promise<void>): Promise<void> => {
    let before = seen.get(table) ?? (await look(table)).newest
    for (;;) {
      await write()
      const { newest } = await look(table)
      seen.set(table, newest)
      if (newest === before) return
      before = newest
      await ended(table)
    }
  }
}
