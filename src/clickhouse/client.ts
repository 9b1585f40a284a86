// The ClickHouse port over the unmodified HTTP client, for a server and for the embedded engine alike.

import { setMaxListeners } from 'node:events'
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { type ClickHouseClient, ClickHouseError, type ClickHouseSettings, createClient } from '@clickhouse/client'
import { Full, Unavailable } from '../lib/failures.ts'
import { BadRow, type ClickHouse, type Params } from './clickhouse.ts'
import { openPatching } from './patching.ts'

export interface HttpClickHouseConfig {
  /** `http://host:8123` or `https://…`. */
  readonly url: string
  readonly username?: string
  readonly password?: string
  /** Sent as a bearer token instead of username and password. */
  readonly token?: string
  /** Unqualified table names mean this database. */
  readonly database: string
  /** Of replicated tables, see `migrate`: inserts resolve when most replicas have the rows. */
  readonly cluster?: string
  /** Requests and sockets of each kind (queries; inserts and commands) at most; default 8. */
  readonly connectionsMax?: number
  /** Memory one query may take in the engine; default 2 GiB. */
  readonly queryBytesMax?: number
  /** Threads of one background query; default 4. */
  readonly backgroundThreadsMax?: number
  /** Default 60 000. */
  readonly insertMsMax?: number
  /** Commands may rewrite whole partitions; default 600 000. */
  readonly commandMsMax?: number
}

const TIMEOUT_MS_DEFAULT = 10_000
const ROWS_DEFAULT = 10_000
/** The engine ends the query itself; this is for an engine that no longer answers. */
const ANSWER_GRACE_MS = 2_000
const PING_MS_MAX = 2_000

/**
 * Codes by which the engine says that it cannot take the rows as they are. Only what is caused by the bytes of a row:
 * a missing column or a full disk would make the caller throw good rows away.
 */
const BAD_ROW_CODES: ReadonlySet<number> = new Set([
  6, // CANNOT_PARSE_TEXT
  25, // CANNOT_PARSE_ESCAPE_SEQUENCE
  26, // CANNOT_PARSE_QUOTED_STRING
  27, // CANNOT_PARSE_INPUT_ASSERTION_FAILED
  32, // ATTEMPT_TO_READ_AFTER_EOF
  33, // CANNOT_READ_ALL_DATA
  38, // CANNOT_PARSE_DATE
  41, // CANNOT_PARSE_DATETIME
  53, // TYPE_MISMATCH
  69, // ARGUMENT_OUT_OF_BOUND
  70, // CANNOT_CONVERT_TYPE
  72, // CANNOT_PARSE_NUMBER
  117, // INCORRECT_DATA
  128, // TOO_LARGE_ARRAY_SIZE
  130, // CANNOT_READ_ARRAY_FROM_TEXT
  131, // TOO_LARGE_STRING_SIZE
  190, // SIZES_OF_ARRAYS_DONT_MATCH
  321, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
  349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
  376, // CANNOT_PARSE_UUID
  407, // DECIMAL_OVERFLOW
  441, // CANNOT_PARSE_DOMAIN_VALUE_FROM_STRING
  467, // CANNOT_PARSE_BOOL
  469, // VIOLATED_CONSTRAINT
  675, // CANNOT_PARSE_IPV4
  676, // CANNOT_PARSE_IPV6
  691, // UNKNOWN_ELEMENT_OF_ENUM
])
const NOT_ENOUGH_SPACE = 243

const INSERT_SETTINGS = {
  async_insert: 0,
  insert_deduplicate: 1,
  // A null for a column that has none would otherwise silently become its default.
  input_format_null_as_default: 0,
  input_format_allow_errors_num: '0',
  // Tests of rules may be of as many weeks as events are kept.
  max_partitions_per_insert_block: '0',
  // One block per insert: a bad row far down is found before anything was written.
  input_format_parallel_parsing: 0,
  max_insert_block_size: '1048576',
  min_insert_block_size_rows: '1048576',
  min_insert_block_size_bytes: '268435456',
} satisfies ClickHouseSettings

