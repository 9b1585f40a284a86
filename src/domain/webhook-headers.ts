// What the headers of a delivery say of its signature and its age, for the verifiers of Node and of runtimes with Web Crypto.

const TOLERANCE_SECONDS = 300

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

/** The second and the signatures to be compared; null when a header is missing or the second too far from now. */
export function readSigned(
  headers: SignedHeaders,
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now() }: VerifyOptions,
): { readonly timestamp: string; readonly signatures: readonly string[] } | null {
  const header = readerOf(headers)
  const timestamp = header('x-service-timestamp')
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1_000 - Number(timestamp)) > toleranceSeconds) return null
  // While a secret is being replaced the second header carries the signature of the new one.
  return { timestamp, signatures: [header('x-service-signature'), header('x-service-signature-next')] }
}

/** Under an empty key anybody can sign. */
export function insistOnSecret(secret: string): void {
  if (typeof secret !== 'string' || secret === '') throw new TypeError('verifyWebhook needs the secret of the webhook.')
}

/** Reads a header by its lower-case name; one that is missing is empty. */
export function readerOf(headers: SignedHeaders): (name: string) => string {
  const { get } = headers as { readonly get?: unknown }
  if (typeof get === 'function') return (name) => String(get.call(headers, name) ?? '')
  const values = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return (name) => {
    const value = values.get(name)
    return typeof value === 'string' ? value : ''
  }
}
