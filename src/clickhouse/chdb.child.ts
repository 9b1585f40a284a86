// The process that holds the embedded engine: opens chdb on a folder and serves the part of ClickHouse's HTTP interface
// that @clickhouse/client speaks, on a loopback port with a secret. It lives and dies with its parent.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Session } from 'chdb'
import { GaveUp, openSemaphore } from '../lib/semaphore.ts'
import { assignment, literal, parseInsert, refuseStatement } from './chdb-guard.ts'
import { openSessionPool, type SessionPool } from './chdb-sessions.ts'

/**
 * From the parent: `[folder, lockWaitMsMax]` as arguments, then `stop` as a message. Port and secret are drawn afresh unless
 * FRONT_PORT and FRONT_TOKEN say that clients must find the same ones after a restart.
 */
export type ChildMessage =
  | { readonly kind: 'ready'; readonly port: number; readonly token: string }
  | { readonly kind: 'failed'; readonly reason: 'not-installed' | 'not-opened'; readonly detail: string }

const READS_MAX = 4
const BACKGROUND_MAX = 2
const INSERTS_MAX = 2
const COMMANDS_MAX = 2
const WAITING_MAX = 256
const SQL_BYTES_MAX = 1024 * 1024
const INSERT_BYTES_MAX = 64 * 1024 * 1024
const HEADER_BYTES_MAX = 1024 * 1024
const LOCK_RETRY_MS = 200
/** The engine looks at its own memory twenty times a second otherwise, which is most of what it costs at rest. */
const ENGINE_ARGS = ['--memory_worker_period_ms=500']
const STOP_MS_MAX = 5_000

/** Parameters of the HTTP interface that are not settings of the engine. */
const NOT_SETTINGS = new Set(['query', 'database', 'query_id', 'session_id', 'role', 'wait_end_of_query'])

class Rejected extends Error {
  override readonly name = 'Rejected'
  readonly status: number
  constructor(status: number, code: number, type: string, message: string) {
    super(`Code: ${code}. DB::Exception: ${message}. (${type})`)
    this.status = status
  }
}

// Whatever was acknowledged is on disk, so an orphan needs no farewell and must not keep the folder locked.
const dieAtOnce = () => process.kill(process.pid, 'SIGKILL')
process.on('disconnect', dieAtOnce)
if (!process.connected) dieAtOnce()

const [, , folder = '', lockWaitMsMax = '0'] = process.argv
const { FRONT_PORT = '0', FRONT_TOKEN } = process.env
const spool = join(folder, 'spool')

void main()

async function main(): Promise<void> {
  let chdb: typeof import('chdb')
  try {
    chdb = await import('chdb')
  } catch (error) {
    return fail('not-installed', error)
  }
  // The group's Ctrl-C reaches this process as well, but the parent decides when the engine stops, after its last insert.
  // Set after the engine was loaded, in case it brings handlers of its own.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => {})
  process.on('SIGHUP', () => {})
  rmSync(spool, { recursive: true, force: true })
  mkdirSync(spool, { recursive: true })

  const openSession = () => new chdb.Session(join(folder, 'engine'), { connectionArgs: ENGINE_ARGS })
  let control: Session
  try {
    control = await openWaitingForLock(openSession)
  } catch (error) {
    return fail('not-opened', error)
  }
  serve(control, openSessionPool(openSession))
}

function fail(reason: 'not-installed' | 'not-opened', error: unknown): void {
  const message: ChildMessage = {
    kind: 'failed',
    reason,
    detail: error instanceof Error ? error.message : String(error),
  }
  process.send?.(message, undefined, {}, () => process.exit(1))
}

/** A predecessor that was just killed may still hold the folder for a moment. */
async function openWaitingForLock(openSession: () => Session): Promise<Session> {
  const deadline = performance.now() + Number(lockWaitMsMax)
  for (;;) {
    try {
      return openSession()
    } catch (error) {
      if (performance.now() >= deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, LOCK_RETRY_MS))
    }
  }
}

