// What is measured: one embedded server, or a whole cluster on this machine.

import { join } from 'node:path'
import { openHttpClickHouse } from '../src/clickhouse/client.ts'
import { openEmbeddedClickHouse } from '../src/clickhouse/embedded.ts'
import { DATABASE } from '../src/clickhouse/open.ts'
import { systemClock } from '../src/lib/clock.ts'
import { startCluster } from '../test/helpers/cluster.ts'
import { type Keys, startServer, temporaryFolder } from '../test/helpers/server.ts'
import { childrenOf } from './measure.ts'

export interface Count {
  readonly n: number
  readonly ids: number
}

export interface Subject {
  /** Where identifications go. */
  readonly url: string
  readonly port: number
  /** Where rules are written. */
  readonly apiUrl: string
  readonly keys: Keys
  /** Processes by what they are called in the report. */
  pids(): readonly (readonly [name: string, pid: number])[]
  /** The metrics of all processes, one after the other. */
  metrics(): Promise<string>
  /** Ends everything but ClickHouse, and counts its rows. */
  stopAndCount(): Promise<Count>
}

const COUNT = 'SELECT count() AS n, uniqExact(request_id) AS ids FROM events'
/** Settings of whoever runs the benchmark count, as in FINGERPOST_ENGINE_THREADS=1 npm run bench. */
const GIVEN = Object.entries(process.env).filter(([name]) => name.startsWith('FINGERPOST_'))
const ENV = { FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32', ...Object.fromEntries(GIVEN) }
const NO_ROWS: Count = { n: 0, ids: 0 }
const silent = { info: () => undefined, warn: () => undefined }

/** `settings` win over those of whoever runs the benchmark. */
export async function openEmbeddedSubject(
  nodeArgs: readonly string[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Subject> {
  const dataDir = temporaryFolder()
  const server = await startServer({ asShipped: true, dataDir, env: { ...ENV, ...settings }, nodeArgs })
  return {
    url: server.url,
    port: server.port,
    apiUrl: server.url,
    keys: server.keys,
    pids: () => [['server', server.pid], ...childrenOf(server.pid).map((pid) => ['engine', pid] as const)],
    metrics: async () => await (await fetch(`${server.url}/metrics`)).text(),
    async stopAndCount() {
      await server.stop()
      const folder = join(dataDir, 'clickhouse')
      const clickhouse = await openEmbeddedClickHouse({
        dataDir: folder,
        database: DATABASE,
        clock: systemClock,
        log: silent,
      })
      const [row] = await clickhouse.query<Count>(COUNT)
      await clickhouse.close()
      return row ?? NO_ROWS
    },
  }
}

/** `roles`: one process for each, such as `ingress,api` and `engine,jobs`. */
export async function openClusterSubject(
  roles: readonly string[],
  nodeArgs: readonly string[],
  settings: Readonly<Record<string, string>>,
): Promise<Subject> {
  const cluster = await startCluster({
    asShipped: true,
    roles,
    env: { ...ENV, ...settings },
    nodeArgs,
    partitions: 4,
    redisAof: 'everysec',
  })
  const { nats, redis, clickhouse, members, keys } = cluster
  const memberOf = (role: string) => {
    const [member] = cluster.membersOf(role)
    if (member === undefined) throw new Error(`no process has the role ${role}`)
    return member
  }
  return {
    url: memberOf('ingress').url,
    port: memberOf('ingress').server.port,
    apiUrl: memberOf('api').url,
    keys,
    pids: () => [
      ...members.map(({ roles: name, server }) => [name, server.pid] as const),
      ['nats', nats.pid()],
      ['redis', redis.pid()],
      ['clickhouse', clickhouse.pid()],
    ],
    async metrics() {
      const texts = members.map(async ({ url }) => await (await fetch(`${url}/metrics`)).text())
      return (await Promise.all(texts)).join('\n')
    },
    async stopAndCount() {
      const port = openHttpClickHouse({
        url: clickhouse.url,
        username: clickhouse.username,
        password: clickhouse.password,
        database: DATABASE,
      })
      const [row] = await port.query<Count>(COUNT)
      await port.close()
      await cluster.stop()
      return row ?? NO_ROWS
    },
  }
}
