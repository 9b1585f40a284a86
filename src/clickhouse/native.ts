// Rows as a block of ClickHouse's Native format, column by column: where many rows share few values, the engine takes them in
// at a third of the cost of text. https://clickhouse.com/docs/interfaces/formats/Native

import { ipParts } from '../domain/ip.ts'

/** As in a line of JSONCompactEachRow: moments are milliseconds, enums names, addresses text of either family. */
export type NativeValue = string | number | boolean | readonly string[] | readonly number[]

interface Values {
  readonly values: ArrayLike<NativeValue>
  /** For each row the place of its value; null: the values are those of the rows. */
  readonly at: Uint32Array | null
}

export type NativeColumn = {
  readonly name: string
  /** As `system.columns` has it. */
  readonly type: string
} & (Values | { readonly texts: Texts })

/** A column of type String as it comes: texts that nothing else holds cost less as bytes than on the heap. */
export interface Texts {
  add(text: string): void
  bytes(): Uint8Array
}

/** Writes the values into bytes of their own. */
type Encode = (column: Values, rows: number) => Uint8Array[]

const TWO_32 = 4_294_967_296
/** Of a column of low cardinality: keys come with the column, and how wide the places in them are. */
const KEYS_VERSION = 1
const OWN_KEYS = 0x600
const TEXTS_BYTES_FIRST = 65_536
/** Of a unit of UTF-16 in UTF-8, and of the length of a text. */
const CHAR_BYTES_MAX = 3
const LENGTH_BYTES_MAX = 5

/** One block. Throws RangeError for a type it does not know; values that do not fit their type wrap around. */
export function encodeNative(columns: readonly NativeColumn[], rows: number): Buffer {
  const parts: Uint8Array[] = [varint(columns.length), varint(rows)]
  for (const column of columns) {
    parts.push(text(column.name), text(column.type))
    if ('texts' in column) parts.push(column.texts.bytes())
    else parts.push(...encoderOf(column.type)(column, rows))
  }
  return Buffer.concat(parts)
}

function encoderOf(type: string): Encode {
  if (type === 'String') return encodeStrings
  if (type === 'LowCardinality(String)') return (column, rows) => [word(KEYS_VERSION), ...encodeKeyed(column, rows)]
  if (type === 'IPv6') return fixed(16, writeIp)
  if (type.startsWith('DateTime64(3')) return fixed(8, writeWord)
  if (type.startsWith('Enum8(')) return encodeEnum(type)
  if (type.startsWith('Array(')) return encodeArrays(type.slice('Array('.length, -1))
  const width = WIDTHS[type]
  if (width !== undefined) return width
  throw new RangeError(`no encoding for columns of type ${type}`)
}

const fixed =
  (bytes: number, write: (buffer: Buffer, value: NativeValue, at: number) => void): Encode =>
  ({ values, at }, rows) => {
    const distinct = Buffer.alloc(values.length * bytes)
    for (let i = 0; i < values.length; i++) write(distinct, values[i] as NativeValue, i * bytes)
    if (at === null) return [distinct]
    const out = Buffer.allocUnsafe(rows * bytes)
    for (let row = 0; row < rows; row++) {
      const from = (at[row] as number) * bytes
      for (let k = 0; k < bytes; k++) out[row * bytes + k] = distinct[from + k] as number
    }
    return [out]
  }

const writeWord = (buffer: Buffer, value: NativeValue, at: number): void => {
  const number = Number(value)
  buffer.writeUInt32LE(number >>> 0, at)
  buffer.writeInt32LE(Math.floor(number / TWO_32) | 0, at + 4)
}
const writeHalf = (buffer: Buffer, value: NativeValue, at: number): void => {
  buffer.writeInt32LE(Number(value) | 0, at)
}
const writeQuarter = (buffer: Buffer, value: NativeValue, at: number): void => {
  buffer.writeUInt16LE(Number(value) & 0xffff, at)
}
const writeByte = (buffer: Buffer, value: NativeValue, at: number): void => {
  buffer[at] = Number(value)
}

const WIDTHS: Readonly<Record<string, Encode>> = {
  Bool: fixed(1, writeByte),
  UInt8: fixed(1, writeByte),
  UInt16: fixed(2, writeQuarter),
  UInt32: fixed(4, writeHalf),
  Int32: fixed(4, writeHalf),
  UInt64: fixed(8, writeWord),
  Float32: fixed(4, (buffer, value, at) => void buffer.writeFloatLE(Number(value), at)),
}

