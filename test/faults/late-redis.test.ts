// A Redis that stops answering while a process starts: the process waits for it, as for one that does not answer yet.

import { join } from 'node:path'
import t from 'tap'
import { startNats } from '../helpers/nats.ts'
import { freePort } from '../helpers/port.ts'
import { pause, until } from '../helpers/processes.ts'
import { openProxy } from '../helpers/proxy.ts'
import { startRedis } from '../helpers/redis.ts'
import { cleanUp, launchServer, temporaryFolder } from '../helpers/server.ts'

/** Longer than a command waits for its answer. */
const SILENT_MS = 3_000
/** Each way: so that the start is far from over when it has begun. */
const SLOW_MS = 100
const MS_MAX = 120_000

t.setTimeout(400_000)
t.teardown(cleanUp)

t.test('a start outlasts calls that fail', async (t) => {
  const [nats, redis] = await Promise.all([startNats(), startRedis()])
  const proxy = await openProxy({ target: { port: redis.port } })
  proxy.mode({ kind: 'delay', ms: SLOW_MS })
  t.teardown(async () => {
    await Promise.all([nats.remove(), redis.remove()])
    await proxy.close()
  })
  const launched = await launchServer({
    env: {
      FINGERPOST_DEPLOYMENT_MODE: 'cluster',
      FINGERPOST_PROCESS_ROLES: 'api',
      FINGERPOST_DATA_PARTITIONS: '4',
      FINGERPOST_NATS_SERVERS: nats.url,
      FINGERPOST_NATS_REPLICAS: '1',
      FINGERPOST_REDIS_URL: `redis://127.0.0.1:${proxy.port}`,
      // Nobody is there; the history may open later.
      FINGERPOST_CLICKHOUSE_URL: `http://127.0.0.1:${await freePort()}`,
      FINGERPOST_LOG_BYTES_MAX: '4294967296',
      FINGERPOST_WEBHOOKS_MASTER_KEY_FILE: join(temporaryFolder(), 'master.key'),
    },
  })
  let ended = false
  void launched.exited.then(() => {
    ended = true
  })
  const says = (text: string) => () => ended || launched.logs().includes(text)
  await until('it is connected', MS_MAX, says('what an acknowledgement means here'))
  proxy.mode({ kind: 'blackhole' })
  await pause(SILENT_MS)
  proxy.mode({ kind: 'pass' })
  const isUp = async () => ended || (await fetch(`${launched.url}/healthz`).catch(() => null))?.status === 200
  await until('it serves', MS_MAX, isUp)
  t.notOk(ended, launched.logs().slice(-2_000))
  t.match(launched.logs(), /waiting for a server/, 'calls had failed')
  t.equal(await launched.stop(), 0)
})
