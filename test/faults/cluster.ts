// The deployment in roles as a target: every role and every server under it is killed, paused, cut off, wiped and filled with
// rubbish, alone and together.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type Cluster, type ClusterOptions, type Member, type ProxiedServer, startCluster } from '../helpers/cluster.ts'
import { pause } from '../helpers/processes.ts'
import type { Proxy as FaultProxy, Mode } from '../helpers/proxy.ts'
import type { Rng } from '../helpers/rng.ts'
import { openRedisPair } from './failover.ts'
import type { Load } from './load.ts'
import { everyPartitionDecides, quiet } from './quiet.ts'
import type { Injury, Target } from './target.ts'

interface Stoppable {
  kill9(): Promise<void>
  restart(): Promise<void>
}

/** Longer than any take-over, so that repeats are not told ids of their own. */
const ENV = { FINGERPOST_DECISION_WAIT_MS: '25000' }
const DURATIONS: Durations = { outageMsMax: 3_000, pauseMsMax: 8_000, networkMsMax: 4_000 }

const KINDS = [
  'kill ingress',
  'kill engine',
  'kill nats',
  'pause engine',
  'kill redis',
  'kill clickhouse',
  'kill api',
  'cut replies of clickhouse',
  'pause nats',
  'kill all roles',
  'wipe redis',
  'pause redis',
  'half of clickhouse fails',
  'cut nats off',
  'pause ingress',
  'pause clickhouse',
  'slow redis',
  'restart roles one by one',
  'kill everything',
  'cut redis off',
] as const
/** Needs a standby, which only who asks for it starts. */
const FAILOVER = 'fail redis over'

export type ClusterKind = (typeof KINDS)[number] | typeof FAILOVER

/** What needs a proxy before a server. */
const CUT: Readonly<Record<ProxiedServer, readonly ClusterKind[]>> = {
  nats: ['cut nats off'],
  redis: ['cut redis off', 'slow redis', FAILOVER],
  clickhouse: ['cut replies of clickhouse', 'half of clickhouse fails'],
}

export interface ClusterTargetOptions extends Pick<ClusterOptions, 'main' | 'nodeArgs' | 'partitions'> {
  readonly kinds?: readonly ClusterKind[]
  /** Default: those of a cluster. */
  readonly roles?: readonly string[]
  /** How long what was hurt stays so, in part or whole. Default: as in the campaign. */
  readonly durations?: Partial<Durations>
}

interface Durations {
  readonly outageMsMax: number
  readonly pauseMsMax: number
  readonly networkMsMax: number
}

