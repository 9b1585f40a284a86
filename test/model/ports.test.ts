// The ports of the simulation keep the contracts of the real ones; only then does what the simulation finds mean anything.

import t from 'tap'
import { BadRow } from '../../src/clickhouse/clickhouse.ts'
import { busContract } from '../contract/bus.ts'
import { kvContract, UNSORTED } from '../contract/kv.ts'
import { logContract } from '../contract/log.ts'
import { createDirectHost } from './host.ts'
import { bindKv, createKvStore } from './model-kv.ts'
import {
  BAD_ROW,
  bindBus,
  bindClickHouse,
  bindLog,
  createClickHouseStore,
  createLogStore,
  TOKENS_MAX,
} from './ports.ts'

for (const gap of [1, 3]) {
  logContract(t, `model, seqs ${gap} apart`, async () => {
    const store = createLogStore({ partitions: 2 })
    const open = () => bindLog(store, createDirectHost(), 'test', () => gap)
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
