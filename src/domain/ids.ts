// Identifiers: how each is made, what it must look like, and what can be read from it. Randomness is a parameter.

import { createHash } from 'node:crypto'

/** Fills and returns n random bytes. */
export type RandomBytes = (n: number) => Uint8Array

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
export const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const BASE62_CODES = Buffer.from(BASE62, 'latin1')
const CROCKFORD_CODES = Buffer.from(CROCKFORD, 'latin1')
/** By code of the character; -1 for what is no digit. */
const CROCKFORD_DIGITS = Int8Array.from({ length: 128 }, (_, code) => CROCKFORD.indexOf(String.fromCharCode(code)))
const ULID_CHARS = 26
const TIME_CHARS = 10
const PREFIX_CHARS_MAX = 5
// Of the ULID that is made now, behind its prefix: a text put together of pieces would leave all of them behind.
const made = Buffer.alloc(PREFIX_CHARS_MAX + ULID_CHARS)
/** Of the base62 text that is drawn now. */
const drawn = Buffer.alloc(64)
/** The time that the ULID begins with: many are made in one millisecond. */
let madeAtMs = Number.NaN

/** 26 characters, upper-case Crockford base 32: 48 bits of milliseconds, 80 random bits. `prefix`: at most five characters of ASCII before them. */
export function ulid(atMs: number, random: RandomBytes, prefix = ''): string {
  const bytes = random(ULID_CHARS - TIME_CHARS)
  if (atMs !== madeAtMs) {
    let rest = atMs
    for (let i = TIME_CHARS - 1; i >= 0; i--) {
      made[PREFIX_CHARS_MAX + i] = CROCKFORD_CODES[rest % 32] as number
      rest = Math.floor(rest / 32)
    }
    madeAtMs = atMs
  }
  for (let i = TIME_CHARS; i < ULID_CHARS; i++) {
    made[PREFIX_CHARS_MAX + i] = CROCKFORD_CODES[(bytes[i - TIME_CHARS] as number) & 31] as number
  }
  const start = PREFIX_CHARS_MAX - prefix.length
  for (let i = 0; i < prefix.length; i++) made[start + i] = prefix.charCodeAt(i)
  return Buffer.prototype.latin1Slice.call(made, start, made.length)
}

/** Milliseconds inside a ULID, or null when it is not one. */
export const ulidTime = (text: string): number | null => timeAt(text, 0)

function timeAt(text: string, start: number): number | null {
  if (text.length !== start + ULID_CHARS) return null
  let ms = 0
  for (let i = 0; i < ULID_CHARS; i++) {
    const digit = CROCKFORD_DIGITS[text.charCodeAt(start + i)] ?? -1
    if (digit < 0) return null
    if (i < TIME_CHARS) ms = ms * 32 + digit
  }
  return ms < 2 ** 48 ? ms : null
}

/** Unbiased base62 text; rejects bytes above the last full multiple of 62. */
export function base62(chars: number, random: RandomBytes): string {
  const codes = chars <= drawn.length ? drawn : Buffer.alloc(chars)
  let count = 0
  while (count < chars) {
    for (const byte of random(chars + 8)) {
      if (byte < 248 && count < chars) codes[count++] = BASE62_CODES[byte % 62] as number
    }
  }
  return Buffer.prototype.latin1Slice.call(codes, 0, chars)
}

export const makeRequestId = (atMs: number, random: RandomBytes): string => ulid(atMs, random, 'req_')

/** The event's millisecond, or null when the text is no request id. */
export const requestTime = (id: string): number | null => (id.startsWith('req_') ? timeAt(id, 'req_'.length) : null)

const VISITOR = /^pv_[0-9A-Za-z]{20}$/
export const isVisitorId = (id: string): boolean => VISITOR.test(id)
/** Unpredictable and never derived from the fingerprint, so that deletion really unlinks. */
export const makeVisitorId = (random: RandomBytes): string => `pv_${base62(20, random)}`

export const makeCallId = (atMs: number, random: RandomBytes): string => ulid(atMs, random, 'call_')

/** Of a command in `changes`. */
export const makeCommandId = (atMs: number, random: RandomBytes): string => ulid(atMs, random, 'cmd_')

/** Bytes that a seed stands for, in place of random ones; as unpredictable as the seed. */
export function seededBytes(seed: string): RandomBytes {
  let blocks = 0
  return (n) => {
    const bytes = new Uint8Array(n)
    for (let at = 0; at < n; at += 32) {
      const block = createHash('sha256').update(`${seed}/${blocks++}`).digest()
      bytes.set(block.subarray(0, n - at), at)
    }
    return bytes
  }
}

/** rul_, key_, ws_ …: an object made by a call of the API. */
export const makeObjectId = (prefix: string, random: RandomBytes): string => `${prefix}_${base62(20, random)}`

/**
 * FNV-1a of the text's UTF-16 units, all or those behind a place, with a final avalanche, unsigned 32 bits. Stable for ever: it decides a visitor's
 * home partition.
 */
export function hash32(text: string, from = 0): number {
  let h = 0x811c9dc5
  for (let i = from; i < text.length; i++) {
    h ^= text.charCodeAt(i)
    h = Math.imul(h, 0x01000193)
  }
  h ^= h >>> 16
  h = Math.imul(h, 0x85ebca6b)
  h ^= h >>> 13
  h = Math.imul(h, 0xc2b2ae35)
  h ^= h >>> 16
  return h >>> 0
}

/** cyrb53 (bryc, public domain): a 53-bit hash of a text, for tables where a collision is confirmed against the full value. */
export function hash53(text: string, seed = 0): number {
  let a = 0xdeadbeef ^ seed
  let b = 0x41c6ce57 ^ seed
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    a = Math.imul(a ^ c, 2654435761)
    b = Math.imul(b ^ c, 1597334677)
  }
  return mixed53(a, b)
}

/** The same of three texts behind one another, which need not be joined for it. */
export function hash53Of(first: string, second: string, third: string): number {
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  for (let part = 0; part < 3; part++) {
    const text = part === 0 ? first : part === 1 ? second : third
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i)
      a = Math.imul(a ^ c, 2654435761)
      b = Math.imul(b ^ c, 1597334677)
    }
  }
  return mixed53(a, b)
}

/** The finalizer of cyrb53. */
function mixed53(low: number, high: number): number {
  const a = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  const b = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909)
  return 4294967296 * (2097151 & b) + (a >>> 0)
}

/**
 * What `hash53` makes of the texts, each cut to `charsMax` and with a comma behind it, without joining them. What is no text counts as
 * an empty one.
 */
export function hash53Each(texts: readonly unknown[], textsMax: number, charsMax: number): number {
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  const count = Math.min(texts.length, textsMax)
  for (let at = 0; at < count; at++) {
    const text = texts[at]
    const chars = typeof text === 'string' ? Math.min(text.length, charsMax) : 0
    for (let i = 0; i < chars; i++) {
      const c = (text as string).charCodeAt(i)
      a = Math.imul(a ^ c, 2654435761)
      b = Math.imul(b ^ c, 1597334677)
    }
    a = Math.imul(a ^ COMMA, 2654435761)
    b = Math.imul(b ^ COMMA, 1597334677)
  }
  return mixed53(a, b)
}

const COMMA = 44

/** A visitor's home: the one partition that ever writes its state. */
export const homePartition = (visitorId: string, partitions: number): number => hash32(visitorId) % partitions
