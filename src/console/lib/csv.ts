// Tables as text that spreadsheets read.

/** RFC 4180; a value that a spreadsheet would take for a formula is written as text. */
export function csvOf(
  head: readonly string[],
  rows: readonly (readonly (string | number | boolean | null)[])[],
): string {
  const cell = (value: string | number | boolean | null): string => {
    const text = value === null ? '' : String(value)
    const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  }
  return [head, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('')
}
