// Typed parameters of SQL: values never stand in its text, and those too large for a query are kept in a snapshot.

export type SqlType =
  | 'String'
  | 'Int64'
  | 'UInt8'
  | 'UInt64'
  | 'IPv6'
  | 'Array(String)'
  | 'Array(Int64)'
  | 'Array(UInt64)'
  | 'Array(IPv6)'
export type Scalar = string | number | bigint

export interface SqlParams {
  /** The placeholder to write for a value; equal values share one. */
  add(type: SqlType, value: Scalar | readonly Scalar[]): string
  /** By name, for the query. */
  readonly values: Readonly<Record<string, unknown>>
  /** Keeps values that are too large for a query in a snapshot, and gives its id; null: nothing is too large. */
  readonly store: StoreValues | null
}

/** Texts, or whole numbers. The snapshot must be there before the query. */
export type StoreValues = (type: 'String' | 'UInt64', values: readonly string[]) => string
export function openSqlParams(store: StoreValues | null = null): SqlParams {
  const values: Record<string, unknown> = {}
  const known = new Map<string, string>()
  return {
    values,
    store,
    add(type, value) {
      const key = `${type} ${JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one))}`
      const found = known.get(key)
      if (found !== undefined) return found
      const name = `p${known.size}`
      const placeholder = `{${name}:${type}}`
      values[name] = value
      known.set(key, placeholder)
      return placeholder
    },
  }
}
