// MessagePack read piece by piece, the counterpart of packing.ts: what is looked at for each event needs no lists and objects between
// the bytes and what is made of them. It reads the forms that are written there and throws Unreadable for all others.

import { Unreadable } from './failures.ts'
import { roomFor, roomForNumbers } from './room.ts'

/** Names of systems, browsers and graphics that were read before, so that records which have the same share one text. */
const NAMES_MAX = 1_024
const NAME_BYTES_MAX = 64

const names: (string | undefined)[] = new Array(NAMES_MAX).fill(undefined)
const double = new DataView(new ArrayBuffer(8))

let bytes: Uint8Array = new Uint8Array(0)
let at = 0
/** Behind what may be read. */
let end = 0

/** What is read next, by default all of it; one value is read to its end before the next is begun. */
export function beginReading(from: Uint8Array, first = 0, behind = from.length): void {
  bytes = from
  at = first
  end = behind
}

/** Throws where something is left that was not read, or less was there than was read. */
export function endReading(): void {
  if (at !== end) throw new Unreadable('a packed value has another length than it says')
}

function refuse(form: number | undefined): never {
  throw new Unreadable(`a packed value has a form that is not expected: ${form}`)
}

const nextByte = (): number => (at < end ? (bytes[at++] as number) : refuse(undefined))

function nextInteger(size: number): number {
  let value = 0
  for (let i = 0; i < size; i++) value = value * 256 + nextByte()
  return value
}

/** Whether a null comes next, which is then read. */
export function skipNull(): boolean {
  if (at >= end || bytes[at] !== 0xc0) return false
  at++
  return true
}

export function readBoolean(): boolean {
  const form = nextByte()
  return form === 0xc3 || (form !== 0xc2 && refuse(form))
}

export function readNumber(): number {
  const form = nextByte()
  if (form < 0x80) return form
  if (form >= 0xe0) return form - 0x100
  switch (form) {
    case 0xcb: {
      if (at + 8 > end) return refuse(undefined)
      for (let i = 0; i < 8; i++) double.setUint8(i, bytes[at + i] as number)
      at += 8
      return double.getFloat64(0)
    }
    case 0xcc:
      return nextByte()
    case 0xcd:
      return nextInteger(2)
    case 0xce:
      return nextInteger(4)
    case 0xd0:
      return (nextByte() << 24) >> 24
    case 0xd1:
      return (nextInteger(2) << 16) >> 16
    case 0xd2:
      return nextInteger(4) | 0
    default:
      return refuse(form)
  }
}

export const readMaybe = (): number | null => (skipNull() ? null : readNumber())

/** How many items follow, each of which takes a byte at least. */
export function readArray(): number {
  const form = nextByte()
  let items = form - 0x90
  if (form === 0xdc) items = nextInteger(2)
  else if (form === 0xdd) items = nextInteger(4)
  else if (items < 0 || items > 15) return refuse(form)
  return items > end - at ? refuse(undefined) : items
}

export function readNumbers(): number[] {
  const values = roomForNumbers(readArray())
  for (let i = 0; i < values.length; i++) values[i] = readNumber()
  return values
}

/** Reads the header of a text; its bytes are those from `at` on. */
function textBytes(): number {
  const form = nextByte()
  let length = form - 0xa0
  if (form === 0xd9) length = nextByte()
  else if (form === 0xda) length = nextInteger(2)
  else if (form === 0xdb) length = nextInteger(4)
  else if (length < 0 || length >= 0x20) return refuse(form)
  return at + length > end ? refuse(undefined) : length
}

function textOf(from: number, to: number): string {
  let all = 0
  for (let i = from; i < to; i++) all |= bytes[i] as number
  if (all < 0x80) return Buffer.prototype.latin1Slice.call(bytes, from, to)
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('utf8')
}

/** `likely`: what it may be, which need not be made anew then. */
export function readText(likely?: string): string {
  const length = textBytes()
  at += length
  if (likely !== undefined && isHere(likely, at - length, length)) return likely
  return length === 0 ? '' : textOf(at - length, at)
}

const NO_TEXTS: readonly string[] = []

export function readTexts(likely = NO_TEXTS): string[] {
  const texts = roomFor<string>(readArray())
  for (let i = 0; i < texts.length; i++) texts[i] = readText(likely[i])
  return texts
}

/** Leaves out so many values of whatever form. */
export function skipValues(count: number): void {
  for (let left = count; left > 0; left--) {
    const form = nextByte()
    if (form < 0x80 || form >= 0xe0 || form === 0xc0 || form === 0xc2 || form === 0xc3) continue
    if (form >= 0x90 && form < 0xa0) left += form - 0x90
    else if (form >= 0xa0 && form < 0xc0) at += form - 0xa0
    else if (form === 0xdc) left += nextInteger(2)
    else if (form === 0xdd) left += nextInteger(4)
    else {
      // Reading a length moves on as well.
      const length = bytesBehind(form)
      at += length
    }
  }
  if (at > end) refuse(undefined)
}

/** How many bytes of the value follow its form, where that is no list. */
function bytesBehind(form: number): number {
  switch (form) {
    case 0xcc:
    case 0xd0:
      return 1
    case 0xcd:
    case 0xd1:
      return 2
    case 0xce:
    case 0xd2:
      return 4
    case 0xcb:
      return 8
    case 0xc4:
    case 0xd9:
      return nextByte()
    case 0xc5:
    case 0xda:
      return nextInteger(2)
    case 0xc6:
    case 0xdb:
      return nextInteger(4)
    default:
      return refuse(form)
  }
}

/** A text that many records have. */
export function readName(): string {
  const length = textBytes()
  const from = at
  at += length
  if (length > NAME_BYTES_MAX) return textOf(from, at)
  let hash = length
  for (let i = from; i < at; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193)
  const place = (hash ^ (hash >>> 15)) & (NAMES_MAX - 1)
  const known = names[place]
  if (known !== undefined && isHere(known, from, length)) return known
  const name = textOf(from, at)
  names[place] = name
  return name
}

/** Of a text of ASCII; any other is never found again. */
function isHere(text: string, from: number, length: number): boolean {
  if (text.length !== length) return false
  for (let i = 0; i < length; i++) {
    const c = text.charCodeAt(i)
    if (c !== bytes[from + i] || c >= 0x80) return false
  }
  return true
}

const NO_BYTES = new Uint8Array(0)

/** A view of what is read. */
export function readBytes(): Uint8Array {
  const form = nextByte()
  if (form < 0xc4 || form > 0xc6) return refuse(form)
  const length = nextInteger(1 << (form - 0xc4))
  if (length === 0) return NO_BYTES
  at += length
  if (at > end) return refuse(undefined)
  return new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset + at - length, length)
}
