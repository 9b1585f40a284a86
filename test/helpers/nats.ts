// Real NATS servers with JetStream in processes of their own, on free ports and in temporary folders, alone or as a cluster:
// killed, paused and restarted by tests.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type NatsConnection } from 'nats'
import { freePort } from './port.ts'
import { standStill } from './standstill.ts'

export interface NatsOptions {
  /** Default: true. */
  readonly jetStream?: boolean
  /** Further lines of the configuration file, such as `max_payload: 100000`. */
  readonly config?: string
}

export interface NatsServer {
  /** In a cluster, unlike that of the others. */
  readonly name: string
  readonly url: string
  /** Where it keeps its streams. */
  readonly dir: string
  /** Address of `/varz` and its like. */
  readonly monitorUrl: string
  pid(): number
  /** A connection of the test's own, closed by `remove`. */
  client(): Promise<NatsConnection>
  kill9(): Promise<void>
  stop(): Promise<void>
  /** The same ports and folder after `kill9` or `stop`; resolves when it answers, with JetStream if it has any. */
  restart(): Promise<void>
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void
  resume(): void
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

export interface NatsCluster {
  readonly servers: readonly NatsServer[]
  readonly urls: readonly string[]
  /** The server that leads a stream; fails when there is none within some seconds. */
  leaderOf(stream: string): Promise<NatsServer>
  remove(): Promise<void>
}

const READY_MS_MAX = 60_000
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Resolves when the server answers. */
export async function startNats(options: NatsOptions = {}): Promise<NatsServer> {
  const server = await prepare('alone', options, '')
  await server.restart()
  return server
}

/** Resolves when the servers have found each other. */
export async function startNatsCluster(size: number, options: NatsOptions = {}): Promise<NatsCluster> {
  const ports = await Promise.all(Array.from({ length: size }, freePort))
  const routes = ports.map((port) => `nats://127.0.0.1:${port}`).join(', ')
  const servers = await Promise.all(
    ports.map((port, at) =>
      prepare(`n${at}`, options, `cluster { name: test, listen: "127.0.0.1:${port}", routes: [${routes}] }`),
    ),
  )
  await Promise.all(servers.map((server) => server.restart()))
  return {
    servers,
    urls: servers.map(({ url }) => url),
    async leaderOf(stream) {
      for (const deadline = performance.now() + READY_MS_MAX; performance.now() < deadline; await sleep(50)) {
        for (const server of servers) {
          const info = await streamInfo(server, stream)
          const leader = servers.find(({ name }) => name === info?.cluster?.leader)
          if (leader) return leader
        }
      }
      throw new Error(`${stream} has no leader`)
    },
    async remove() {
      await Promise.all(servers.map((server) => server.remove()))
    },
  }
}

async function streamInfo(server: NatsServer, stream: string): Promise<{ cluster?: { leader?: string } } | null> {
  try {
    const reply = await (await server.client()).request(`$JS.API.STREAM.INFO.${stream}`, '', { timeout: 10_000 })
    return reply.json()
  } catch {
    return null
  }
}

async function prepare(name: string, { jetStream = true, config = '' }: NatsOptions, more: string) {
  const dir = mkdtempSync(join(tmpdir(), 'nats-'))
  const [port, monitorPort] = await Promise.all([freePort(), freePort()])
  const url = `nats://127.0.0.1:${port}`
  const file = join(dir, 'nats.conf')
  const lines = [
    `server_name: ${name}`,
    `listen: "127.0.0.1:${port}"`,
    `http: "127.0.0.1:${monitorPort}"`,
    jetStream ? `jetstream { store_dir: "${dir}", max_file_store: 50GB }` : '',
    more,
    config,
  ]
  writeFileSync(file, lines.join('\n'))
  let child: ChildProcess | undefined
  let exited: Promise<unknown> = Promise.resolve()
  let own: NatsConnection | null = null

  async function launch(): Promise<void> {
    let output = ''
    let ended = false
    const launched = spawn('nats-server', ['-c', file], { stdio: ['ignore', 'pipe', 'pipe'] })
    child = launched
    launched.stdout.on('data', (chunk) => (output += chunk))
    launched.stderr.on('data', (chunk) => (output += chunk))
    const orphan = () => launched.kill('SIGKILL')
    process.once('exit', orphan)
    exited = once(launched, 'exit').finally(() => {
      ended = true
      process.off('exit', orphan)
    })
    for (const deadline = performance.now() + READY_MS_MAX; !(await isReady()); await sleep(20)) {
      if (!ended && performance.now() < deadline) continue
      launched.kill('SIGKILL')
      throw new Error(`nats-server did not become ready:\n${output}`)
    }
  }

  async function isReady(): Promise<boolean> {
    try {
      const health = await fetch(`http://127.0.0.1:${monitorPort}/healthz`)
      return health.ok
    } catch {
      return false
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    child?.kill(signal)
    await exited
  }

  const server: NatsServer = {
    name,
    url,
    dir: join(dir, 'jetstream'),
    monitorUrl: `http://127.0.0.1:${monitorPort}`,
    pid: () => child?.pid as number,
    async client() {
      own ??= await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 50 })
      return own
    },
    kill9: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    restart: launch,
    pause: () => standStill(child?.pid as number),
    resume: () => void child?.kill('SIGCONT'),
    async remove() {
      await own?.close()
      child?.kill('SIGCONT')
      await end('SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    },
  }
  return server
}
