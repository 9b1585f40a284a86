// A stand-in for a ClickHouse server: the embedded engine behind its HTTP front, in a process of its own on a free port and a
// temporary folder, killed, paused and restarted by tests. It knows one user and no grants, replicas or query log.
import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ChildMessage } from '../../src/clickhouse/chdb.child.ts'
import { freePort } from './port.ts'
import { standStill } from './standstill.ts'

export interface ClickHouseServer {
  readonly url: string
  readonly port: number
  readonly username: string
  /** Also good as a bearer token. */
  readonly password: string
  /** Of the running process. */
  pid(): number
  kill9(): Promise<void>
  /** The same port, folder and password after `kill9` or `stop`; resolves when it answers. */
  restart(): Promise<void>
  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void
  resume(): void
  stop(): Promise<void>
  /** Ends it and removes its folder. */
  remove(): Promise<void>
}

const LOCK_WAIT_MS_MAX = 60_000
const THREADS = 13

/** Resolves when it answers. */
export async function startClickHouse(): Promise<ClickHouseServer> {
  const folder = mkdtempSync(join(tmpdir(), 'clickhouse-'))
  const port = await freePort()
  const password = randomBytes(16).toString('hex')
  const entry = new URL('../../src/clickhouse/chdb.child.js', import.meta.url)
  let child: ChildProcess
  let exited: Promise<unknown>

  async function launch(): Promise<void> {
    let stderr = ''
    child = fork(entry, [folder, String(LOCK_WAIT_MS_MAX)], {
      execArgv: [],
      env: {
        PATH: process.env.PATH,
        TZ: 'UTC',
        UV_THREADPOOL_SIZE: String(THREADS),
        FRONT_PORT: String(port),
        FRONT_TOKEN: password,
      },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    child.stderr?.on('data', (chunk) => (stderr += chunk))
    let ended = false
    exited = once(child, 'exit').finally(() => {
      ended = true
    })
    const ready = once(child, 'message') as Promise<[ChildMessage]>
    const first = await Promise.race([ready, exited.then(() => null)])
    if (!ended && first?.[0].kind === 'ready') return
    child.kill('SIGKILL')
    throw new Error(`the ClickHouse stand-in did not start: ${JSON.stringify(first?.[0])} ${stderr}`)
  }

  async function end(farewell: () => void): Promise<void> {
    // Stopped processes act on nothing but SIGKILL.
    child.kill('SIGCONT')
    farewell()
    await exited
  }
  const kill9 = () => end(() => child.kill('SIGKILL'))

  await launch()
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    username: 'default',
    password,
    pid: () => child.pid as number,
    kill9,
    restart: launch,
    pause: () => standStill(child.pid as number),
    resume: () => void child.kill('SIGCONT'),
    stop: () => end(() => child.connected && child.send('stop')),
    async remove() {
      if (child.exitCode === null && child.signalCode === null) await kill9()
      rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
    },
  }
}
