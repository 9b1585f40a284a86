// The doctor and the servers of a cluster: it reaches each with the credentials of the settings, and says which one it cannot.

import t from 'tap'
import { readConfig } from '../../src/config.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { findReachable } from '../../src/ops/doctor/reach.ts'
import { startClickHouse } from '../helpers/clickhouse.ts'
import { startNats } from '../helpers/nats.ts'
import { freePort } from '../helpers/port.ts'
import { startRedis } from '../helpers/redis.ts'

const [nats, redis, clickhouse] = await Promise.all([startNats(), startRedis(), startClickHouse()])
t.teardown(() => Promise.all([nats.remove(), redis.remove(), clickhouse.remove()]))

const env = {
  FINGERPOST_DEPLOYMENT_MODE: 'cluster',
  FINGERPOST_PORT: String(await freePort()),
  FINGERPOST_NATS_SERVERS: nats.url,
  FINGERPOST_REDIS_URL: redis.url,
  FINGERPOST_CLICKHOUSE_URL: clickhouse.url,
  FINGERPOST_CLICKHOUSE_USER: clickhouse.username,
  FINGERPOST_CLICKHOUSE_PASSWORD: clickhouse.password,
}
const levels = async (more: Readonly<Record<string, string>> = {}) => {
  const found = await findReachable(readConfig({ ...env, ...more }), systemClock)
  return found.filter(({ name }) => name !== 'server').map(({ name, level }) => `${name} ${level}`)
}

t.test('servers that answer are reached', async (t) => {
  t.same(await levels(), ['NATS ok', 'Redis ok', 'ClickHouse ok'])
})

t.test('one that refuses the credentials, or is gone, is to be mended, and the others are still asked', async (t) => {
  t.same(await levels({ FINGERPOST_CLICKHOUSE_PASSWORD: 'wrong' }), ['NATS ok', 'Redis ok', 'ClickHouse bad'])
  await redis.kill9()
  t.same(await levels(), ['NATS ok', 'Redis bad', 'ClickHouse ok'])
  await nats.kill9()
  t.same(await levels(), ['NATS bad', 'Redis bad', 'ClickHouse ok'])
})
