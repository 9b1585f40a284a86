// A real Redis server in a process of its own, on a free port and a temporary folder: killed, paused, wiped and restarted by tests.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from './port.ts'
import { standStill } from './standstill.ts'

export interface RedisOptions {
  /** `off` keeps nothing over a restart. Default: off. */
  readonly aof?: 'off' | 'everysec' | 'always'
  /** One node of a cluster that has all slots. */
  readonly cluster?: boolean
  /** Further settings, such as `--maxmemory 10mb`. */
  readonly args?: readonly string[]
}

export interface RedisServer {
  readonly url: string
  readonly port: number
  /** Of the running process. */
  pid(): number
  /** A connection of the test's own; made again after a restart. */
  client(): Promise<Redis>
  kill9(): Promise<void>
  /** The same port and folder after `kill9` or `stop`; resolves when it answers. */
  restart(): Promise<void>
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void
  resume(): void
  stop(): Promise<void>
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

const READY_MS_MAX = 60_000
const FSYNC = { off: [], everysec: ['--appendfsync', 'everysec'], always: ['--appendfsync', 'always'] }
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Resolves when the server answers and has loaded its data. */
export async function startRedis({ aof = 'off', cluster = false, args = [] }: RedisOptions = {}): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), 'redis-'))
  const port = await freePort()
  const busPort = cluster ? await freePort() : 0
  const settings = [
    ...['--port', `${port}`, '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--daemonize', 'no'],
    ...['--appendonly', aof === 'off' ? 'no' : 'yes', ...FSYNC[aof]],
    ...(cluster
      ? ['--cluster-enabled', 'yes', '--cluster-port', `${busPort}`, '--cluster-announce-ip', '127.0.0.1']
      : []),
    ...args,
  ]
  let child: ChildProcess
  let exited: Promise<unknown>
  let raw: Redis | null = null

  async function launch(): Promise<void> {
    let output = ''
    child = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout?.on('data', (chunk) => (output += chunk))
    child.stderr?.on('data', (chunk) => (output += chunk))
    const orphan = () => child.kill('SIGKILL')
    process.once('exit', orphan)
    let ended = false
    exited = once(child, 'exit').finally(() => {
      ended = true
      process.off('exit', orphan)
    })
    const deadline = performance.now() + READY_MS_MAX
    for (let joined = false; ; ) {
      if (ended || performance.now() > deadline) {
        child.kill('SIGKILL')
        throw new Error(`redis-server did not become ready:\n${output}`)
      }
      const probe = new Redis({ host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => null })
      probe.on('error', () => undefined)
      try {
        await probe.connect()
        if (!cluster) return
        if (!joined) joined = (await probe.cluster('INFO')).includes('cluster_slots_assigned:16384')
        if (!joined) await probe.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
        if ((await probe.cluster('INFO')).includes('cluster_state:ok')) return
      } catch {
        // Not yet.
      } finally {
        probe.disconnect()
      }
      await sleep(20)
    }
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    raw?.disconnect()
    raw = null
    child.kill(signal)
    await exited
  }

  await launch()
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid: () => child.pid as number,
    async client() {
      if (raw === null) {
        raw = new Redis({ host: '127.0.0.1', port, lazyConnect: true })
        raw.on('error', () => undefined)
        await raw.connect()
      }
      return raw
    },
    kill9: () => end('SIGKILL'),
    restart: launch,
    pause: () => standStill(child.pid as number),
    resume: () => void child.kill('SIGCONT'),
    stop: () => end('SIGTERM'),
    async remove() {
      child.kill('SIGCONT')
      await end('SIGKILL')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
