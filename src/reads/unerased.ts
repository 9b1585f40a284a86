// What questions to ClickHouse leave out: visitors whose erasure was answered and is not executed yet.

import { ERASED_ID_SQL } from '../records/erasures.ts'

/** `erasing`: of `listErasing`. A term and its parameter; both empty when there is nobody to leave out. */
export const unerased = (
  erasing: readonly string[],
): { readonly sql: string; readonly params: Readonly<Record<string, unknown>> } =>
  erasing.length === 0
    ? { sql: '', params: {} }
    : { sql: ` AND ${ERASED_ID_SQL} NOT IN {erasing:Array(String)}`, params: { erasing } }