function writeIp(buffer: Buffer, value: NativeValue, at: number): void {
  const parts = ipParts(String(value))
  if (parts === null) throw new RangeError('an address that is none')
  if (parts.length === 4) {
    buffer.writeUInt16LE(0xffff, at + 10)
    for (const [i, byte] of parts.entries()) buffer[at + 12 + i] = byte
  } else for (const [i, group] of parts.entries()) buffer.writeUInt16BE(group, at + 2 * i)
}

function encodeEnum(type: string): Encode {
  const numbers = new Map<NativeValue, number>()
  for (const [, name = '', number] of type.matchAll(/'([^']*)' = (-?\d+)/g)) numbers.set(name, Number(number))
  return fixed(1, (buffer, value, at) => {
    const number = numbers.get(value)
    if (number === undefined) throw new RangeError('a value that its enum does not have')
    buffer[at] = number
  })
}

function encodeStrings({ values, at }: Values, rows: number): Uint8Array[] {
  if (at === null) return [strings(values)]
  const distinct = Array.from(values, (value) => text(String(value)))
  let bytes = 0
  for (let row = 0; row < rows; row++) bytes += (distinct[at[row] as number] as Buffer).length
  const out = Buffer.allocUnsafe(bytes)
  let end = 0
  for (let row = 0; row < rows; row++) end += (distinct[at[row] as number] as Buffer).copy(out, end)
  return [out]
}

/** The keys, and for each row or element the place of its own. */
function encodeKeyed({ values, at }: Values, rows: number): Uint8Array[] {
  const keys = new Map<NativeValue, number>()
  const places = new Uint32Array(values.length)
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as NativeValue
    const place = keys.get(value) ?? keys.size
    keys.set(value, place)
    places[i] = place
  }
  const wide = keys.size > 65_536 ? 2 : keys.size > 256 ? 1 : 0
  const out = wide === 2 ? new Uint32Array(rows) : wide === 1 ? new Uint16Array(rows) : new Uint8Array(rows)
  for (let row = 0; row < rows; row++) out[row] = places[at === null ? row : (at[row] as number)] as number
  const bytes = new Uint8Array(out.buffer)
  return [word(OWN_KEYS + wide), word(keys.size), strings([...keys.keys()]), word(rows), bytes]
}

function encodeArrays(type: string): Encode {
  return ({ values, at }, rows) => {
    const ends = Buffer.allocUnsafe(rows * 8)
    const elements: NativeValue[] = []
    for (let row = 0; row < rows; row++) {
      const list = values[at === null ? row : (at[row] as number)] as readonly (string | number)[]
      for (const element of list) elements.push(element)
      writeWord(ends, elements.length, row * 8)
    }
    const inner: Values = { values: elements, at: null }
    // What a column of low cardinality begins with comes before the lengths, and keys only where there are elements.
    if (type !== 'LowCardinality(String)') return [ends, ...encoderOf(type)(inner, elements.length)]
    return [word(KEYS_VERSION), ends, ...(elements.length === 0 ? [] : encodeKeyed(inner, elements.length))]
  }
}

export function openTexts(): Texts {
  let out = Buffer.allocUnsafe(TEXTS_BYTES_FIRST)
  let end = 0
  return {
    add(value) {
      const most = value.length * CHAR_BYTES_MAX + LENGTH_BYTES_MAX
      if (end + most > out.length) {
        const larger = Buffer.allocUnsafe(out.length * 2 + most)
        out.copy(larger, 0, 0, end)
        out = larger
      }
      end = writeText(out, value, end)
    },
    bytes: () => out.subarray(0, end),
  }
}

function strings(values: ArrayLike<NativeValue>): Buffer {
  let chars = 0
  for (let i = 0; i < values.length; i++) chars += (values[i] as string).length
  const out = Buffer.allocUnsafe(chars * CHAR_BYTES_MAX + values.length * LENGTH_BYTES_MAX)
  let end = 0
  for (let i = 0; i < values.length; i++) end = writeText(out, values[i] as string, end)
  return out.subarray(0, end)
}

/** Most texts are short and plain: a call into the engine for each would cost more than all the rest. */
function writeText(out: Buffer, value: string, at: number): number {
  const { length } = value
  if (length >= 128) return writeLong(out, value, at)
  out[at] = length
  for (let i = 0; i < length; i++) {
    const c = value.charCodeAt(i)
    if (c >= 128) return writeLong(out, value, at)
    out[at + 1 + i] = c
  }
  return at + 1 + length
}

function writeLong(out: Buffer, value: string, at: number): number {
  const head = varint(Buffer.byteLength(value))
  out.set(head, at)
  return at + head.length + out.write(value, at + head.length, 'utf8')
}

const text = (value: string): Buffer => strings([value])

function word(value: number): Buffer {
  const out = Buffer.alloc(8)
  writeWord(out, value, 0)
  return out
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
  return Buffer.from([...bytes, rest])
}
