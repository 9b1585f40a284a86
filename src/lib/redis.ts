// One connection to a Redis server or cluster: commands fail at once while there is none, every answer is waited for a bounded
// time, a link that went silent is replaced, and what the server refuses becomes one of our failures.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Cluster, Redis, ReplyError } from 'ioredis'
import type { Clock } from './clock.ts'
import { Full, Told, Unavailable } from './failures.ts'
import { layOutStrings } from './fast-strings.ts'
import { within } from './within.ts'

export interface RedisConfig {
  /** `redis://[user:password@]host:port[/db]`, or `rediss://` for TLS; ignored when `clusterNodes` names any. */
  readonly url: string
  /** Some nodes of a Redis Cluster as `host:port` or URLs; credentials and TLS are those of the first. */
  readonly clusterNodes?: readonly string[]
  /** A file with the PEM of the servers' authority, for `rediss://`. An empty text counts as not given. */
  readonly caFile?: string
  /** Shown in CLIENT LIST. */
  readonly name: string
  readonly clock: Clock
  /** How long an answer is waited for; after that nobody knows whether the command is done. */
  readonly commandMsMax?: number
  /** Told about connections that were lost or could not be made; it is tried again. */
  readonly onError?: (error: unknown) => void
}

export type RedisClient = Redis | Cluster

/** The server is there, but what is kept on it would not be safe, or could not be kept at all. */
export class UnsafeRedis extends Told {
  override readonly name = 'UnsafeRedis'
}

const COMMAND_MS_MAX = 2_000
const CONNECT_MS_MAX = 5_000
/** A silent link is noticed when a probe has had no answer for this long. */
const SILENCE_MS_MAX = 4_000
const PROBE_EVERY_MS = 2_000
const RETRY_MS_MAX = 1_000
const SLOTS_REFRESH_MS = 5_000

/** Codes of servers that do not know the user, or not with this password. */
const REFUSALS: readonly (string | null)[] = ['WRONGPASS', 'NOAUTH', 'NOPERM']

/**
 * Resolves when commands can be sent; fails with Unavailable when no server can be reached, and with UnsafeRedis when one refuses the
 * credentials. Ends with `disconnect()`.
 */
export async function connectRedis(config: RedisConfig): Promise<RedisClient> {
  layOutStrings()
  const { clock, onError } = config
  const client = config.clusterNodes?.length ? makeCluster(config, config.clusterNodes) : makeSingle(config)
  let isConnected = false
  let latest: unknown = null
  // Without a listener the client prints errors; the callers of failed commands are told anyway, and so is who connects.
  client.on('error', (error: unknown) => {
    latest = error
    if (isConnected) onError?.(error)
  })
  try {
    if ((await within(clock, CONNECT_MS_MAX, client.connect())) === null) {
      throw new Unavailable(`Redis was not ready within ${CONNECT_MS_MAX} ms`)
    }
  } catch (cause) {
    client.disconnect()
    // What ended the connection is told apart from that it ended.
    const why = latest ?? cause
    if (REFUSALS.includes(codeOf(why))) throw new UnsafeRedis('Redis refuses the credentials', { cause: why })
    if (cause instanceof Unavailable) throw new Unavailable(cause.message, { cause: latest })
    throw new Unavailable('Redis cannot be reached', { cause: why })
  }
  isConnected = true
  void probe(client, clock)
  return client
}

/** What both kinds of connection share. */
function options({ name, commandMsMax = COMMAND_MS_MAX }: RedisConfig) {
  return {
    connectionName: name,
    lazyConnect: true,
    protocol: 2 as const,
    connectTimeout: CONNECT_MS_MAX,
    commandTimeout: commandMsMax,
    socketTimeout: SILENCE_MS_MAX,
    keepAlive: 10_000,
    // A command that was sent may have been done: sending it again is for the caller to decide.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // A demoted master goes on answering; another connection may lead to its successor.
    reconnectOnError: (error: Error) => codeOf(error) === 'READONLY',
  }
}

const authorityOf = ({ caFile }: RedisConfig) => (caFile ? { ca: readFileSync(caFile) } : {})

