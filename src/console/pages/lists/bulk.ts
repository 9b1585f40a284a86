// Many entries from a text: CSV lines of `value[,ttl[,reason]]`, read line by line so that a wrong one is named by its number.

export interface EntryLine {
  /** From 1. */
  readonly line: number
  readonly value: string
  /** Seconds; null: as the list says. */
  readonly ttl: number | null
  readonly reason: string
}
export interface Wrong {
  readonly line: number
  readonly why: string
}
export interface ReadLines {
  readonly lines: readonly EntryLine[]
  readonly wrong: readonly Wrong[]
}

/** What the API takes in one call. */
export const LINES_PER_CALL = 1_000
const TTL_SECONDS_MAX = 315_360_000
const REASON_CHARS_MAX = 200

/** The cells of one line (RFC 4180, without line breaks within quotes). null: a quote is not closed. */
export function cellsOf(text: string): readonly string[] | null {
  const cells: string[] = []
  let rest = text
  for (;;) {
    const quoted = /^\s*"((?:[^"]|"")*)"\s*(,|$)/.exec(rest)
    const plain = quoted ?? /^([^",]*)(,|$)/.exec(rest)
    if (plain === null) return null
    cells.push(quoted === null ? (plain[1] ?? '').trim() : (plain[1] ?? '').replaceAll('""', '"'))
    if (plain[2] === '') return cells
    rest = rest.slice(plain[0].length)
  }
}

export function readLines(text: string): ReadLines {
  const lines: EntryLine[] = []
  const wrong: Wrong[] = []
  const seen = new Map<string, number>()
  for (const [i, raw] of text.split(/\r\n|\r|\n/).entries()) {
    const line = i + 1
    if (raw.trim() === '' || (line === 1 && /^\s*value\s*(,|$)/i.test(raw))) continue
    const read = readLine(line, raw, seen)
    if ('why' in read) wrong.push(read)
    else lines.push(read)
  }
  return { lines, wrong }
}

function readLine(line: number, raw: string, seen: Map<string, number>): EntryLine | Wrong {
  const cells = cellsOf(raw)
  if (cells === null) return { line, why: 'a quote is not closed' }
  const [value = '', ttlText = '', reason = '', ...more] = cells
  if (more.length > 0) return { line, why: 'more than value, ttl and reason' }
  if (value === '') return { line, why: 'no value' }
  const ttl = ttlText === '' ? null : Number(ttlText)
  if (ttl !== null && !(Number.isInteger(ttl) && ttl >= 1 && ttl <= TTL_SECONDS_MAX)) {
    return { line, why: 'the ttl is no whole number of seconds' }
  }
  if (reason.length > REASON_CHARS_MAX) return { line, why: `the reason has more than ${REASON_CHARS_MAX} characters` }
  const earlier = seen.get(value)
  if (earlier !== undefined) return { line, why: `the same value as in line ${earlier}` }
  seen.set(value, line)
  return { line, value, ttl, reason }
}

/** A refusal names an entry by its place in the call, `add[3]`; null: it names none. */
export function lineOfField(field: string | null, lines: readonly EntryLine[]): number | null {
  const place = /^add\[(\d+)\]/.exec(field ?? '')?.[1]
  return place === undefined ? null : (lines[Number(place)]?.line ?? null)
}