/** Small parts are merged soon, which makes their indexes; until then reading a column of one costs no more than its index would. */
const SMALL_INSERT_BYTES_MAX = 8 * 1024 * 1024
const SMALL_INSERT_SETTINGS = { materialize_skip_indexes_on_insert: 0 } satisfies ClickHouseSettings

const BACKGROUND_SETTINGS = {
  // Among themselves; the embedded engine's front knows them by it.
  priority: '1',
  // Of the operating system, where the server may set it.
  os_thread_priority: '10',
  // A big set of hashes is asked for every granule of a bloom filter, which takes longer than reading them all.
  use_skip_indexes: 0,
} satisfies ClickHouseSettings

const HIDDEN_SETTINGS = {
  apply_deleted_mask: 0,
  apply_patch_parts: 0,
  select_sequential_consistency: '1',
} satisfies ClickHouseSettings

type Call = 'insert' | 'query' | 'command'

/**
 * Opens the port; connects with the first call, and closing it fails the calls under way with Unavailable. Values inside
 * rows: DateTime64(3) as integer milliseconds, Enum by name, Bool as true or false, IPv6 as text of either family, integers
 * within their type (a larger one wraps around silently).
 */
export function openHttpClickHouse(config: HttpClickHouseConfig): ClickHouse {
  const insertMsMax = config.insertMsMax ?? 60_000
  const commandMsMax = config.commandMsMax ?? 600_000
  const insertSettings = config.cluster ? { ...INSERT_SETTINGS, insert_quorum: 'auto' } : INSERT_SETTINGS
  const connect = (database: string) =>
    createClient({
      url: config.url,
      database,
      application: 'fingerpost',
      ...(config.token !== undefined
        ? { access_token: config.token }
        : { username: config.username ?? 'default', password: config.password ?? '' }),
      max_open_connections: config.connectionsMax ?? 8,
      request_timeout: commandMsMax,
      keep_alive: { enabled: true, idle_socket_ttl: 2_500, eagerly_destroy_stale_sockets: true },
      log: { level: 127 },
    })
  const background = {
    ...BACKGROUND_SETTINGS,
    max_threads: config.backgroundThreadsMax ?? 4,
  } satisfies ClickHouseSettings
  // Two sets of sockets: queries that wait for a free one never stand in front of inserts.
  const reader = connect(config.database)
  const writer = connect(config.database)
  // A request that names a database which is not there yet is refused, even when it would create it.
  const outside = connect('default')
  const closing = new AbortController()
  // One listener for each call under way, which are bounded by the callers.
  setMaxListeners(0, closing.signal)

  const bounded = async <T>(
    msMax: number,
    signal: AbortSignal | undefined,
    what: Call,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> => withinTime(msMax, signal ? [signal, closing.signal] : [closing.signal], what, work)

  const port: ClickHouse = {
    tokenFirst: !config.cluster,
    async insert(table, columns, rows, { token }) {
      if (rows.length === 0) return
      const body = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength)
      await bounded(insertMsMax, undefined, 'insert', async (abort_signal) => {
        const { stream } = await writer.exec({
          query: `INSERT INTO ${table} (${columns.join(', ')}) FORMAT JSONCompactEachRow`,
          values: Readable.from([body], { objectMode: false }),
          clickhouse_settings: {
            ...insertSettings,
            ...(body.length <= SMALL_INSERT_BYTES_MAX ? SMALL_INSERT_SETTINGS : {}),
            insert_deduplication_token: token,
          },
          abort_signal,
        })
        await finished(stream.resume())
      })
    },

    async query<Row>(sql: string, params?: Params, opts?: Parameters<ClickHouse['query']>[2]) {
      const timeoutMsMax = opts?.timeoutMsMax ?? TIMEOUT_MS_DEFAULT
      return bounded(timeoutMsMax + ANSWER_GRACE_MS, opts?.signal, 'query', async (abort_signal) => {
        const result = await reader.query({
          query: sql,
          format: 'JSONEachRow',
          ...(params && { query_params: params as Record<string, unknown> }),
          clickhouse_settings: {
            readonly: '1',
            max_execution_time: seconds(timeoutMsMax),
            timeout_overflow_mode: 'throw',
            max_memory_usage: String(config.queryBytesMax ?? 2 * 1024 ** 3),
            max_result_rows: String(opts?.rowsMax ?? ROWS_DEFAULT),
            result_overflow_mode: 'throw',
            output_format_json_quote_64bit_integers: 0,
            // Errors come as a status, never in the middle of a result that already began.
            wait_end_of_query: 1,
            cancel_http_readonly_queries_on_client_close: 1,
            ...(opts?.background === true ? background : {}),
            ...(opts?.hidden === true ? HIDDEN_SETTINGS : {}),
          },
          abort_signal,
        })
        return result.json<Row>()
      })
    },

    async command(sql, params) {
      const client: ClickHouseClient = /^\s*create\s+database\b/i.test(sql) ? outside : writer
      await bounded(commandMsMax, undefined, 'command', (abort_signal) =>
        client.command({
          query: sql,
          ...(params && { query_params: params as Record<string, unknown> }),
          abort_signal,
        }),
      )
    },

    patch: (table, sql, params) => patch(table, () => port.command(sql, params)),

    async ping() {
      const { success } = await reader.ping({ select: false, abort_signal: AbortSignal.timeout(PING_MS_MAX) })
      return success
    },

    async close() {
      closing.abort()
      await Promise.all([reader.close(), writer.close(), outside.close()])
    },
  }
  const patch = openPatching(port, commandMsMax)
  return port
}

