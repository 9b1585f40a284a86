// What the embedded engine's front refuses to run. A library has no users and no grants: unlike a server it would read
// and write this machine's files for whoever may send SQL, so the front only lets through the plain statements we write.

export interface ChdbRefusal {
  readonly code: number
  readonly type: string
  readonly message: string
}

/** Every way SELECT reaches outside the database, even in the engine's own read-only mode. */
const OUTSIDE =
  /\b(?:file\w*|url\w*|s3\w*|gcs|hdfs\w*|azure\w*|iceberg\w*|delta\w*|hudi\w*|paimon\w*|remote\w*|cluster\w*|mysql|postgresql|mongodb|redis|sqlite|odbc|jdbc|ytsaurus|arrowflight|executable\w*|python|input|catboostevaluate)\s*\(/i
/** SETTINGS inside a subquery lifts read-only again; INTO OUTFILE ignores it. */
const ESCAPES = /\b(?:settings|into)\b/i
/** A quoted name may spell a function with escapes, a comment or heredoc may hide one: none is needed in a query. */
const HIDING = /["`]\s*\(|--|\/\*|#|\$/
const INSERT = /^INSERT INTO ([A-Za-z_][\w.]*) \(([\w, ]+)\) FORMAT JSONCompactEachRow$/

/** Null when the statement may run. `readonly` is what the request asked for. */
export function refuseStatement(sql: string, readonly: boolean): ChdbRefusal | null {
  if (sql.includes(';')) return { code: 62, type: 'SYNTAX_ERROR', message: 'Multi-statements are not allowed' }
  if (!readonly) return null
  if (!/^[\s(]*(?:select|with)\b/i.test(sql)) return readonlyRefusal('only SELECT is allowed')
  if (OUTSIDE.test(sql)) return readonlyRefusal('this function reaches outside the database')
  if (ESCAPES.test(sql) || HIDING.test(sql)) return readonlyRefusal('this syntax is not allowed')
  return null
}

const readonlyRefusal = (why: string): ChdbRefusal => ({
  code: 164,
  type: 'READONLY',
  message: `Cannot execute query in readonly mode: ${why}`,
})

/** What is in the only INSERT that may carry a body; null for anything else. */
export function parseInsert(sql: string): { readonly table: string; readonly columns: string } | null {
  const [, table, columns] = INSERT.exec(sql.trim()) ?? []
  return table !== undefined && columns !== undefined ? { table, columns } : null
}

/** A string as a SQL literal. A quote or a backslash that ended it early would be an injection. */
export const literal = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/

/** `name = value` for SET or SETTINGS. Throws on a name that is not an identifier. */
export function assignment(name: string, value: string): string {
  if (!NAME.test(name)) throw new Error('setting and parameter names are identifiers')
  return `${name} = ${/^-?\d{1,15}(?:\.\d{1,9})?$/.test(value) && !name.startsWith('param_') ? value : literal(value)}`
}
