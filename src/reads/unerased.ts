// What questions to ClickHouse leave out: visitors whose erasure was answered and is not executed yet.

/** A term and its parameter; both empty when there is nobody to leave out. */
export const unerased = (
  erasing: readonly string[],
): { readonly sql: string; readonly params: Readonly<Record<string, unknown>> } =>
  erasing.length === 0
    ? { sql: '', params: {} }
    : { sql: ' AND visitor_id NOT IN {erasing:Array(String)}', params: { erasing } }
