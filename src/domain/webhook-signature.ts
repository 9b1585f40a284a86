// How deliveries are signed, and how a receiver checks them: `verifyWebhook` is what the package exports.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { insistOnSecret, readSigned, type SignedHeaders, type VerifyOptions } from './webhook-headers.ts'

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

/**
 * Whether a delivery was signed with the webhook's secret and is fresh. `rawBody` must be the bytes as they arrived: parsed and
 * written again they may differ. Throws without a secret: under an empty key anybody can sign.
 */
export function verifyWebhook(
  rawBody: Uint8Array | string,
  headers: SignedHeaders,
  secret: string,
  options: VerifyOptions = {},
): boolean {
  insistOnSecret(secret)
  const signed = readSigned(headers, options)
  if (signed === null) return false
  const body = typeof rawBody === 'string' ? Buffer.from(rawBody) : rawBody
  const expected = Buffer.from(signBody(secret, Number(signed.timestamp), body))
  return signed.signatures.some((text) => {
    const given = Buffer.from(text)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}
