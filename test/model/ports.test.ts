// The ports of the simulation keep the contracts of the real ones; only then does what the simulation finds mean anything.

import t from 'tap'
import { BadRow } from '../../src/clickhouse/clickhouse.ts'
import { COLUMNS } from '../../src/events/row.ts'
import { erasedId } from '../../src/records/erasures.ts'
import { busContract } from '../contract/bus.ts'
import { kvContract, UNSORTED } from '../contract/kv.ts'
import { logContract } from '../contract/log.ts'
import { bindEmbeddedLog } from './embedded-log.ts'
import { createDirectHost } from './host.ts'
import { BAD_ROW, bindClickHouse, createClickHouseStore, TOKENS_MAX } from './model-clickhouse.ts'
import { bindKv, createKvStore } from './model-kv.ts'
import { bindBus, bindLog, createLogStore } from './ports.ts'

for (const gap of [1, 3]) {
  logContract(t, `model, seqs ${gap} apart`, async () => {
    const store = createLogStore({ partitions: 2 })
    const open = () => bindLog(store, createDirectHost(), 'test', () => gap)
    return { log: open(), reopen: async () => open() }
  })
  logContract(t, `model of the embedded log, seqs ${gap} apart`, async () => {
    const store = createLogStore({ partitions: 2 })
    const open = () => bindEmbeddedLog(store, createDirectHost(), 'test', () => gap)
    return { log: open(), reopen: async () => open() }
  })
}

kvContract(t, 'model', async () => {
  const store = createKvStore()
  const open = () => bindKv(store, createDirectHost(), UNSORTED)
  return { kv: open(), reopen: async () => open() }
})

busContract(t, 'model', async () => {
  const errors: unknown[] = []
  return { bus: bindBus(new Map(), createDirectHost(), (error) => errors.push(error)), errors }
})

t.test('the model ClickHouse knows a token only as long as its window is', async (t) => {
  const store = createClickHouseStore()
  const clickhouse = bindClickHouse(store, createDirectHost())
  const columns = ['workspace_id', 'env', 'ts', 'request_id']
  const insert = (id: number, token: string) =>
    clickhouse.insert('events', columns, Buffer.from(`["w","live",${id},"req_${id}"]\n`), { token })
  const count = () => store.rows.get('events')?.length ?? 0
  await insert(0, 'first')
  await insert(0, 'first')
  t.equal(count(), 1, 'a token twice is one insert')
  const found = await clickhouse.query<object>('', { workspace: 'w', env: 'live', ts: 0, id: 'req_0' })
  t.same(found.map(Object.values), [['w', 'live', 0, 'req_0']])
  t.same(await clickhouse.query('', { workspace: 'w', env: 'test', ts: 0, id: 'req_0' }), [])
  for (let id = 1; id <= TOKENS_MAX; id++) await insert(id, `${id}`)
  await insert(0, 'first')
  t.equal(count(), TOKENS_MAX + 2, 'outside of the window the token is new')
  const bad = clickhouse.insert('events', columns, Buffer.from(`["w","live",1,"x"]\n["w","live",2,"${BAD_ROW}"]\n`), {
    token: 'bad',
  })
  await t.rejects(bad, BadRow)
  t.equal(count(), TOKENS_MAX + 2, 'a refused row takes its batch along')
})

t.test('the model ClickHouse deletes a visitor of one tenant, in lists as in rows', async (t) => {
  const store = createClickHouseStore()
  const clickhouse = bindClickHouse(store, createDirectHost())
  const columns = ['workspace_id', 'env', 'ts', 'request_id', 'visitor_id']
  const rows = ['["w","live",1,"req_1","pv_a"]', '["w","live",2,"req_2","pv_b"]', '["w","test",3,"req_3","pv_a"]']
  await clickhouse.insert('events', columns, Buffer.from(`${rows.join('\n')}\n`), { token: 'first' })
  const list = async (env: string, more = {}) => {
    const params = { workspace: 'w', env, oldest: 0, rows: 10, ...more }
    return (await clickhouse.query<{ readonly request_id: string }>('', params)).map((row) => row.request_id)
  }
  t.same(await list('live'), ['req_2', 'req_1'], 'newest first')
  t.same(await list('live', { visitor0: 'pv_a' }), ['req_1'])
  t.same(await list('live', { erasing: [erasedId('w', 'live', 'pv_b')] }), ['req_1'])
  t.same(await list('live', { rows: 1 }), ['req_2'])
  await clickhouse.patch('events', 'DELETE FROM events WHERE ...', { workspace: 'w', env: 'live', visitor: 'pv_a' })
  t.same([await list('live'), await list('test')], [['req_2'], ['req_3']])

  const quarantine = ['at', 'source', 'log_partition', 'token', 'reason', 'raw']
  const rawOf = (visitor: string) =>
    JSON.stringify(COLUMNS.map((name) => (name === 'visitor_id' ? visitor : name === 'detail' ? '{}' : '')))
  const refused = ['pv_a', 'pv_b'].map((visitor) => JSON.stringify([0, 'events', 0, 't', 'bad', rawOf(visitor)]))
  await clickhouse.insert('quarantine', quarantine, Buffer.from(`${refused.join('\n')}\n`), { token: 'second' })
  await clickhouse.patch('quarantine', 'DELETE FROM quarantine WHERE ...', { visitor: 'pv_a' })
  t.same(
    store.rows.get('quarantine')?.map(({ cells }) => cells[5]),
    [rawOf('pv_b')],
  )
  await t.rejects(clickhouse.command('DROP TABLE events'), 'anything else is refused')
  await t.rejects(clickhouse.patch('events', 'DROP TABLE events'), 'also as a patch')
})