function serve(control: Session, pool: SessionPool): void {
  const token = FRONT_TOKEN ?? randomBytes(32).toString('base64url')
  // The token, or as the password of the user every server has.
  const credentials = [`Bearer ${token}`, `Basic ${Buffer.from(`default:${token}`).toString('base64')}`].map(digest)
  const reads = openSemaphore(READS_MAX, WAITING_MAX)
  const background = openSemaphore(BACKGROUND_MAX, WAITING_MAX)
  const inserts = openSemaphore(INSERTS_MAX, WAITING_MAX)
  const commands = openSemaphore(COMMANDS_MAX, WAITING_MAX)
  const kills = openSemaphore(1, WAITING_MAX)
  let spooled = 0
  let busy = 0

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<Uint8Array> {
    const given = digest(request.headers.authorization ?? '')
    if (!credentials.some((wanted) => timingSafeEqual(given, wanted))) {
      throw new Rejected(403, 516, 'AUTHENTICATION_FAILED', 'Authentication failed')
    }
    if (request.headers['content-encoding'] !== undefined) {
      throw new Rejected(415, 48, 'NOT_IMPLEMENTED', 'Compressed requests are not supported here')
    }
    const url = new URL(request.url ?? '/', 'http://front')
    if (url.pathname === '/ping') return Buffer.from('Ok.\n')

    const query = url.searchParams.get('query')
    const database = url.searchParams.get('database') ?? ''
    const settings = new Map<string, string>()
    const params = new Map<string, string>()
    for (const [name, value] of url.searchParams) {
      if (name.startsWith('param_')) params.set(name, value)
      else if (!NOT_SETTINGS.has(name)) settings.set(name, value)
    }

    const insert = query === null ? null : parseInsert(query)
    if (insert) {
      return inserts.run(async () => {
        const body = await readBody(request, INSERT_BYTES_MAX)
        const sets = [...settings].map(([name, value]) => assignment(name, value)).join(', ')
        const path = join(spool, String(++spooled))
        // Rows inlined after the statement would be parsed as SQL from the first empty line on; a file holds only data.
        const sql = `INSERT INTO ${insert.table} (${insert.columns}) FROM INFILE ${literal(path)} ${
          sets === '' ? '' : `SETTINGS ${sets} `
        }FORMAT JSONCompactEachRow`
        try {
          await writeChunks(path, body)
          return await run(database, new Map(), sql, new Map(), null)
        } finally {
          await rm(path, { force: true })
        }
      })
    }

    const sql = query ?? Buffer.concat(await readBody(request, SQL_BYTES_MAX)).toString('utf8')
    const readonly = settings.get('readonly') === '1'
    const refusal = refuseStatement(sql, readonly)
    if (refusal) throw new Rejected(400, refusal.code, refusal.type, refusal.message)
    const lane = !readonly ? commands : settings.has('priority') ? background : reads
    return lane.run(() => run(database, settings, sql, params, readonly ? response : null))
  }

  /** `caller` is set for reads: when it hangs up, its query is cancelled. */
  async function run(
    database: string,
    settings: ReadonlyMap<string, string>,
    sql: string,
    params: ReadonlyMap<string, string>,
    caller: ServerResponse | null,
  ): Promise<Uint8Array> {
    const lease = await pool.take(database, settings)
    if (caller?.destroyed) {
      pool.give(lease, true)
      throw new Rejected(499, 394, 'QUERY_WAS_CANCELLED', 'The caller is gone')
    }
    let killed: Promise<unknown> | null = null
    const kill = () => {
      const which = `SELECT query_id FROM system.processes WHERE Settings['log_comment'] = ${literal(lease.mark)}`
      killed = kills
        .run(() => control.queryAsync(`KILL QUERY WHERE query_id IN (${which}) ASYNC`))
        // The query then runs to its end, which is waited for in any case.
        .catch(() => undefined)
    }
    caller?.once('close', kill)
    let healthy = false
    try {
      for (const stale of lease.paramNames) {
        if (!params.has(stale) && new RegExp(`\\{\\s*${stale.slice('param_'.length)}\\s*:`).test(sql)) {
          throw new Rejected(400, 456, 'UNKNOWN_QUERY_PARAMETER', 'A substitution of the query is not set')
        }
      }
      const sets = [...params].map(([name, value]) => assignment(name, value)).join(', ')
      for (const name of params.keys()) lease.paramNames.add(name)
      const result = await lease.session.queryAsync(sets === '' ? sql : `SET ${sets}; ${sql}`, {
        format: 'TabSeparated',
      })
      healthy = true
      return result.bytes()
    } catch (error) {
      healthy = codeOf(error) !== null
      throw error
    } finally {
      caller?.off('close', kill)
      // Not before the kill is through: it would hit the session's next query.
      await killed
      pool.give(lease, healthy)
    }
  }

  const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX, keepAliveTimeout: 30_000 }, (request, response) => {
    busy++
    answer(request, response)
      .then(
        (bytes) => response.writeHead(200, { 'Content-Length': bytes.length }).end(bytes),
        (error: unknown) => respondError(response, error),
      )
      .finally(() => {
        busy--
      })
  })
  server.requestTimeout = 0
  server.listen(Number(FRONT_PORT), '127.0.0.1', () => {
    const message: ChildMessage = { kind: 'ready', port: (server.address() as AddressInfo).port, token }
    process.send?.(message)
  })

  process.on('message', async (message) => {
    if (message !== 'stop') return
    server.close()
    const deadline = performance.now() + STOP_MS_MAX
    while (busy > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10))
    // Sessions cannot be closed under a running query, and an engine that is torn down under one may hang.
    if (busy > 0) dieAtOnce()
    pool.close()
    control.close()
    process.exit(0)
  })
}

/** Of equal length, whatever the text: comparing it tells nothing. */
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

async function readBody(request: IncomingMessage, bytesMax: number): Promise<Buffer[]> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Rejected(413, 307, 'TOO_MANY_BYTES', 'The request body is too large')
    chunks.push(chunk)
  }
  return chunks
}

async function writeChunks(path: string, chunks: Buffer[]): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writev(chunks)
  } finally {
    await file.close()
  }
}

function codeOf(error: unknown): number | null {
  const code = error instanceof Error && 'clickhouseCode' in error ? error.clickhouseCode : undefined
  return typeof code === 'number' ? code : null
}

function respondError(response: ServerResponse, error: unknown): void {
  if (response.destroyed) return
  let text = error instanceof Error ? error.message : String(error)
  let status = 500
  if (error instanceof Rejected) status = error.status
  else if (error instanceof GaveUp) {
    status = 503
    text = `Code: 202. DB::Exception: ${error.message}. (TOO_MANY_SIMULTANEOUS_QUERIES)`
  } else if (codeOf(error) === null) text = `Code: 1002. DB::Exception: ${text}. (UNKNOWN_EXCEPTION)`
  const code = /^Code: (\d+)/.exec(text)?.[1] ?? '1002'
  const body = Buffer.from(text)
  response
    .writeHead(status, {
      'Content-Type': 'text/plain; charset=UTF-8',
      'X-ClickHouse-Exception-Code': code,
      'Content-Length': body.length,
      // The rest of a refused body may still be under way.
      Connection: 'close',
    })
    .end(body)
}
