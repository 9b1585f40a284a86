// A record of the `identifications` topic: what the ingress knows of an accepted request, then the body as it came; or a
// command about a visitor, in the order of its identifications.

import { hash } from 'node:crypto'
import type { IdentifyBody, IdentifyMeta } from '../domain/identify.ts'
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

const quoted = (text: string): string => JSON.stringify(text)

/** As JSON.stringify writes it, which takes twice as long: only texts from outside may need escaping. */
function headOf(meta: IdentifyMeta): string {
  const { headers, token } = meta
  let values = ''
  for (const name in headers) values += `${values === '' ? '' : ','}"${name}":${quoted(headers[name] as string)}`
  const ids = `{"requestId":"${meta.requestId}","acceptedAt":${meta.acceptedAt},"workspace":${quoted(meta.workspace)}`
  const caller = `"env":"${meta.env}","keyKind":"${meta.keyKind}","ip":"${meta.ip}","headers":{${values}}`
  const claims =
    token === null
      ? 'null'
      : `{"visitorId":"${token.visitorId}","generation":${token.generation},"issuedAt":${token.issuedAt}}`
  const rest = `"token":${claims},"tokenForged":${meta.tokenForged},"replyTo":${quoted(meta.replyTo)}`
  return `${ids},${caller},${rest}${meta.trace === undefined ? '' : `,"trace":${quoted(meta.trace)}`}}`
}

/** Records are short-lived and come in great numbers: many share one piece of memory, as an allocation for each costs more. */
const SLAB_BYTES = 131_072
/** Of UTF-8 for each unit of UTF-16. */
const UNIT_BYTES_MAX = 3
let slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
let slabUsed = 0

export function encodeIdentification(meta: IdentifyMeta, body: Uint8Array): Uint8Array {
  const head = headOf(meta)
  const bytesMax = 4 + UNIT_BYTES_MAX * head.length + body.length
  let to = slab
  let at = slabUsed
  if (bytesMax > SLAB_BYTES / 4) {
    to = Buffer.allocUnsafeSlow(bytesMax)
    at = 0
  } else if (at + bytesMax > SLAB_BYTES) {
    to = slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
    at = 0
  }
  const headBytes = to.write(head, at + 4)
  to.writeUInt32BE(headBytes, at)
  to.set(body, at + 4 + headBytes)
  const length = 4 + headBytes + body.length
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
function bodyHashOf(body: Uint8Array): number {
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

/** `body` is what JSON.parse makes of `bytes`. */
export const factsOf = (bytes: Uint8Array, body: IdentifyBody): BodyFacts => ({
  bodyHash: body.nonce === undefined ? 0 : bodyHashOf(bytes),
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
