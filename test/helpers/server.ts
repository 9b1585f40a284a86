// A whole Fingerpost in a process of its own, on a free port and a temporary folder: what the black-box tests talk to.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { makeKey } from '../../src/domain/keys.ts'
import { freePort } from './port.ts'

export interface Keys {
  readonly public: string
  readonly secret: string
  readonly testPublic: string
  readonly testSecret: string
}

/** A process that may not be ready, and may never be. */
export interface Launched {
  readonly url: string
  readonly port: number
  readonly dataDir: string
  readonly keys: Keys
  readonly operatorToken: string
  readonly pid: number
  /** Of `performance.now()`. */
  readonly startedAt: number
  /** The exit code; null when a signal ended it. */
  readonly exited: Promise<number | null>
  signal(name: NodeJS.Signals): void
  /** SIGTERM, then the exit code. */
  stop(): Promise<number | null>
  kill9(): Promise<void>
  logs(): string
}

export interface Server extends Launched {
  /** Milliseconds from the spawn to the first 200 of /readyz. */
  readonly readyMs: number
}

export interface ServerOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Default: a fresh folder, removed by `removeFolders`. */
  readonly dataDir?: string
  readonly keys?: Keys
  readonly port?: number
  /** Another built tree than this one, for tests of broken builds. */
  readonly main?: string
  /** Without the settings that only shorten tests: for benchmarks. */
  readonly asShipped?: boolean
  /** Behind `start`. */
  readonly args?: readonly string[]
  /** For node itself, such as --cpu-prof. */
  readonly nodeArgs?: readonly string[]
  /** `/healthz` for a server that is not to become ready. Default `/readyz`. */
  readonly until?: '/readyz' | '/healthz'
}

/** What `npm start` runs. */
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))

const READY_MS_MAX = 120_000
/** A busy machine decides late, and a 202 is for tests that ask for it. */
const DECISION_WAIT_MS = 20_000
/** Lists and figures are asked a moment after the events that they must show. */
const TEST_ENV = { FINGERPOST_SINK_FLUSH_MS: '100' }
/** Of the server that a run shares: what several files need, and none of them minds. */
export const SHARED_ENV: Readonly<Record<string, string>> = {
  FINGERPOST_LOG_DURABILITY: 'relaxed',
  FINGERPOST_SINK_FLUSH_MS: '300',
  FINGERPOST_DATA_PARTITIONS: '2',
  FINGERPOST_TRUSTED_PROXIES: '127.0.0.0/8',
  FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
  FINGERPOST_WEBHOOKS_BACKLOG_MAX: '100',
  FINGERPOST_ALERTS_EVERY_SECONDS: '1',
}
const folders: string[] = []
const running = new Set<ChildProcess>()

const random = (n: number) => new Uint8Array(randomBytes(n))

export function makeKeys(): Keys {
  return {
    public: makeKey('public', 'live', random),
    secret: makeKey('secret', 'live', random),
    testPublic: makeKey('public', 'test', random),
    testSecret: makeKey('secret', 'test', random),
  }
}

export function temporaryFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'fingerpost-test-'))
  folders.push(dir)
  return dir
}

/** Ends whatever is left and removes the folders: for t.teardown. */
export async function cleanUp(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }),
  )
  for (const dir of folders.splice(0)) await removeFolder(dir)
}

const REMOVALS_MAX = 100

/** An engine whose parent was killed may write for a moment; rmSync's own retries do not look again for what is in a folder. */
async function removeFolder(dir: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return rmSync(dir, { recursive: true, force: true })
    } catch (error) {
      if (attempt === REMOVALS_MAX) throw error
      await sleep(100)
    }
  }
}

/** Starts the process and does not wait for it: for starts that fail or are cut short. */
export async function launchServer(options: ServerOptions = {}): Promise<Launched> {
  const dataDir = options.dataDir ?? temporaryFolder()
  const keys = options.keys ?? makeKeys()
  const port = options.port ?? (await freePort())
  const operatorToken = 'operator-token-for-tests-0123456789abcdef'
  const startedAt = performance.now()
  const child = spawn(
    process.execPath,
    [
      '--min-semi-space-size=8',
      '--max-semi-space-size=32',
      ...(options.nodeArgs ?? []),
      options.main ?? MAIN,
      'start',
      ...(options.args ?? []),
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        FINGERPOST_PORT: String(port),
        FINGERPOST_DATA_DIR: dataDir,
        FINGERPOST_PUBLIC_KEY: keys.public,
        FINGERPOST_SECRET_KEY: keys.secret,
        FINGERPOST_TEST_PUBLIC_KEY: keys.testPublic,
        FINGERPOST_TEST_SECRET_KEY: keys.testSecret,
        FINGERPOST_OPERATOR_TOKEN: operatorToken,
        FINGERPOST_DECISION_WAIT_MS: String(DECISION_WAIT_MS),
        ...(options.asShipped === true ? {} : TEST_ENV),
        ...options.env,
      },
    },
  )
  running.add(child)
  let output = ''
  child.stdout?.on('data', (chunk) => (output += chunk))
  child.stderr?.on('data', (chunk) => (output += chunk))
  const exited = once(child, 'exit').then(([code]) => {
    running.delete(child)
    return code as number | null
  })

  return {
    url: `http://127.0.0.1:${port}`,
    port,
    dataDir,
    keys,
    operatorToken,
    pid: child.pid as number,
    startedAt,
    exited,
    signal: (name) => void child.kill(name),
    async stop() {
      child.kill('SIGTERM')
      return await exited
    },
    async kill9() {
      child.kill('SIGKILL')
      await exited
    },
    logs: () => output,
  }
}

export async function startServer(options: ServerOptions = {}): Promise<Server> {
  const launched = await launchServer(options)
  let ended = false
  void launched.exited.then(() => {
    ended = true
  })
  while (!(await answers(launched.url + (options.until ?? '/readyz')))) {
    if (ended || performance.now() - launched.startedAt > READY_MS_MAX) {
      await launched.kill9()
      throw new Error(`the server did not become ready:\n${launched.logs()}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { ...launched, readyMs: performance.now() - launched.startedAt }
}

/** Resolves when the history can be read, which opens after the server is ready. */
export async function historyOpen({ url, keys }: Pick<Server, 'url' | 'keys'>): Promise<void> {
  const from = performance.now()
  while (!(await answers(`${url}/v1/events?limit=1`, { Authorization: `Bearer ${keys.secret}` }))) {
    if (performance.now() - from > READY_MS_MAX) throw new Error('the history did not open')
    await sleep(50)
  }
}

async function answers(url: string, headers: Readonly<Record<string, string>> = {}): Promise<boolean> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(5_000) })
    await response.arrayBuffer()
    return response.status === 200
  } catch {
    return false
  }
}
