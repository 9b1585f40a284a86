// Listening to the service: server-sent events as an async iterator that connects again when the connection is lost.

import { type ClientOptions, FingerpostError, refusalOf } from './call.ts'

/** What a webhook of the environment would be sent. */
export interface HeardEvent {
  /** `evt_…`; the same for all who are told. */
  readonly eventId: string
  /** Its dotted name. */
  readonly type: string
  /** The body of form B as it would be posted, JSON; null: form B has none. */
  readonly body: string | null
  /** The same for form A; null: form A is not told of this type. */
  readonly plain: { readonly event: string; readonly body: string } | null
}

export interface ListenOptions {
  /** Ends the listening; leaving the loop does too. */
  readonly signal?: AbortSignal
  /** Called whenever there is a connection; what happens from then on is heard. */
  readonly onConnected?: () => void
  /** Called whenever there is none any more, or still none. */
  readonly onLost?: (reason: FingerpostError) => void
}

/** What is listened to: `read` makes of a message what is given on; undefined: nothing. */
export interface Listened<T> {
  /** With its query. */
  readonly path: string
  readonly read: (name: string, data: string) => T | undefined
}

export const HEARD: Listened<HeardEvent> = {
  path: '/v1/webhooks/listen',
  read: (_, data) => JSON.parse(data) as HeardEvent,
}
const BACKOFF_MS = 250
const WAIT_MS_MAX = 30_000
/** The service says something every two seconds. */
const SILENCE_MS_MAX = 10_000
const MESSAGE_CHARS_MAX = 4_000_000

/** Ends with `signal`, or fails with FingerpostError when the service refuses. What happens between two connections is not heard. */
export async function* listenTo<T>(
  options: ClientOptions,
  listened: Listened<T>,
  { signal, onConnected, onLost }: ListenOptions = {},
): AsyncGenerator<T, void, undefined> {
  const { waitMsMax = WAIT_MS_MAX, sleep = pause, random = Math.random } = options
  const ending = new AbortController()
  const end = () => ending.abort()
  if (signal?.aborted === true) end()
  signal?.addEventListener('abort', end)
  const ended = new Promise<void>((resolve) => ending.signal.addEventListener('abort', () => resolve(), { once: true }))
  try {
    for (let failures = 0; !ending.signal.aborted; failures++) {
      const connected = () => {
        failures = 0
        onConnected?.()
      }
      const reason = yield* connection(options, listened, ending.signal, connected)
      if (ending.signal.aborted) return
      if (reason.status !== 0 && reason.status !== 429 && reason.status < 500) throw reason
      onLost?.(reason)
      const backoffMs = BACKOFF_MS * 2 ** Math.min(failures, 20) * (1 + random())
      const waitMs = reason.retryAfter === undefined ? backoffMs : reason.retryAfter * 1_000
      await Promise.race([sleep(Math.min(waitMs, waitMsMax)), ended])
    }
  } finally {
    signal?.removeEventListener('abort', end)
    end()
  }
}

/** Keeps nothing alive, where the runtime has timers that can. */
const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => (setTimeout(resolve, ms) as { unref?: () => unknown }).unref?.())

/** All of one connection, and why it ended. */
async function* connection<T>(
  { baseUrl, key, fetch: send = fetch }: ClientOptions,
  { path, read }: Listened<T>,
  ending: AbortSignal,
  onConnected: () => void,
): AsyncGenerator<T, FingerpostError, undefined> {
  const closing = new AbortController()
  const close = () => closing.abort()
  ending.addEventListener('abort', close)
  let silence = setTimeout(close, SILENCE_MS_MAX)
  const heard = () => {
    clearTimeout(silence)
    silence = setTimeout(close, SILENCE_MS_MAX)
  }
  try {
    const response = await send(baseUrl.replace(/\/+$/, '') + path, {
      headers: { Authorization: `Bearer ${key}`, Accept: 'text/event-stream' },
      signal: closing.signal,
    })
    if (response.status !== 200 || response.body === null) {
      return refusalOf(response.status, response.headers, await response.text())
    }
    onConnected()
    yield* messagesOf(response.body, read, heard)
    return lost()
  } catch (cause) {
    return lost(cause)
  } finally {
    clearTimeout(silence)
    ending.removeEventListener('abort', close)
    close()
  }
}

const lost = (cause?: unknown): FingerpostError =>
  new FingerpostError(0, 'no_answer', 'The connection to the service was lost.', { cause })

async function* messagesOf<T>(
  bytes: ReadableStream<Uint8Array>,
  read: Listened<T>['read'],
  onChunk: () => void,
): AsyncGenerator<T> {
  let text = ''
  const decoder = new TextDecoder()
  const reader = bytes.getReader()
  for (;;) {
    const { done, value: chunk } = await reader.read()
    if (done) return
    onChunk()
    text += decoder.decode(chunk, { stream: true })
    if (text.length > MESSAGE_CHARS_MAX) throw new RangeError('a message is too long')
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const lines = text.slice(0, end).split('\n')
      text = text.slice(end + 2)
      const member = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
      const data = member('data')
      const message = data === undefined ? undefined : read(member('event') ?? 'message', data)
      if (message !== undefined) yield message
    }
  }
}
