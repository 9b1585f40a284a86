// MessagePack written piece by piece to one growing buffer of the thread, byte for byte as msgpackr writes the same values: what is
// packed for each event needs no lists and buffers on its way to the bytes that stay.

const START_BYTES = 16_384
/** A buffer that grew beyond this is not kept. */
const KEPT_BYTES_MAX = 1_048_576
const NUMBER_BYTES_MAX = 9
const HEADER_BYTES_MAX = 5
const BYTES_PER_UNIT_MAX = 3

let bytes: Buffer = Buffer.allocUnsafeSlow(START_BYTES)
let view = new DataView(bytes.buffer)
let at = 0

function replaceBuffer(size: number): void {
  const { buffer } = bytes
  bytes = Buffer.allocUnsafeSlow(size)
  bytes.set(new Uint8Array(buffer, 0, Math.min(at, size)))
  view = new DataView(bytes.buffer)
}

function makeRoom(wanted: number): void {
  if (at + wanted > bytes.length) replaceBuffer(Math.max(2 * bytes.length, at + wanted))
}

/** Forgets what was written. One value is written to its end, and taken, before the next is begun. */
export function beginPacking(): void {
  at = 0
  if (bytes.length > KEPT_BYTES_MAX) replaceBuffer(START_BYTES)
}

/** What was written, in memory of its own. */
export function takePacked(): Uint8Array<ArrayBuffer> {
  const taken = new Uint8Array(at)
  taken.set(at === bytes.length ? bytes : bytes.subarray(0, at))
  return taken
}

/** How many bytes were written. */
export const packedLength = (): number => at

/** The same to a place in other memory. */
export const copyPacked = (to: Uint8Array, place: number): void => to.set(bytes.subarray(0, at), place)

export function putNull(): void {
  makeRoom(1)
  bytes[at++] = 0xc0
}

export function putBoolean(value: boolean): void {
  makeRoom(1)
  bytes[at++] = value ? 0xc3 : 0xc2
}

export function packNumber(value: number): void {
  makeRoom(NUMBER_BYTES_MAX)
  if (value >>> 0 === value) {
    if (value < 0x80) bytes[at++] = value
    else if (value < 0x100) {
      bytes[at++] = 0xcc
      bytes[at++] = value
    } else if (value < 0x10000) {
      bytes[at++] = 0xcd
      bytes[at++] = value >> 8
      bytes[at++] = value & 0xff
    } else {
      bytes[at] = 0xce
      view.setUint32(at + 1, value)
      at += 5
    }
  } else if (value >> 0 === value) {
    if (value >= -0x20) bytes[at++] = 0x100 + value
    else if (value >= -0x80) {
      bytes[at++] = 0xd0
      bytes[at++] = value + 0x100
    } else if (value >= -0x8000) {
      bytes[at] = 0xd1
      view.setInt16(at + 1, value)
      at += 3
    } else {
      bytes[at] = 0xd2
      view.setInt32(at + 1, value)
      at += 5
    }
  } else {
    bytes[at] = 0xcb
    view.setFloat64(at + 1, value)
    at += 9
  }
}

export function putMaybe(value: number | null): void {
  if (value === null) putNull()
  else packNumber(value)
}

/** What follows are so many items. */
export function putArray(length: number): void {
  makeRoom(HEADER_BYTES_MAX)
  if (length < 0x10) bytes[at++] = 0x90 | length
  else if (length < 0x10000) {
    bytes[at] = 0xdc
    view.setUint16(at + 1, length)
    at += 3
  } else {
    bytes[at] = 0xdd
    view.setUint32(at + 1, length)
    at += 5
  }
}

export function putNumbers(values: readonly (number | null)[]): void {
  putArray(values.length)
  for (let i = 0; i < values.length; i++) putMaybe(values[i] as number | null)
}

function putTextHeader(length: number): void {
  if (length < 0x20) bytes[at++] = 0xa0 | length
  else if (length < 0x100) {
    bytes[at++] = 0xd9
    bytes[at++] = length
  } else if (length < 0x10000) {
    bytes[at] = 0xda
    view.setUint16(at + 1, length)
    at += 3
  } else {
    bytes[at] = 0xdb
    view.setUint32(at + 1, length)
    at += 5
  }
}

/** Short enough to be written by hand. */
const SHORT_CHARS = 0x60

export function packText(text: string): void {
  const { length } = text
  makeRoom(HEADER_BYTES_MAX + BYTES_PER_UNIT_MAX * length)
  const start = at
  if (length < SHORT_CHARS) {
    putTextHeader(length)
    let i = 0
    for (; i < length; i++) {
      const c = text.charCodeAt(i)
      if (c >= 0x80) break
      bytes[at++] = c
    }
    if (i === length) return
    at = start
  }
  putTextHeader(Buffer.byteLength(text))
  at += bytes.write(text, at)
}

export function putTexts(texts: readonly string[]): void {
  putArray(texts.length)
  for (let i = 0; i < texts.length; i++) packText(texts[i] as string)
}

const BIN_8_BYTES = 2
const BIN_16_BYTES = 3
const BIN_32_BYTES = 5

/** Begins bytes that are packed themselves; `closeBytes` takes what is returned. */
export function openBytes(): number {
  makeRoom(BIN_32_BYTES)
  const start = at
  at += BIN_16_BYTES
  return start
}

export function closeBytes(start: number): void {
  makeRoom(BIN_32_BYTES)
  const from = start + BIN_16_BYTES
  const length = at - from
  if (length < 0x100) {
    bytes.copyWithin(start + BIN_8_BYTES, from, at)
    bytes[start] = 0xc4
    bytes[start + 1] = length
    at = start + BIN_8_BYTES + length
  } else if (length < 0x10000) {
    bytes[start] = 0xc5
    view.setUint16(start + 1, length)
  } else {
    bytes.copyWithin(start + BIN_32_BYTES, from, at)
    bytes[start] = 0xc6
    view.setUint32(start + 1, length)
    at = start + BIN_32_BYTES + length
  }
}

/** Bytes as a value. */
export function putBytes(value: Uint8Array): void {
  const { length } = value
  makeRoom(BIN_32_BYTES)
  if (length < 0x100) {
    bytes[at++] = 0xc4
    bytes[at++] = length
  } else if (length < 0x10000) {
    bytes[at] = 0xc5
    view.setUint16(at + 1, length)
    at += BIN_16_BYTES
  } else {
    bytes[at] = 0xc6
    view.setUint32(at + 1, length)
    at += BIN_32_BYTES
  }
  putRaw(value)
}

/** What is packed already, as it is. */
export function putRaw(value: Uint8Array): void {
  makeRoom(value.length)
  bytes.set(value, at)
  at += value.length
}