/** Coarse steps: the embedded engine keeps sessions per set of settings. */
const seconds = (ms: number): number => (ms < 5_000 ? Math.ceil(ms / 100) / 10 : Math.ceil(ms / 1_000))

async function withinTime<T>(
  msMax: number,
  signals: readonly AbortSignal[],
  what: Call,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const timer = setTimeout(abort, msMax)
  for (const signal of signals) {
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
  }
  try {
    if (controller.signal.aborted) throw new Unavailable(`clickhouse ${what} was aborted`)
    return await work(controller.signal)
  } catch (error) {
    throw failure(error, what, controller.signal.aborted)
  } finally {
    clearTimeout(timer)
    for (const signal of signals) signal.removeEventListener('abort', abort)
  }
}

function failure(error: unknown, what: Call, aborted: boolean): Error {
  if (error instanceof Unavailable) return error
  if (!(error instanceof ClickHouseError)) {
    return new Unavailable(`clickhouse ${what} ${aborted ? 'was aborted' : 'failed'}`, { cause: error })
  }
  const code = Number(error.code)
  const engine = `${code} ${error.type ?? ''}`
  // The engine's words about a row repeat its values, and those are personal: only the place is kept.
  if (what === 'insert') {
    const column = /value of key (\w+)/.exec(error.message)?.[1]
    const row = /\(at row (\d+)\)/.exec(error.message)?.[1]
    const place = `${column ? ` in column ${column}` : ''}${row ? ` of row ${row}` : ''}`
    if (BAD_ROW_CODES.has(code)) return new BadRow(`refused: ${engine}${place}`)
    if (code === NOT_ENOUGH_SPACE) return new Full(`clickhouse is full: ${engine}`)
    return new Unavailable(`clickhouse insert failed: ${engine}`, { cause: { code } })
  }
  return new Unavailable(`clickhouse ${what} failed: ${engine}: ${error.message.slice(0, 300)}`, { cause: { code } })
}

/** The engine's numeric error code behind an Unavailable; null when the engine did not answer with one. */
export function engineCode(error: unknown): number | null {
  const cause = error instanceof Unavailable ? (error.cause as { code?: unknown } | undefined) : undefined
  return typeof cause?.code === 'number' ? cause.code : null
}