const retryAfter = (times: number): number => Math.min(50 * times, RETRY_MS_MAX)

/** What one turn of the event loop asks for goes out as one write: writes cost more than what they carry. */
function writeByTurn(client: Redis): Redis {
  const send = client.sendCommand.bind(client)
  let corked: Redis['stream'] | null = null
  client.sendCommand = (command, over) => {
    const { stream } = client
    // There is none before the first connection, and another one after each.
    if (stream !== undefined && stream !== corked) {
      corked = stream
      stream.cork()
      setImmediate(() => {
        if (corked === stream) corked = null
        stream.uncork()
      })
    }
    return send(command, over)
  }
  return client
}

function makeSingle(config: RedisConfig): Redis {
  return writeByTurn(
    new Redis(config.url, {
      ...options(config),
      enableOfflineQueue: false,
      retryStrategy: retryAfter,
      ...(config.url.startsWith('rediss:') ? { tls: authorityOf(config) } : {}),
    }),
  )
}

function makeCluster(config: RedisConfig, nodes: readonly string[]): Cluster {
  const urls = nodes.map((node) => new URL(node.includes('://') ? node : `redis://${node}`))
  const tls = urls[0]?.protocol === 'rediss:'
  const { username = '', password = '' } = urls[0] ?? {}
  const cluster = new Cluster(
    urls.map(({ hostname, port }) => ({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) })),
    {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryAfter,
      // Only what was certainly not executed is sent again: a redirection, never a lost answer.
      retryDelayOnFailover: 0,
      slotsRefreshInterval: SLOTS_REFRESH_MS,
      // Certificates name hosts, not the addresses they resolve to.
      ...(tls ? { dnsLookup: (address, done) => done(null, address) } : {}),
      redisOptions: {
        ...options(config),
        ...(username === '' ? {} : { username: decodeURIComponent(username) }),
        ...(password === '' ? {} : { password: decodeURIComponent(password) }),
        ...(tls ? { tls: authorityOf(config) } : {}),
      },
    },
  )
  cluster.on('+node', (node: Redis) => void writeByTurn(node))
  return cluster
}

const nodesOf = (client: RedisClient): Redis[] => (client instanceof Cluster ? client.nodes('master') : [client])

/** Only a command without an answer tells that a link is dead, so an idle connection needs some. */
async function probe(client: RedisClient, clock: Clock): Promise<void> {
  const ended = new AbortController()
  client.once('end', () => ended.abort())
  while (!ended.signal.aborted) {
    await clock.sleep(PROBE_EVERY_MS, ended.signal)
    await Promise.allSettled(nodesOf(client).map((node) => (node.status === 'ready' ? node.ping() : null)))
  }
}

/** The code of a server's refusal, such as LOADING; null when the error did not come from a server. */
function codeOf(error: unknown): string | null {
  if (!(error instanceof ReplyError)) return null
  const { message } = error as Error
  // Before version 7 a refusal inside of a script was wrapped into another sentence.
  const inner = message.startsWith('ERR Error running script') ? / -([A-Z]+) /.exec(message) : null
  return inner?.[1] ?? message.split(' ', 1)[0] ?? ''
}

/** Refusals that say a command was wrong, whatever the state of the server. */
const OUR_FAULT: readonly (string | null)[] = ['ERR', 'WRONGTYPE', 'CROSSSLOT', 'NOSCRIPT', 'NOPROTO']

/** What a failed command means to the caller of a port. */
export function redisFailureOf(error: unknown): unknown {
  if (error instanceof Unavailable || error instanceof RangeError || error instanceof TypeError) return error
  const code = codeOf(error)
  if (code === 'OOM') return new Full('Redis has reached its maxmemory', { cause: error })
  if (OUR_FAULT.includes(code)) return error
  return new Unavailable(code === null ? 'Redis did not answer' : `Redis cannot serve: ${code}`, { cause: error })
}

export interface Script {
  run(client: RedisClient, keys: readonly string[], args: readonly (string | number | Buffer)[]): Promise<unknown>
}

