// The column store: events, analytics and backtests. One port over the unmodified @clickhouse/client, always HTTP.

export type Params = Readonly<Record<string, unknown>>

export interface QueryOptions {
  readonly signal?: AbortSignal
  /** Bound on execution in the engine; default 10 000. */
  readonly timeoutMsMax?: number
  readonly rowsMax?: number
  /** A long question nobody else should feel: few threads of low priority, and in the embedded engine a lane of its own. */
  readonly background?: boolean
  /** Also rows that were deleted and are still there, and rows as they were before they were changed. */
  readonly hidden?: boolean
}

export interface InsertOptions {
  readonly token: string
}

export interface ClickHouse {
  /** Whether an insert is noted before its rows are, as without replicas; with them Keeper takes both in one step. */
  readonly tokenFirst: boolean
  /**
   * Inserts newline-separated JSONCompactEachRow lines, all or none. The same token twice is one insert.
   * With `tokenFirst` a crash of the engine may leave the token without the rows: a repetition then adds nothing.
   * Fails with BadRow when the engine refuses the data itself, with Unavailable for everything else
   * (the rows may or may not be there: repeat with the same token and the same bytes).
   */
  insert(table: string, columns: readonly string[], rows: Uint8Array, opts: InsertOptions): Promise<void>
  /** Fixed SQL text with typed `{name:Type}` parameters, read-only. */
  query<Row>(sql: string, params?: Params, opts?: QueryOptions): Promise<Row[]>
  /** DDL and mutations written by us. */
  command(sql: string, params?: Params): Promise<void>
  /**
   * An UPDATE or DELETE of rows of `table`, written by us, that the engine keeps as a patch: resolves when every query shows it. It
   * may be executed more than once, also after others.
   */
  patch(table: string, sql: string, params?: Params): Promise<void>
  ping(): Promise<boolean>
  close(): Promise<void>
}

/** The engine understood the request and refuses the rows (parse error, type mismatch). Repeating cannot help. */
export class BadRow extends Error {
  override readonly name = 'BadRow'
}
