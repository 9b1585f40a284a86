// The column store: events, analytics and backtests. One port over the unmodified @clickhouse/client, always HTTP.

export type Params = Readonly<Record<string, unknown>>

export interface QueryOptions {
  readonly signal?: AbortSignal
  /** Bound on execution in the engine; default 10 000. */
  readonly timeoutMsMax?: number
  readonly rowsMax?: number
  /** A long question nobody else should feel: few threads of low priority, and in the embedded engine a lane of its own. */
  readonly background?: boolean
}

export interface ClickHouse {
  /**
   * Inserts newline-separated JSONCompactEachRow lines, all or none. The same token twice is one insert.
   * Fails with BadRow when the engine refuses the data itself, with Unavailable for everything else
   * (the rows may or may not be there: repeat with the same token and the same bytes).
   */
  insert(table: string, columns: readonly string[], lines: Uint8Array, opts: { readonly token: string }): Promise<void>
  /** Fixed SQL text with typed `{name:Type}` parameters, read-only. */
  query<Row>(sql: string, params?: Params, opts?: QueryOptions): Promise<Row[]>
  /** DDL and mutations written by us. */
  command(sql: string, params?: Params): Promise<void>
  ping(): Promise<boolean>
  close(): Promise<void>
}

/** The engine understood the request and refuses the rows (parse error, type mismatch). Repeating cannot help. */
export class BadRow extends Error {
  override readonly name = 'BadRow'
}
