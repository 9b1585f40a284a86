// The embedded engine as a ClickHouse port: spawns the child process that holds it, restarts it when it crashes, and
// stops it at the end. Callers see failed calls and short waits, never a process.

import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { makeFolder } from '../lib/make-folder.ts'
import { within } from '../lib/within.ts'
import type { ChildMessage } from './chdb.child.ts'
import type { ClickHouse } from './clickhouse.ts'
import { type HttpClickHouseConfig, openHttpClickHouse } from './client.ts'

export interface EmbeddedLogger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export interface EmbeddedConfig extends Pick<HttpClickHouseConfig, 'queryBytesMax' | 'insertMsMax' | 'commandMsMax'> {
  /** Created when missing; used by nothing else. One process at a time. */
  readonly dataDir: string
  readonly database: string
  readonly clock: Clock
  readonly log: EmbeddedLogger
  /** How long to wait for a folder that a dying predecessor still holds; default 10 000. */
  readonly lockWaitMsMax?: number
  /** How long a call waits for an engine that is being restarted; default 5 000. */
  readonly restartWaitMsMax?: number
  /** How long the engine may finish its work when it is stopped, before it is killed; default 10 000. */
  readonly stopMsMax?: number
}

export interface EmbeddedClickHouse extends ClickHouse {
  /** The engine's process; null while there is none. */
  pid(): number | null
}

/** Without the wait for the folder. A cold disk takes seconds to load the engine's half gigabyte. */
const READY_MS_MAX = 30_000
const BACKOFF_MS_FIRST = 50
const BACKOFF_MS_MAX = 5_000
/** An engine that lived this long did not crash because of its start. */
const SETTLED_MS = 30_000
const STDERR_CHARS_MAX = 4_000
/** A running query or insert holds a thread of the pool: 4 + 2 + 2 + 2 of them, and a few for files. */
const THREADS = 15
/** Inserts and reads of the same machine need the rest. */
const BACKGROUND_THREADS_MAX = 2

interface Engine {
  readonly port: ClickHouse
  readonly pid: number
  readonly child: ChildProcess
  readonly exited: Promise<string>
}

/** Starts the engine and resolves when it answers. Fails with a sentence to act upon when it cannot be started. */
export async function openEmbeddedClickHouse(config: EmbeddedConfig): Promise<EmbeddedClickHouse> {
  const { clock, log } = config
  const restartWaitMsMax = config.restartWaitMsMax ?? 5_000
  makeFolder(config.dataDir)

  const closing = new AbortController()
  let engine: Engine | null = await startEngine(config)
  const waiting = new Set<() => void>()
  const supervised = supervise(engine)

  async function supervise(first: Engine): Promise<void> {
    let running: Engine | null = first
    let backoffMs = BACKOFF_MS_FIRST
    while (running !== null) {
      const startedAt = clock.monotonic()
      const how: string = await running.exited
      engine = null
      await running.port.close()
      running = null
      if (clock.monotonic() - startedAt >= SETTLED_MS) backoffMs = BACKOFF_MS_FIRST
      while (running === null && !closing.signal.aborted) {
        log.warn({ how, backoffMs }, 'the embedded engine ended; starting it again')
        await clock.sleep(backoffMs, closing.signal)
        backoffMs = Math.min(backoffMs * 2, BACKOFF_MS_MAX)
        if (closing.signal.aborted) return
        try {
          running = await startEngine(config)
        } catch (error) {
          log.warn({ err: error }, 'the embedded engine did not start')
        }
      }
      engine = running
      for (const wake of waiting) wake()
      if (running !== null && closing.signal.aborted) await stop(running)
    }
  }

  async function stop(running: Engine): Promise<void> {
    if (running.child.connected) running.child.send('stop', () => {})
    if ((await within(clock, config.stopMsMax ?? 10_000, running.exited)) === null) running.child.kill('SIGKILL')
    await running.exited
  }

  async function current(): Promise<ClickHouse> {
    if (engine === null && !closing.signal.aborted) {
      const over = new AbortController()
      const wake = () => over.abort()
      waiting.add(wake)
      await clock.sleep(restartWaitMsMax, over.signal)
      waiting.delete(wake)
    }
    if (engine === null || closing.signal.aborted) throw new Unavailable('the embedded engine is not running')
    return engine.port
  }

  return {
    tokenFirst: true,
    async insert(table, columns, lines, opts) {
      return (await current()).insert(table, columns, lines, opts)
    },
    async query<Row>(
      sql: string,
      params?: Parameters<ClickHouse['query']>[1],
      opts?: Parameters<ClickHouse['query']>[2],
    ) {
      return (await current()).query<Row>(sql, params, opts)
    },
    async command(sql, params) {
      return (await current()).command(sql, params)
    },
    async patch(table, sql, params) {
      return (await current()).patch(table, sql, params)
    },
    async ping() {
      return (await engine?.port.ping()) ?? false
    },
    pid: () => engine?.pid ?? null,
    async close() {
      const running = closing.signal.aborted ? null : engine
      closing.abort()
      for (const wake of waiting) wake()
      if (running) await stop(running)
      await supervised
    },
  }
}

async function startEngine(config: EmbeddedConfig): Promise<Engine> {
  const entry = fileURLToPath(new URL(`./chdb.child${extname(import.meta.url)}`, import.meta.url))
  const { PATH, LD_LIBRARY_PATH } = process.env
  const lockWaitMsMax = config.lockWaitMsMax ?? 10_000
  const child = fork(entry, [config.dataDir, String(lockWaitMsMax)], {
    execArgv: [],
    // Not ours: the engine runs SQL, and the product's secrets are none of its business.
    env: {
      UV_THREADPOOL_SIZE: String(THREADS),
      TZ: 'UTC',
      ...(PATH && { PATH }),
      ...(LD_LIBRARY_PATH && { LD_LIBRARY_PATH }),
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_CHARS_MAX)
  })
  const exited = new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(`${signal ?? `code ${code}`} ${stderr.trim()}`.trim()))
  })

  const began = new Promise<ChildMessage>((resolve) =>
    child.once('message', (message) => resolve(message as ChildMessage)),
  )
  const message =
    (await within(config.clock, READY_MS_MAX + lockWaitMsMax, Promise.race([began, exited]))) ?? 'it does not answer'
  if (typeof message === 'object' && message.kind === 'ready') {
    const port = openHttpClickHouse({
      ...config,
      backgroundThreadsMax: BACKGROUND_THREADS_MAX,
      url: `http://127.0.0.1:${message.port}`,
      token: message.token,
    })
    return { port, pid: child.pid ?? 0, child, exited }
  }
  child.kill('SIGKILL')
  await exited
  throw new Error(explain(message, stderr.trim(), config.dataDir))
}

function explain(message: ChildMessage | string, stderr: string, dataDir: string): string {
  if (typeof message === 'object' && message.kind === 'failed' && message.reason === 'not-installed') {
    return `The embedded engine is not installed: run "npm i chdb@3.4.0", or configure a ClickHouse server. (${message.detail})`
  }
  if (stderr.includes('CANNOT_OPEN_FILE')) return `Another process uses the data folder ${dataDir}.`
  const detail = typeof message === 'object' && message.kind === 'failed' ? message.detail : message
  return `The embedded engine did not start in ${dataDir}: ${detail} ${stderr}`.trim()
}
