// Rows as a block of Native must be in the table what the same rows are as lines.

import type { Test } from 'tap'
import type { ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { encodeNative, type NativeColumn, openTexts } from '../../src/clickhouse/native.ts'
import { type Cell, COLUMNS, EVENTS_TABLE, toCells } from '../../src/events/row.ts'
import { sized } from '../helpers/depth.ts'
import { rng } from '../helpers/rng.ts'
import { HOSTILE, randomEvent } from '../helpers/stored-events.ts'

const ROWS = 400
/** An insert costs much, and what its token does is no matter of its form. */
const REPEATED = sized({ quick: 0, usual: 1, long: 3 })
/** More different texts than places of one byte can tell apart. */
const TEXTS_MANY = 300

export async function nativeContract(t: Test, clickhouse: ClickHouse, run: string): Promise<void> {
  const seed = Number(process.env.NATIVE_SEED ?? 1)
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  const rows: Cell[][] = Array.from({ length: ROWS }, (_, i) => {
    const event = randomEvent(r, '', i)
    const email = i < HOSTILE.length ? (HOSTILE[i] as string) : `${i % TEXTS_MANY}@${'é'.repeat(i % 90)}`
    const device = {
      ...event.device,
      gpu: `gpu ${i % TEXTS_MANY}`,
      model: i === 7 ? 'x'.repeat(70_000) : event.device.model,
    }
    return toCells({ ...event, email, device }, i % 16, i)
  })
  const types = new Map(
    (
      await clickhouse.query<{ name: string; type: string }>(
        'SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {table:String}',
        { table: EVENTS_TABLE },
      )
    ).map(({ name, type }) => [name, type]),
  )
  const stored = async (workspace: string) =>
    clickhouse.query<Record<string, unknown>>(
      `SELECT * EXCEPT (workspace_id, inserted_at), visitor_hash, ip_hash, email_hash, linked_hash, monitor_rules, key_kind
       FROM ${EVENTS_TABLE} WHERE workspace_id = {workspace:String} ORDER BY log_seq`,
      { workspace },
    )
  const workspaceOf = (form: string) => `native ${form} ${run}`
  const lines = rows.map((cells) => `${JSON.stringify(cells.with(0, workspaceOf('lines')))}\n`).join('')
  await clickhouse.insert(EVENTS_TABLE, COLUMNS, Buffer.from(lines), { token: `lines ${run}` })
  const wanted = await stored(workspaceOf('lines'))
  t.equal(wanted.length, ROWS)

  /** Every value once, and for each row the place of its own; or as they come. */
  const columnOf = (place: number, shares: boolean): NativeColumn => {
    const name = COLUMNS[place] as string
    const type = types.get(name) ?? ''
    const values = rows.map((cells) => cells[place] as Cell)
    if (!shares) return { name, type, values, at: null }
    const distinct = [...new Set(values)]
    return { name, type, values: distinct, at: Uint32Array.from(values, (value) => distinct.indexOf(value)) }
  }
  const email = openTexts()
  for (const cells of rows) email.add(cells[COLUMNS.indexOf('email')] as string)
  const forms: Record<string, (place: number) => NativeColumn> = {
    'a value for each row': (place) => columnOf(place, false),
    'shared values': (place) => columnOf(place, true),
    'texts as they came, addresses as text': (place) => {
      const name = COLUMNS[place] as string
      if (name === 'email') return { name, type: 'String', texts: email }
      return name === 'ip' ? { ...columnOf(place, false), type: 'String' } : columnOf(place, false)
    },
  }
  for (const [n, [name, form]] of Object.entries(forms).entries()) {
    const block = encodeNative(
      COLUMNS.map((column, place) =>
        column === 'workspace_id'
          ? { ...form(place), values: [workspaceOf(name)], at: new Uint32Array(ROWS) }
          : form(place),
      ),
      ROWS,
    )
    for (let times = 0; times < (n < REPEATED ? 2 : 1); times++) {
      await clickhouse.insert(EVENTS_TABLE, COLUMNS, block, { token: `${name} ${run}`, format: 'Native' })
    }
    const found = await stored(workspaceOf(name))
    const other = wanted.findIndex((row, i) => JSON.stringify(row) !== JSON.stringify(found[i]))
    if (other >= 0) t.same(found[other], wanted[other], `${name}: row ${other}`)
    t.equal(found.length, ROWS, name)
  }
  t.throws(() => encodeNative([{ name: 'x', type: 'Map(String, String)', values: [''], at: null }], 1), RangeError)
}
