// A record of the `identifications` topic: what the ingress knows of an accepted request, then the body as it came; or a
// command about a visitor, in the order of its identifications.

import { hash } from 'node:crypto'
import type { IdentifyBody, IdentifyMeta } from '../domain/identify.ts'
import { copyLines, cutLines, linesEnd, putAscii, putNumber, putText } from '../lib/json-lines.ts'
import type { Aliasing } from './aliases.ts'
import type { Annotation } from './annotations.ts'
import type { RecordedErasure } from './erasures.ts'
import type { Expiry } from './expiry.ts'
import type { Splitting } from './splits.ts'
import type { Unnaming } from './unnaming.ts'

/** What a body's bytes say besides its values. */
export interface BodyFacts {
  /** What a repeat of its nonce must have too, as `bodyHashOf` makes it; 0 without a nonce. */
  readonly bodyHash: number
  /** Whether it may hold half of a surrogate pair. */
  readonly mayHoldHalves: boolean
}

/** An identification, taken apart. */
export interface Decoded {
  readonly meta: IdentifyMeta
  /** What JSON.parse makes of its bytes. */
  readonly body: IdentifyBody
  readonly facts: BodyFacts
}

const utf8 = new TextDecoder('utf-8', { fatal: true })
const LONE_SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/
const BACKSLASH = 92
const BODY_HASH_BYTES = 6

/** As JSON.stringify writes it, which takes twice as long and leaves three times as much garbage. */
function putHead(meta: IdentifyMeta): void {
  const { headers, token, trace } = meta
  putAscii('{"requestId":"')
  putAscii(meta.requestId)
  putAscii('","acceptedAt":')
  putNumber(meta.acceptedAt)
  putAscii(',"workspace":')
  putText(meta.workspace)
  putAscii(',"env":"')
  putAscii(meta.env)
  putAscii('","keyKind":"')
  putAscii(meta.keyKind)
  putAscii('","ip":"')
  putAscii(meta.ip)
  putAscii('","headers":{')
  let isFirst = true
  for (const name in headers) {
    putAscii(isFirst ? '"' : ',"')
    putAscii(name)
    putAscii('":')
    putText(headers[name] as string)
    isFirst = false
  }
  putAscii('},"token":')
  if (token === null) putAscii('null')
  else {
    putAscii('{"visitorId":"')
    putAscii(token.visitorId)
    putAscii('","generation":')
    putNumber(token.generation)
    putAscii(',"issuedAt":')
    putNumber(token.issuedAt)
    putAscii('}')
  }
  putAscii(meta.tokenForged ? ',"tokenForged":true,"replyTo":' : ',"tokenForged":false,"replyTo":')
  putText(meta.replyTo)
  if (trace !== undefined) {
    putAscii(',"trace":')
    putText(trace)
  }
  putAscii('}')
}

/** Records are short-lived and come in great numbers: many share one piece of memory, as an allocation for each costs more. */
const SLAB_BYTES = 131_072
let slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
let slabUsed = 0

export function encodeIdentification(meta: IdentifyMeta, body: Uint8Array): Uint8Array {
  const from = linesEnd()
  putHead(meta)
  const headBytes = linesEnd() - from
  const length = 4 + headBytes + body.length
  let to = slab
  let at = slabUsed
  if (length > SLAB_BYTES / 4) {
    to = Buffer.allocUnsafeSlow(length)
    at = 0
  } else if (at + length > SLAB_BYTES) {
    to = slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
    at = 0
  }
  to.writeUInt32BE(headBytes, at)
  copyLines(from, from + headBytes, to, at + 4)
  cutLines(from)
  to.set(body, at + 4 + headBytes)
  if (to === slab) slabUsed = at + length
  return new Uint8Array(to.buffer, at, length)
}

/** Throws on bytes that are no such record. */
export function decodeIdentification(bytes: Uint8Array): { readonly meta: IdentifyMeta; readonly body: Uint8Array } {
  const headBytes = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0)
  const meta = JSON.parse(utf8.decode(bytes.subarray(4, 4 + headBytes))) as IdentifyMeta
  return { meta, body: bytes.subarray(4 + headBytes) }
}

/** The first 48 bits of SHA-1, as a number. */
export function bodyHashOf(body: Uint8Array): number {
  // A text of one character per byte is made faster than a buffer, or one in hex.
  const digest = hash('sha1', body, 'binary')
  let first = 0
  for (let i = 0; i < BODY_HASH_BYTES; i++) first = first * 256 + digest.charCodeAt(i)
  return first
}

/** UTF-8 has no half of a surrogate pair, so only an escape makes one. */
function mayHoldHalves(json: Uint8Array): boolean {
  // Most bodies escape nothing.
  if (Buffer.prototype.indexOf.call(json, BACKSLASH) < 0) return false
  return LONE_SURROGATE_ESCAPE.test(Buffer.prototype.latin1Slice.call(json, 0, json.length))
}

/** `body` is what JSON.parse makes of `bytes`; `hash` what `bodyHashOf` does, where that is known. */
export const factsOf = (bytes: Uint8Array, body: IdentifyBody, hash: number | null = null): BodyFacts => ({
  bodyHash: body.nonce === undefined ? 0 : (hash ?? bodyHashOf(bytes)),
  mayHoldHalves: mayHoldHalves(bytes),
})

/** Throws on bytes that are no identification. */
export function takeApart(bytes: Uint8Array): Decoded {
  const { meta, body: json } = decodeIdentification(bytes)
  const body = JSON.parse(utf8.decode(json)) as IdentifyBody
  return { meta, body, facts: factsOf(json, body) }
}

/** Behind the length, a brace and a quote. */
const NAME_AT = 6

/**
 * How a command is written, and read: null when the record is an identification, or another command. Its name comes first, so
 * that most records are told apart by their first bytes.
 */
function command<T>(name: string): [encode: (of: T) => Uint8Array, decode: (bytes: Uint8Array) => T | null] {
  const start = Buffer.from(`{"${name}":`)
  const encode = (of: T): Uint8Array => {
    const head = JSON.stringify({ [name]: of })
    const bytes = Buffer.allocUnsafe(4 + Buffer.byteLength(head))
    bytes.writeUInt32BE(bytes.length - 4, 0)
    bytes.write(head, 4)
    return bytes
  }
  const decode = (bytes: Uint8Array): T | null => {
    // Most are identifications, whose first name begins with another letter.
    if (bytes[NAME_AT] !== start[NAME_AT - 4]) return null
    if (Buffer.compare(bytes.subarray(4, 4 + start.length), start) !== 0) return null
    return (JSON.parse(utf8.decode(bytes.subarray(4))) as Record<string, T>)[name] as T
  }
  return [encode, decode]
}

export const [encodeErasure, decodeErasure] = command<RecordedErasure>('erase')
/** The order to forget visitors nobody saw. */
export const [encodeExpiry, decodeExpiry] = command<Expiry>('expire')
/** The order to let a visitor's events be another's. */
export const [encodeAliasing, decodeAliasing] = command<Aliasing>('alias')
/** The order to let some of a visitor's visits be another's. */
export const [encodeSplitting, decodeSplitting] = command<Splitting>('split')
/** The order to take an erased visitor out of another's record. */
export const [encodeUnnaming, decodeUnnaming] = command<Unnaming>('unname')
/** What is said of an event afterwards. */
export const [encodeAnnotation, decodeAnnotation] = command<Annotation>('annotate')
