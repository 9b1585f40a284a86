// Checks a signature as a receiver should (src/docs/guides/webhooks.md), and says which part is wrong. Nothing leaves the browser.

export interface ReceivedDelivery {
  readonly secret: string
  /** Seconds, as `X-Service-Timestamp` has them. */
  readonly timestamp: string
  /** The raw body, to the byte. */
  readonly body: string
  /** `X-Service-Signature`: `sha256=` and a digest in hex. */
  readonly signature: string
}
export interface SignatureFinding {
  readonly isRight: boolean
  readonly says: string
}

const TOLERANCE_SECONDS = 300

const hex = (bytes: ArrayBuffer): string =>
  [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, '0')).join('')

/** HMAC-SHA256 (RFC 2104) over `<timestamp>.<body>`; the key is the text of the whole secret. */
export async function signatureOf({ secret, timestamp, body }: Omit<ReceivedDelivery, 'signature'>): Promise<string> {
  const utf8 = new TextEncoder()
  const key = await crypto.subtle.importKey('raw', utf8.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ])
  return `sha256=${hex(await crypto.subtle.sign('HMAC', key, utf8.encode(`${timestamp}.${body}`)))}`
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** What is right and what is not, in the order in which a receiver looks. */
export async function check(delivered: ReceivedDelivery, nowMs: number): Promise<readonly SignatureFinding[]> {
  const { secret, timestamp, body, signature } = delivered
  const findings: SignatureFinding[] = []
  const say = (isRight: boolean, says: string) => findings.push({ isRight, says })
  if (secret !== secret.trim()) say(false, 'The secret has white space around it.')
  else if (!secret.startsWith('whsec_')) say(true, 'The secret is one of your own.')
  const isTime = /^\d{1,12}$/.test(timestamp)
  if (!isTime) say(false, 'The timestamp is no number of seconds.')
  const offSeconds = Math.round(Math.abs(nowMs / 1_000 - Number(timestamp)))
  if (isTime) {
    const isFresh = offSeconds <= TOLERANCE_SECONDS
    say(
      isFresh,
      isFresh
        ? 'The timestamp is fresh.'
        : `The timestamp is ${offSeconds} s from now; receivers refuse more than ${TOLERANCE_SECONDS}.`,
    )
  }
  if (!signature.startsWith('sha256=')) say(false, 'The signature does not begin with sha256=.')
  if ((await signatureOf(delivered)) === signature) {
    say(true, 'The signature is of this secret, timestamp and body.')
    return findings
  }
  const trimmed = { ...delivered, body: body.trim() }
  if (body !== body.trim() && (await signatureOf(trimmed)) === signature) {
    say(false, 'White space around the body is not as it was sent.')
  } else if (
    isJson(body) &&
    (await signatureOf({ ...delivered, body: JSON.stringify(JSON.parse(body)) })) === signature
  ) {
    say(false, 'The body was parsed and written again: check the bytes as they arrive.')
  } else {
    say(
      false,
      'The signature is of another secret, timestamp or body. Of a webhook being rotated, try the newer secret too.',
    )
  }
  return findings
}
