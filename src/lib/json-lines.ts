// The bytes that JSON is written to piece by piece: one growing buffer of the thread, so that a row, or the head of a record, is no
// text, no list of cells and no buffer of its own before it is part of a record. What is written is as JSON.stringify writes it.

const START_BYTES = 65_536
/** A buffer that grew beyond this is not kept. */
const KEPT_BYTES_MAX = 4_194_304
/** The most that one UTF-16 unit becomes, in a text within a text: `\\ud800` and the escape of its backslash. */
const BYTES_PER_UNIT_MAX = 7
/** Of the longest number and what stands around it. */
const NUMBER_BYTES_MAX = 40

let bytes: Buffer = Buffer.allocUnsafeSlow(START_BYTES)
let at = 0

/** Forgets what was written. */
export function clearLines(): void {
  at = 0
  if (bytes.length > KEPT_BYTES_MAX) bytes = Buffer.allocUnsafeSlow(START_BYTES)
}

/** The place behind what was written. */
export const linesEnd = (): number => at

/** Takes back what was written from a place on. */
export function cutLines(from: number): void {
  at = from
}

/** What was written between two places; good until something more is written. */
export const linesBetween = (from: number, to: number): Uint8Array => bytes.subarray(from, to)

/** Copies what was written between two places. A loop: to hand a view of it to another copier leaves the view behind. */
export function copyLines(from: number, to: number, target: Uint8Array, place: number): void {
  const source = bytes
  const shift = place - from
  for (let i = from; i < to; i++) target[i + shift] = source[i] as number
}

export const lineText = (from: number, to: number): string => bytes.toString('utf8', from, to)

function makeRoom(wanted: number): void {
  if (at + wanted <= bytes.length) return
  const grown = Buffer.allocUnsafeSlow(Math.max(bytes.length * 2, at + wanted))
  grown.set(bytes.subarray(0, at))
  bytes = grown
}

/** A text of ASCII, as it is. */
export function putAscii(ascii: string): void {
  const { length } = ascii
  makeRoom(length)
  const to = bytes
  const start = at
  for (let i = 0; i < length; i++) to[start + i] = ascii.charCodeAt(i)
  at = start + length
}

const QUOTE = 34
const BACKSLASH = 92
const SPACE = 32
const DELETE = 127

const isPlain = (c: number): boolean => c >= SPACE && c < DELETE && c !== QUOTE && c !== BACKSLASH

const COMMA = 44

/** A text, quoted. */
export function putText(text: string): void {
  const { length } = text
  makeRoom(length * BYTES_PER_UNIT_MAX + 2)
  const to = bytes
  let end = at
  to[end++] = QUOTE
  for (let i = 0; i < length; i++) {
    const c = text.charCodeAt(i)
    if (!isPlain(c)) {
      at += bytes.write(JSON.stringify(text), at)
      return
    }
    to[end++] = c
  }
  to[end++] = QUOTE
  at = end
}

/** A comma and a text. */
export function putCell(text: string): void {
  makeRoom(3)
  const to = bytes
  to[at++] = COMMA
  if (text === '') {
    to[at++] = QUOTE
    to[at++] = QUOTE
  } else putText(text)
}

/** JSON that is the content of a text, or a piece of it: its quotes and backslashes are escaped. */
export function putWithin(json: string): void {
  const { length } = json
  makeRoom(length * BYTES_PER_UNIT_MAX)
  const to = bytes
  let end = at
  for (let i = 0; i < length; i++) {
    const c = json.charCodeAt(i)
    if (c === QUOTE || c === BACKSLASH) to[end++] = BACKSLASH
    else if (!isPlain(c)) {
      at += bytes.write(JSON.stringify(json).slice(1, -1), at)
      return
    }
    to[end++] = c
  }
  at = end
}

/** A text, quoted, in JSON that is the content of a text. */
export function putTextWithin(text: string): void {
  const { length } = text
  makeRoom(length * BYTES_PER_UNIT_MAX + 4)
  const to = bytes
  let end = at
  to[end++] = BACKSLASH
  to[end++] = QUOTE
  for (let i = 0; i < length; i++) {
    const c = text.charCodeAt(i)
    if (!isPlain(c)) {
      putWithin(JSON.stringify(text))
      return
    }
    to[end++] = c
  }
  to[end++] = BACKSLASH
  to[end++] = QUOTE
  at = end
}

const ZERO = 48
/** Whole numbers below it are written in two halves of small integers. */
const HALF = 10_000_000
const WHOLE_MAX = HALF * HALF

/** Decimal digits of a whole number below HALF, zeros in front where it has less than `least`. */
function putDigits(x: number, least: number): void {
  const to = bytes
  if (x < 10 && least === 1) {
    to[at++] = ZERO + x
    return
  }
  let rest = x | 0
  let digits = 1
  for (let power = 10; power <= rest; power *= 10) digits++
  if (digits < least) digits = least
  for (let i = at + digits - 1; i >= at; i--) {
    const tens = (rest / 10) | 0
    to[i] = ZERO + rest - tens * 10
    rest = tens
  }
  at += digits
}

export function putNumber(x: number): void {
  if (x >= 0 && x < WHOLE_MAX && Math.floor(x) === x) {
    makeRoom(NUMBER_BYTES_MAX)
    if (x < HALF) putDigits(x, 1)
    else {
      const high = Math.floor(x / HALF)
      putDigits(high, 1)
      putDigits(x - high * HALF, 7)
    }
  } else putAscii(Number.isFinite(x) ? String(x) : 'null')
}

/** A comma and a number. */
export function putCount(x: number): void {
  makeRoom(1)
  bytes[at++] = COMMA
  putNumber(x)
}
