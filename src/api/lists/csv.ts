// Entries of a list as a text file: one per line, `value[,ttl[,reason]]`, quoted like RFC 4180 where needed.

import { invalid } from '../../domain/errors.ts'
import { ENTRIES_PER_CALL_MAX } from '../../domain/list.ts'

const HEADINGS: readonly string[] = ['value', 'ttl', 'reason']
const TTL = /^[1-9]\d{0,9}$/

export interface CsvEntry {
  readonly value: string
  readonly ttl?: number
  readonly reason?: string
}

/** Throws ApiError validation_error naming the entry, counted from the first that is one. A first line of headings is none. */
export function readEntriesCsv(text: string): { readonly add: readonly CsvEntry[] } {
  const add: CsvEntry[] = []
  let isFirst = true
  for (const row of rows(text.replace(/^\uFEFF/, ''), () => `add[${add.length}]`)) {
    const isHeading = isFirst && row.every((cell, i) => cell.trim().toLowerCase() === HEADINGS[i])
    isFirst = false
    if (isHeading || (row.length === 1 && row[0]?.trim() === '')) continue
    if (add.length === ENTRIES_PER_CALL_MAX) throw invalid('add', `Must have at most ${ENTRIES_PER_CALL_MAX} entries.`)
    add.push(entryOf(row, `add[${add.length}]`))
  }
  return { add }
}

function entryOf(row: readonly string[], at: string): CsvEntry {
  const [value = '', ttl = '', reason = ''] = row
  if (row.length > HEADINGS.length) throw invalid(at, 'A line has a value, a ttl and a reason.')
  if (ttl.trim() !== '' && !TTL.test(ttl.trim())) throw invalid(`${at}.ttl`, 'Must be a number of seconds.')
  return {
    value,
    ...(ttl.trim() === '' ? {} : { ttl: Number(ttl) }),
    ...(reason === '' ? {} : { reason }),
  }
}

function* rows(text: string, at: () => string): Generator<readonly string[]> {
  let row: string[] = []
  for (let i = 0; i < text.length; ) {
    let cell = ''
    if (text[i] === '"') {
      for (i++; ; ) {
        const end = text.indexOf('"', i)
        if (end < 0) throw invalid(at(), 'A quoted value has no end.')
        cell += text.slice(i, end)
        i = end + 1
        if (text[i] !== '"') break
        cell += '"'
        i++
      }
      if (i < text.length && !',\r\n'.includes(text[i] as string)) throw invalid(at(), 'A quote stands inside a value.')
    } else {
      let end = i
      while (end < text.length && !',\r\n'.includes(text[end] as string)) end++
      cell = text.slice(i, end)
      i = end
    }
    row.push(cell)
    if (row.length > HEADINGS.length + 1) throw invalid(at(), 'A line has a value, a ttl and a reason.')
    const isEnd = i >= text.length || text[i] !== ','
    if (text[i] === '\r' && text[i + 1] === '\n') i++
    i++
    if (!isEnd && i >= text.length) row.push('')
    if (!isEnd && i < text.length) continue
    yield row
    row = []
  }
}