export async function openCluster(options: ClusterTargetOptions): Promise<Target> {
  const { kinds = KINDS, durations, ...shape } = options
  const { outageMsMax, pauseMsMax, networkMsMax } = { ...DURATIONS, ...durations }
  const proxied = (Object.keys(CUT) as ProxiedServer[]).filter((server) =>
    CUT[server].some((kind) => kinds.includes(kind)),
  )
  const cluster = await startCluster({ ...shape, env: ENV, proxied, redisAof: 'always' })
  const { members, nats, clickhouse, partitions } = cluster
  const proxies = cluster.proxies as Required<Cluster['proxies']>
  const [api] = cluster.membersOf('api') as [Member]
  const pair = kinds.includes(FAILOVER) ? await openRedisPair(cluster.redis, proxies.redis) : null
  const readyMs: number[] = []
  const decidingMs: number[] = []
  let load: Load | null = null

  async function decides(): Promise<void> {
    if (load !== null) decidingMs.push(Math.round(await everyPartitionDecides(load, api.url, partitions)))
  }

  const restartMember = async (member: Member): Promise<void> => {
    await member.restart()
    readyMs.push(Math.round(member.server.readyMs))
  }

  const killed = (what: Stoppable, random: Rng, restart: () => Promise<void>): Omit<Injury, 'name'> => ({
    async hurt() {
      await what.kill9()
      await pause(random.int(outageMsMax))
    },
    async heal() {
      await restart()
      await decides()
    },
  })

  const paused = (pid: number, random: Rng): Omit<Injury, 'name'> => ({
    async hurt() {
      process.kill(pid, 'SIGSTOP')
      await pause(500 + random.int(pauseMsMax))
      process.kill(pid, 'SIGCONT')
    },
    heal: decides,
  })

  const broken = (proxy: FaultProxy, mode: Mode, random: Rng): Omit<Injury, 'name'> => ({
    async hurt() {
      proxy.mode(mode)
      await pause(500 + random.int(networkMsMax))
      proxy.mode({ kind: 'pass' })
    },
    heal: decides,
  })

  /** `fingerpost rebuild`, as an operator runs it. */
  async function rebuild(): Promise<void> {
    const main = options.main ?? new URL('../../server/main.js', import.meta.url).pathname
    const env = { ...process.env, ...cluster.env }
    const child = spawn(process.execPath, [main, 'rebuild'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`rebuild ended with ${code}:\n${output}`)
  }

  function injure(kind: ClusterKind, random: Rng): Omit<Injury, 'name'> {
    const one = (role: string): Member => random.pick(cluster.membersOf(role))
    const redis = pair?.master() ?? cluster.redis
    const killRole = (member: Member) => killed(member, random, () => restartMember(member))
    switch (kind) {
      case 'kill ingress':
        return killRole(one('ingress'))
      case 'kill engine':
        return killRole(one('engine'))
      case 'kill api':
        return killRole(one('api'))
      case 'kill nats':
        return killed(nats, random, nats.restart)
      case 'kill redis':
        return killed(redis, random, redis.restart)
      case FAILOVER:
        return {
          async hurt() {
            await pair?.killMaster()
            await pause(random.int(outageMsMax))
          },
          async heal() {
            await pair?.promote()
            await decides()
          },
        }
      case 'kill clickhouse':
        return killed(clickhouse, random, clickhouse.restart)
      case 'pause engine':
        return paused(one('engine').server.pid, random)
      case 'pause ingress':
        return paused(one('ingress').server.pid, random)
      case 'pause nats':
        return paused(nats.pid(), random)
      case 'pause redis':
        return paused(redis.pid(), random)
      case 'pause clickhouse':
        return paused(clickhouse.pid(), random)
      case 'cut replies of clickhouse':
        return broken(proxies.clickhouse, { kind: 'cutReply', times: 6 }, random)
      case 'half of clickhouse fails':
        return broken(
          proxies.clickhouse,
          { kind: 'http', status: 500, share: 0.5, seed: random.int(1e9), effect: true },
          random,
        )
      case 'cut nats off':
        return broken(proxies.nats, { kind: random.chance(0.5) ? 'blackhole' : 'refuse' }, random)
      case 'cut redis off':
        return broken(proxies.redis, { kind: random.chance(0.5) ? 'blackhole' : 'refuse' }, random)
      case 'slow redis':
        return broken(proxies.redis, { kind: 'delay', ms: 40 + random.int(200) }, random)
      case 'wipe redis':
        return {
          async hurt() {
            await (await redis.client()).flushall()
            await pause(random.int(outageMsMax))
          },
          async heal() {
            await rebuild()
            await decides()
          },
        }
      case 'kill all roles':
        return {
          hurt: async () => void (await Promise.all(members.map((member) => member.kill9()))),
          async heal() {
            await Promise.all(members.map(restartMember))
            await decides()
          },
        }
      case 'kill everything':
        return {
          async hurt() {
            const all: readonly Stoppable[] = [...members, nats, redis, clickhouse]
            await Promise.all(random.shuffle(all).map((one) => one.kill9()))
          },
          async heal() {
            // Every order of starting works: roles wait for servers that are not there yet.
            const starts = [
              nats.restart,
              redis.restart,
              clickhouse.restart,
              ...members.map((m) => () => restartMember(m)),
            ]
            await Promise.all(random.shuffle(starts).map((start) => start()))
            await decides()
          },
        }
      case 'restart roles one by one':
        return {
          async hurt() {
            for (const member of members) {
              const code = await member.server.stop()
              if (code !== 0)
                throw new Error(`${member.roles} ended with ${code}:\n${member.server.logs().slice(-2_000)}`)
              await restartMember(member)
            }
          },
          heal: decides,
        }
    }
  }

  return {
    urls: cluster.membersOf('ingress').map(({ url }) => url),
    url: api.url,
    keys: cluster.keys,
    partitions,
    readyMs,
    decidingMs,
    injury(cycle, random) {
      const kind = kinds[cycle % kinds.length] as ClusterKind
      return { name: kind, ...injure(kind, random) }
    },
    quiet: (watching) =>
      quiet(
        watching,
        members.map(({ server }) => server),
        partitions,
      ),
    async watch(watching) {
      load = watching
    },
    async stop() {
      await cluster.stop()
      await pair?.remove()
    },
  }
}
