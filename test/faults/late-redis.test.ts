// Servers that do not answer while a process starts: the process waits for them, says so in few words, and can be told to leave.

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startNats } from '../helpers/nats.ts'
import { freePort } from '../helpers/port.ts'
import { pause, until } from '../helpers/processes.ts'
import { openProxy } from '../helpers/proxy.ts'
import { startRedis } from '../helpers/redis.ts'
import { cleanUp, launchServer, makeKeys, temporaryFolder } from '../helpers/server.ts'

/** Longer than a command waits for its answer. */
const SILENT_MS = 3_000
/** Each way: so that the start is far from over when it has begun. */
const SLOW_MS = 100
const MS_MAX = 120_000
const STACK = /\\n {4}at |^ {4}at /m

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
  t.notMatch(launched.logs(), STACK, 'which is told without a stack')
  t.equal(await launched.stop(), 0)
})

const masterKeyFile = join(temporaryFolder(), 'master.key')
const keys = makeKeys()
const clusterEnv = (nats: string, redis: string, clickhouse: string) => ({
  FINGERPOST_DEPLOYMENT_MODE: 'cluster',
  FINGERPOST_DATA_PARTITIONS: '4',
  FINGERPOST_NATS_SERVERS: nats,
  FINGERPOST_NATS_REPLICAS: '1',
  FINGERPOST_REDIS_URL: redis,
  FINGERPOST_CLICKHOUSE_URL: clickhouse,
  FINGERPOST_LOG_BYTES_MAX: '4294967296',
  FINGERPOST_WEBHOOKS_MASTER_KEY_FILE: masterKeyFile,
})

/** The address of somebody who takes connections and never says a word. */
async function silent(t: Test): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('a start that waits for a server ends when it is told to, and says what it waits for in lines', async (t) => {
  const [nats, redis] = await Promise.all([startNats(), startRedis()])
  t.teardown(() => Promise.all([nats.remove(), redis.remove()]))
  const [nobody, mute] = [`127.0.0.1:${await freePort()}`, await silent(t)]
  const redisUrl = `redis://127.0.0.1:${redis.port}`
  const cases: readonly [what: string, env: Record<string, string>, said: RegExp | null][] = [
    ['NATS, nobody', clusterEnv(`nats://${nobody}`, redisUrl, `http://${nobody}`), /waiting for NATS/],
    ['NATS, mute', clusterEnv(`nats://${mute}`, redisUrl, `http://${nobody}`), null],
    ['Redis, nobody', clusterEnv(nats.url, `redis://${nobody}`, `http://${nobody}`), /waiting for Redis/],
    ['Redis, mute', clusterEnv(nats.url, `redis://${mute}`, `http://${nobody}`), null],
    ['ClickHouse, nobody', clusterEnv(nats.url, redisUrl, `http://${nobody}`), /waiting for ClickHouse/],
    ['ClickHouse, mute', clusterEnv(nats.url, redisUrl, `http://${mute}`), /Fingerpost listens on/],
  ]
  for (const [what, env, said] of cases) {
    const launched = await launchServer({ env, keys })
    let code: number | null | undefined
    void launched.exited.then((its) => {
      code = its
    })
    if (said === null) await pause(SILENT_MS)
    else await until(`${what}: it waits`, MS_MAX, () => code !== undefined || said.test(launched.logs()))
    launched.signal('SIGTERM')
    const from = performance.now()
    await until(`${what}: it leaves`, MS_MAX, () => code !== undefined)
    t.comment(`${what}: left after ${Math.round(performance.now() - from)} ms`)
    t.equal(code, 0, `${what}: ${launched.logs().slice(-1_000)}`)
    const waiting = launched
      .logs()
      .split('\n')
      .filter((line) => line.includes('"waiting for '))
    for (const line of waiting) t.match(JSON.parse(line), { tries: Number, why: String }, line)
    t.notMatch(launched.logs(), STACK, `${what}: no stack`)
  }
})
