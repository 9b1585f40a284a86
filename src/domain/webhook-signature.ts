// How deliveries are signed, and how a receiver checks them: `verifyWebhook` is what the package exports.

import { createHmac, timingSafeEqual } from 'node:crypto'

const TOLERANCE_SECONDS = 300
/** What makes a secret fit for the Standard Webhooks scheme: base64 of 24 to 64 bytes behind a prefix. */
const STANDARD_SECRET = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/

const hmac = (key: string | Uint8Array, ...parts: readonly (string | Uint8Array)[]) => {
  const mac = createHmac('sha256', key)
  for (const part of parts) mac.update(part)
  return mac
}

/** `sha256=` and the hex digest of `<timestamp>.<body>`; the key is the UTF-8 of the whole secret. */
export const signBody = (secret: string, timestampSeconds: number, body: Uint8Array): string =>
  `sha256=${hmac(secret, `${timestampSeconds}.`, body).digest('hex')}`

/** The digest of the body alone. */
export const signBodyAlone = (secret: string, body: Uint8Array): string => `sha256=${hmac(secret, body).digest('hex')}`

/** One signature of the Standard Webhooks scheme; null for a secret that is not of its form. */
export function signStandard(secret: string, id: string, timestampSeconds: number, body: Uint8Array): string | null {
  const [, text] = STANDARD_SECRET.exec(secret) ?? []
  const key = Buffer.from(text ?? '', 'base64')
  if (key.length < 24 || key.length > 64) return null
  return `v1,${hmac(key, `${id}.${timestampSeconds}.`, body).digest('base64')}`
}

/** Header names in any case, as Node gives them, or an object with `get` such as Headers. */
export type SignedHeaders =
  | { readonly get: (name: string) => string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

export interface VerifyOptions {
  /** How far the time of the signature may be from now. Default 300. */
  readonly toleranceSeconds?: number
  /** Milliseconds since the epoch. Default: the time of this machine. */
  readonly now?: number
}

/**
 * Whether a delivery was signed with the webhook's secret and is fresh. `rawBody` must be the bytes as they arrived: parsed and
 * written again they may differ. Throws without a secret: under an empty key anybody can sign.
 */
export function verifyWebhook(
  rawBody: Uint8Array | string,
  headers: SignedHeaders,
  secret: string,
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now() }: VerifyOptions = {},
): boolean {
  if (typeof secret !== 'string' || secret === '') throw new TypeError('verifyWebhook needs the secret of the webhook.')
  const header = readerOf(headers)
  const timestamp = header('x-service-timestamp')
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1_000 - Number(timestamp)) > toleranceSeconds) return false
  const body = typeof rawBody === 'string' ? Buffer.from(rawBody) : rawBody
  const expected = Buffer.from(signBody(secret, Number(timestamp), body))
  // While a secret is being replaced the second header carries the signature of the new one.
  return ['x-service-signature', 'x-service-signature-next'].some((name) => {
    const given = Buffer.from(header(name))
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

function readerOf(headers: SignedHeaders): (name: string) => string {
  const { get } = headers as { readonly get?: unknown }
  if (typeof get === 'function') return (name) => String(get.call(headers, name) ?? '')
  const values = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return (name) => {
    const value = values.get(name)
    return typeof value === 'string' ? value : ''
  }
}
