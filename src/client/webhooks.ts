// Deliveries of webhooks on any runtime with Web Crypto: Node, Bun, Deno and edge runtimes.

import {
  insistOnSecret,
  readerOf,
  readSigned,
  type SignedHeaders,
  type VerifyOptions,
} from '../domain/webhook-headers.ts'

/** A delivery whose signature was right. */
export interface Delivered {
  /** What happened: `identification.complete`, `visitor.new`, … */
  readonly type: string
  /** Of what happened; the same in every delivery of it. Remember it: a delivery may come twice. */
  readonly eventId: string
  readonly body: Readonly<Record<string, unknown>>
}

export interface ReceiverOptions extends VerifyOptions {
  /** The secret of the webhook; while it is being replaced, the old one or the new one. */
  readonly secret: string
  /** Called with each delivery that is genuine. Where it fails the service delivers again. */
  readonly onEvent: (event: Delivered) => unknown
  /** Of a delivery; default 1 MiB. A longer one is answered 413. */
  readonly bodyBytesMax?: number
}

export const BODY_BYTES_MAX = 1_048_576

/**
 * Whether a delivery was signed with the webhook's secret and is fresh. `rawBody` must be the bytes as they arrived: parsed and
 * written again they may differ. Throws without a secret: under an empty key anybody can sign.
 */
export async function verifyWebhook(
  rawBody: Uint8Array | string,
  headers: SignedHeaders,
  secret: string,
  options: VerifyOptions = {},
): Promise<boolean> {
  insistOnSecret(secret)
  const signed = readSigned(headers, options)
  if (signed === null) return false
  const encoder = new TextEncoder()
  const message = joined(encoder.encode(`${signed.timestamp}.`), bytesOf(rawBody))
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), hmac, false, ['verify'])
  for (const text of signed.signatures) {
    const signature = digestOf(text)
    if (signature !== null && (await crypto.subtle.verify('HMAC', key, signature, message))) return true
  }
  return false
}

/** The delivery, or null when it is not genuine or holds no object. */
export async function readDelivery(
  rawBody: Uint8Array | string,
  headers: SignedHeaders,
  { secret, ...options }: VerifyOptions & { readonly secret: string },
): Promise<Delivered | null> {
  if (!(await verifyWebhook(rawBody, headers, secret, options))) return null
  const header = readerOf(headers)
  const body = parsed(new TextDecoder().decode(bytesOf(rawBody)))
  return body === null ? null : { type: header('x-service-event'), eventId: header('webhook-id'), body }
}

/** The bytes of a body as they come; null when there are more than `bytesMax`. */
export async function readBytes(chunks: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const chunk of chunks) {
    length += chunk.length
    if (length > bytesMax) return null
    parts.push(chunk)
  }
  return joined(...parts)
}

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

const bytesOf = (body: Uint8Array | string): Uint8Array =>
  typeof body === 'string' ? new TextEncoder().encode(body) : body

/** The bytes behind `sha256=`; null for anything else. */
function digestOf(text: string): Uint8Array<ArrayBuffer> | null {
  const [, hex] = /^sha256=([0-9a-f]{64})$/.exec(text) ?? []
  return hex === undefined ? null : Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : null
  } catch {
    return null
  }
}
