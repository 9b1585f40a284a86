// What was changed or deleted by a patch stays so, whatever the engine rewrites meanwhile.

import type { Test } from 'tap'
import type { ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { sized } from '../helpers/depth.ts'

const ROWS = 1_000
const REWRITINGS = sized({ quick: 2, usual: 4, long: 12 })
/** Patches from one rewriting to the next. */
const BETWEEN = 3
const DELETE = "SETTINGS lightweight_delete_mode = 'lightweight_update_force'"

export async function patchesContract(t: Test, clickhouse: ClickHouse, table: string): Promise<void> {
  await clickhouse.command(
    `CREATE TABLE ${table} (id UInt32, text String) ENGINE = MergeTree ORDER BY id
     SETTINGS enable_block_number_column = 1, enable_block_offset_column = 1`,
  )
  await clickhouse.command(`INSERT INTO ${table} SELECT number, 'old' FROM numbers(${ROWS})`)
  let rewritings = 0
  let patched = 0
  let ended = false
  const patching = (async () => {
    for (; rewritings < REWRITINGS; patched++) {
      const change = patched % 2 === 0 ? `UPDATE ${table} SET text = 'new'` : `DELETE FROM ${table}`
      const how = patched % 2 === 0 ? '' : DELETE
      await clickhouse.patch(table, `${change} WHERE id = {id:UInt32} ${how}`, { id: patched })
    }
  })().finally(() => {
    ended = true
  })
  while (!ended && rewritings < REWRITINGS) {
    const enough = patched + BETWEEN
    while (!ended && patched < enough) await systemClock.sleep(1)
    const what = rewritings % 2 === 0 ? 'PATCHES' : 'DELETED MASK'
    await clickhouse.command(`ALTER TABLE ${table} APPLY ${what} SETTINGS mutations_sync = 2`)
    rewritings++
  }
  await patching
  t.comment(`${patched} patches`)
  t.ok(patched < ROWS)
  const left = await clickhouse.query<{ id: number; text: string }>(
    `SELECT id, text FROM ${table} WHERE id < {patched:UInt32} ORDER BY id`,
    { patched },
  )
  t.same(
    left,
    Array.from({ length: Math.ceil(patched / 2) }, (_, i) => ({ id: 2 * i, text: 'new' })),
  )
}