/** A script that is sent by name, and in full when the server does not know it. */
export function readScript(file: URL): Script {
  const text = readFileSync(file, 'utf8')
  const sha = createHash('sha1').update(text).digest('hex')
  return {
    async run(client, keys, args) {
      const rest = [keys.length, ...keys, ...args]
      try {
        return await client.call('evalsha', [sha, ...rest])
      } catch (error) {
        if (codeOf(error) !== 'NOSCRIPT') throw error
        return client.call('eval', [text, ...rest])
      }
    },
  }
}

export interface RedisNodeFacts {
  readonly address: string
  readonly version: string
  readonly isMaster: boolean
  /** Whether writes are kept in an append-only file. */
  readonly appendonly: boolean | null
  /** `always`, `everysec` or `no`; null when the server does not tell. */
  readonly appendfsync: string | null
  /** What happens at `maxmemoryBytes`; null when the server does not tell. */
  readonly maxmemoryPolicy: string | null
  /** 0: no limit. */
  readonly maxmemoryBytes: number | null
}

export interface RedisFacts {
  readonly isCluster: boolean
  /** The server, or every master of the cluster. */
  readonly nodes: readonly RedisNodeFacts[]
}

/** What the servers say about how they keep data. Fails with Unavailable. */
export async function readRedisFacts(client: RedisClient): Promise<RedisFacts> {
  const nodes = await Promise.all(nodesOf(client).map(factsOf)).catch((error: unknown) => {
    throw redisFailureOf(error)
  })
  return { isCluster: client instanceof Cluster, nodes }
}

async function factsOf(node: Redis): Promise<RedisNodeFacts> {
  const info = parseInfo(await node.info())
  // Hosted servers often refuse CONFIG.
  const setting = async (name: string) =>
    node.config('GET', name).then(
      (reply) => (reply as string[])[1] ?? null,
      (error: unknown) => {
        if (codeOf(error) === null) throw error
        return null
      },
    )
  const maxmemory = info.get('maxmemory')
  return {
    address: `${node.options.host}:${node.options.port}`,
    version: info.get('redis_version') ?? '0',
    isMaster: info.get('role') === 'master',
    appendonly: info.has('aof_enabled') ? info.get('aof_enabled') === '1' : null,
    appendfsync: await setting('appendfsync'),
    maxmemoryPolicy: info.get('maxmemory_policy') ?? (await setting('maxmemory-policy')),
    maxmemoryBytes: maxmemory === undefined ? null : Number(maxmemory),
  }
}

/** Bytes of memory that all servers use together. Fails with Unavailable. */
export async function usedMemory(client: RedisClient): Promise<number> {
  const infos = await Promise.all(nodesOf(client).map((node) => node.info('memory'))).catch((error: unknown) => {
    throw redisFailureOf(error)
  })
  return infos.reduce((sum, info) => sum + Number(parseInfo(info).get('used_memory') ?? 0), 0)
}

const parseInfo = (text: string): Map<string, string> =>
  new Map(
    text
      .split('\r\n')
      .flatMap((line) =>
        line.includes(':') ? [[line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]] : [],
      ),
  )

const VERSION_MIN = [6, 2] as const

/** Throws UnsafeRedis when a server could lose or refuse what is kept on it without anything being broken. */
export function refuseUnsafeRedis({ nodes }: RedisFacts): void {
  for (const { address, version, isMaster, maxmemoryPolicy } of nodes) {
    const [major = 0, minor = 0] = version.split('.').map(Number)
    if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])) {
      throw new UnsafeRedis(`Redis at ${address} is version ${version}; at least ${VERSION_MIN.join('.')} is needed`)
    }
    if (!isMaster) throw new UnsafeRedis(`Redis at ${address} is a replica, which refuses writes: name its master`)
    if (maxmemoryPolicy !== null && maxmemoryPolicy !== 'noeviction') {
      throw new UnsafeRedis(
        `Redis at ${address} drops records when its memory is full (maxmemory-policy ${maxmemoryPolicy}): set noeviction`,
      )
    }
  }
}
