// Delivers one identification: the same bytes again until the service has answered, within a time limit.

import { waitMs } from './budget.ts'
import { FingerpostError } from './errors.ts'
import type { Components, IdentifyResult, PendingResult } from './types.ts'

export type IdentifyAnswer = (IdentifyResult & { storageToken?: string }) | PendingResult

type Attempt = { answer?: IdentifyAnswer; failure?: FingerpostError; retryAfterMs: number | null; final: boolean }

export const bodyBytesMax = 60 * 1024
const triesMax = 3
const backoffMsFirst = 300
const retryAfterMsMax = 5_000

/**
 * Renders the body. Components that would make it too long are replaced by `{error: 'too_large'}`, largest first.
 * Throws `payload_too_large` when the rest alone is too long.
 */
export function renderBody(body: { components: Components } & Record<string, unknown>): string {
  const components = { ...body.components }
  let text = JSON.stringify({ ...body, components })
  let surplus = byteLength(text) - bodyBytesMax
  if (surplus <= 0) return text
  const bySize = Object.keys(components)
    .map((name) => ({ name, bytes: byteLength(JSON.stringify(components[name])) }))
    .sort((a, b) => b.bytes - a.bytes)
  const placeholder = { error: 'too_large' }
  for (const { name, bytes } of bySize) {
    if (surplus <= 0) break
    components[name] = placeholder
    surplus -= bytes - JSON.stringify(placeholder).length
  }
  text = JSON.stringify({ ...body, components })
  if (byteLength(text) > bodyBytesMax) {
    throw new FingerpostError('payload_too_large', `The request is longer than ${bodyBytesMax} bytes.`, 0, 'tag')
  }
  return text
}

export type SendOptions = {
  /** Tried in turns. */
  urls: readonly string[]
  timeoutMs: number
  credentials: RequestCredentials
  signal: AbortSignal | undefined
}

/**
 * Posts `body` up to three times to each address, on network failures, 5xx and "pending", waiting in between as the service asks (at
 * most 5 s), but not before another address. A visit that stays pending is a success: its request id is returned.
 */
export async function send(body: string, sending: SendOptions): Promise<IdentifyAnswer> {
  const { urls, timeoutMs, signal } = sending
  const deadline = performance.now() + timeoutMs
  let last: Attempt = { retryAfterMs: null, final: false }
  for (let at = 0; at < triesMax * urls.length; at++) {
    const attempt = await post(urls[at % urls.length] as string, body, deadline - performance.now(), sending)
    // A pending answer is worth more than a later failure: the visit is recorded.
    last = attempt.answer || !last.answer ? attempt : last
    const tryNumber = Math.floor(at / urls.length) + 1
    if (attempt.final || at + 1 === triesMax * urls.length) break
    if (!attempt.answer && (at + 1) % urls.length > 0) continue
    const backoffMs = backoffMsFirst * 2 ** (tryNumber - 1) * (1 + Math.random() / 2)
    const pauseMs = Math.min(attempt.retryAfterMs ?? backoffMs, retryAfterMsMax)
    if (performance.now() + pauseMs >= deadline) break
    await waitMs(pauseMs)
    if (signal?.aborted) break
  }
  if (signal?.aborted) throw new FingerpostError('aborted', 'The page ended the call.')
  if (last.answer) return last.answer
  throw last.failure ?? new FingerpostError('timeout', 'No time was left to send the request.')
}

async function post(
  url: string,
  body: string,
  timeoutMs: number,
  { credentials, signal }: SendOptions,
): Promise<Attempt> {
  const abort = new AbortController()
  const end = () => abort.abort()
  const timer = setTimeout(end, Math.max(timeoutMs, 0))
  if (signal?.aborted) end()
  signal?.addEventListener('abort', end)
  try {
    const response = await fetch(url, {
      method: 'POST',
      // A "simple" type: the browser asks no preflight question first.
      headers: { 'Content-Type': 'text/plain' },
      body,
      credentials,
      cache: 'no-store',
      signal: abort.signal,
    })
    return readAttempt(response, parse(await response.text()))
  } catch {
    const failure = abort.signal.aborted
      ? new FingerpostError('timeout', 'The service did not answer in time.')
      : new FingerpostError('network_error', 'The service could not be reached.')
    return { failure, retryAfterMs: null, final: abort.signal.aborted }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

function readAttempt(response: Response, content: Record<string, unknown> | null): Attempt {
  const { status } = response
  const error = asRecord(content?.error)
  const retryAfterMs = readRetryAfter(response.headers.get('Retry-After') ?? error?.retryAfter)
  if (status === 200 && typeof content?.requestId === 'string') {
    return { answer: content as unknown as IdentifyAnswer, retryAfterMs, final: true }
  }
  if (status === 202 && typeof content?.requestId === 'string') {
    return { answer: { requestId: content.requestId, status: 'pending' }, retryAfterMs, final: false }
  }
  const code = typeof error?.code === 'string' ? error.code : 'invalid_response'
  const message = typeof error?.message === 'string' ? error.message : `The service answered ${status}.`
  const field = typeof error?.field === 'string' ? error.field : undefined
  return { failure: new FingerpostError(code, message, status, field), retryAfterMs, final: status < 500 }
}

function readRetryAfter(value: unknown): number | null {
  const seconds = value === null || value === undefined ? Number.NaN : Number(value)
  return seconds >= 0 ? seconds * 1000 : null
}

function parse(text: string): Record<string, unknown> | null {
  try {
    return asRecord(JSON.parse(text))
  } catch {
    return null
  }
}

function asRecord(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length
}
