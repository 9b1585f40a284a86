// A whole cluster on one machine: NATS, Redis and ClickHouse as processes of their own, each behind a proxy when faults are
// wanted, and the roles of Fingerpost over them.

import { join } from 'node:path'
import { type ClickHouseServer, startClickHouse } from './clickhouse.ts'
import { type NatsServer, startNats } from './nats.ts'
import { freePort } from './port.ts'
import { type Proxy as FaultProxy, openProxy } from './proxy.ts'
import { type RedisServer, startRedis } from './redis.ts'
import {
  type Keys,
  type Launched,
  launchServer,
  makeKeys,
  type Server,
  startServer,
  temporaryFolder,
} from './server.ts'

export interface Member {
  readonly roles: string
  readonly url: string
  server: Server
  /** Ends it with SIGKILL. */
  kill9(): Promise<void>
  /** The same port and settings; resolves when ready. */
  restart(): Promise<void>
  /** Starts it without waiting: for starts that cannot succeed yet. */
  launch(): Promise<Launched>
}

export interface ClusterOptions {
  /** One process each. Default: two of ingress, two of engine and jobs, one of api. */
  readonly roles?: readonly string[]
  readonly partitions?: number
  readonly env?: Readonly<Record<string, string>>
  /** What goes to these servers goes through a proxy that can break the network. */
  readonly proxied?: readonly ProxiedServer[]
  readonly redisAof?: 'off' | 'everysec' | 'always'
  /** Further settings of the servers, as `NatsOptions.config` and `RedisOptions.args`. NATS is then reached by its name. */
  readonly natsConfig?: string
  readonly redisArgs?: readonly string[]
  readonly nodeArgs?: readonly string[]
  /** The entry of another build than this one. */
  readonly main?: string
  /** As of `startServer`. */
  readonly asShipped?: boolean
}

export type ProxiedServer = 'nats' | 'redis' | 'clickhouse'

/** Of one process. */
export type OwnOptions = Pick<ClusterOptions, 'env' | 'nodeArgs'>

export interface Cluster {
  readonly keys: Keys
  readonly partitions: number
  readonly nats: NatsServer
  readonly redis: RedisServer
  readonly clickhouse: ClickHouseServer
  /** Between the roles and the servers, where asked for. */
  readonly proxies: { readonly [server in ProxiedServer]?: FaultProxy }
  readonly members: readonly Member[]
  /** The settings of a process of this cluster, for commands. */
  readonly env: Readonly<Record<string, string>>
  membersOf(role: string): readonly Member[]
  /** Another process; resolves when it is ready. */
  add(roles: string, own?: OwnOptions): Promise<Member>
  stop(): Promise<void>
}

const ROLES = ['ingress', 'ingress', 'engine,jobs,dispatcher', 'engine,jobs', 'api'] as const

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { partitions = 4, roles = ROLES, redisAof = 'everysec' } = options
  const [nats, redis, clickhouse] = await Promise.all([
    startNats({ config: options.natsConfig ?? '' }),
    startRedis({ aof: redisAof, args: options.redisArgs ?? [] }),
    startClickHouse(),
  ])
  const natsPort = Number(new URL(nats.url).port)
  // Of an address the client does not hold certificates against it.
  const natsHost = options.natsConfig === undefined ? '127.0.0.1' : 'localhost'
  const ports = { nats: natsPort, redis: redis.port, clickhouse: clickhouse.port }
  const proxies: { [server in ProxiedServer]?: FaultProxy } = {}
  for (const server of options.proxied ?? []) {
    proxies[server] = await openProxy({ target: { host: '127.0.0.1', port: ports[server] } })
  }
  const keys = makeKeys()
  const env: Record<string, string> = {
    FINGERPOST_DEPLOYMENT_MODE: 'cluster',
    FINGERPOST_DATA_PARTITIONS: String(partitions),
    FINGERPOST_NATS_SERVERS: `nats://${natsHost}:${proxies.nats?.port ?? natsPort}`,
    FINGERPOST_NATS_REPLICAS: '1',
    FINGERPOST_REDIS_URL: `redis://127.0.0.1:${proxies.redis?.port ?? redis.port}`,
    FINGERPOST_CLICKHOUSE_URL: `http://127.0.0.1:${proxies.clickhouse?.port ?? clickhouse.port}`,
    FINGERPOST_CLICKHOUSE_USER: clickhouse.username,
    FINGERPOST_CLICKHOUSE_PASSWORD: clickhouse.password,
    FINGERPOST_LOG_BYTES_MAX: '4294967296',
    FINGERPOST_TRUSTED_PROXIES: '127.0.0.0/8',
    FINGERPOST_WEBHOOKS_MASTER_KEY_FILE: join(temporaryFolder(), 'master.key'),
    ...options.env,
  }

  async function open(name: string, own: OwnOptions = {}): Promise<Member> {
    const settings = {
      keys,
      port: await freePort(),
      dataDir: temporaryFolder(),
      env: { ...env, FINGERPOST_PROCESS_ROLES: name, ...own.env },
      nodeArgs: [...(options.nodeArgs ?? []), ...(own.nodeArgs ?? [])],
      ...(options.main === undefined ? {} : { main: options.main }),
      ...(options.asShipped === undefined ? {} : { asShipped: options.asShipped }),
    }
    const member: Member = {
      roles: name,
      url: `http://127.0.0.1:${settings.port}`,
      server: await startServer(settings),
      kill9: () => member.server.kill9(),
      launch: () => launchServer(settings),
      async restart() {
        member.server = await startServer(settings)
      },
    }
    return member
  }

  const members: Member[] = []
  const stopServers = async () => {
    for (const proxy of Object.values(proxies)) await proxy.close()
    await Promise.all([nats.remove(), redis.remove(), clickhouse.remove()])
  }
  try {
    members.push(...(await Promise.all(roles.map((name) => open(name)))))
  } catch (error) {
    await stopServers()
    throw error
  }
  return {
    keys,
    partitions,
    nats,
    redis,
    clickhouse,
    proxies,
    members,
    env,
    async add(name, own) {
      const member = await open(name, own)
      members.push(member)
      return member
    },
    membersOf: (role) => members.filter(({ roles: its }) => its === 'all' || its.split(',').includes(role)),
    async stop() {
      await Promise.all(members.map(({ server }) => server.stop()))
      await stopServers()
    },
  }
}
