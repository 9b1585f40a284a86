// The lines of a text file that may be long, broken or hostile: each is decoded by itself, and a file in which too little
// can be read is refused whole, since it is an error page or half a file.

import { BadSource } from './sources.ts'

const LINE_BYTES_MAX = 4_096
/** Unreadable lines that are passed over in any file, and the share of them beyond that. */
const BAD_LINES = 8
const BAD_SHARE = 0.02

/** Calls `read` for every line that is not empty; it returns false for what it cannot read. */
export function readSourceLines(bytes: Buffer, read: (line: string) => boolean): void {
  let good = 0
  let bad = 0
  let example = ''
  for (let at = bytes[0] === 0xef && bytes[1] === 0xbb ? 3 : 0; at < bytes.length; ) {
    const found = bytes.indexOf(10, at)
    const end = found < 0 ? bytes.length : found
    if (end - at > LINE_BYTES_MAX) bad++
    else {
      const line = bytes.toString('utf8', at, end).trim()
      if (line !== '' && read(line)) good++
      else if (line !== '') {
        bad++
        example ||= line.slice(0, 60)
      }
    }
    at = end + 1
  }
  if (bad > BAD_LINES && bad > BAD_SHARE * (good + bad)) {
    throw new BadSource(`${bad} of ${good + bad} lines cannot be read, such as ${JSON.stringify(example)}`)
  }
}

/** Fields of one line of CSV or TSV; quotes may hold the separator, and double themselves. */
export function splitFields(line: string, separator: string): string[] {
  if (!line.includes('"')) return line.split(separator)
  const fields: string[] = []
  let at = 0
  while (at <= line.length) {
    let start = at
    while (line[start] === ' ') start++
    if (line[start] !== '"') {
      const end = line.indexOf(separator, at)
      fields.push(line.slice(at, end < 0 ? line.length : end))
      at = end < 0 ? line.length + 1 : end + 1
      continue
    }
    let text = ''
    let from = start + 1
    for (;;) {
      const quote = line.indexOf('"', from)
      text += line.slice(from, quote < 0 ? line.length : quote)
      if (quote < 0) return [...fields, text]
      from = quote + 1
      if (line[from] !== '"') break
      text += '"'
      from++
    }
    fields.push(text)
    const next = line.indexOf(separator, from)
    at = next < 0 ? line.length + 1 : next + 1
  }
  return fields
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g
const TEXT_CHARS_MAX = 128

/** A name as an event may keep it; null when nothing is left. */
export function cleanText(text: unknown): string | null {
  if (typeof text !== 'string') return null
  return (
    text
      .slice(0, 4 * TEXT_CHARS_MAX)
      .replace(CONTROLS, ' ')
      .trim()
      .slice(0, TEXT_CHARS_MAX)
      .toWellFormed() || null
  )
}
