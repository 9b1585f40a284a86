// One call of the API over fetch: its answer as data, its refusal as an error, and another try where that can do no harm.

export interface ClientOptions {
  /** Where the service is: `https://fingerpost.example`. */
  readonly baseUrl: string
  /** A secret key. */
  readonly key: string
  /** Further tries of one call; default 3. */
  readonly retriesMax?: number
  /** A longer Retry-After is not waited for; default 30,000. */
  readonly waitMsMax?: number
  /** Of one try; default 40,000, which is more than a backtest may take. */
  readonly timeoutMs?: number
  readonly fetch?: typeof fetch
  readonly sleep?: (ms: number) => Promise<void>
  /** From 0 up to 1: spreads the tries of many clients. */
  readonly random?: () => number
}

export type QueryValue = string | number | boolean | Date | undefined

export interface CallOptions {
  readonly query?: Readonly<Record<string, QueryValue>>
  readonly body?: unknown
  /** Names this write: it may then be tried again, and counts once. */
  readonly idempotencyKey?: string
  /** The `etag` of the object as it was read. */
  readonly ifMatch?: string
  /** The call may be tried again although it is no GET, because its body names it. */
  readonly mayRepeat?: boolean
}

/** A refusal, or a failure to get any answer (`status` 0, `code` `no_answer`). */
export class FingerpostError extends Error {
  override readonly name = 'FingerpostError'
  readonly status: number
  /** Stable: decide by it. */
  readonly code: string
  /** The parameter at fault. */
  readonly field: string | undefined
  /** Seconds to wait, where the service says so. */
  readonly retryAfter: number | undefined
  /** Quote it when you ask about the call. */
  readonly requestId: string | undefined
  constructor(status: number, code: string, message: string, detail: ErrorDetail = {}) {
    super(message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.status = status
    this.code = code
    this.field = detail.field
    this.retryAfter = detail.retryAfter
    this.requestId = detail.requestId
  }
}

interface ErrorDetail {
  readonly field?: string | undefined
  readonly retryAfter?: number | undefined
  readonly requestId?: string | undefined
  readonly cause?: unknown
}

export interface ClientAnswer<T> {
  readonly status: number
  readonly headers: Headers
  readonly body: T
}

/** Fails with FingerpostError. `path` begins with a slash, its ids encoded. */
export type ClientCall = <T>(method: string, path: string, options?: CallOptions) => Promise<ClientAnswer<T>>

const RETRIES_MAX = 3
const WAIT_MS_MAX = 30_000
const TIMEOUT_MS = 40_000
const BACKOFF_MS = 250
const BODY_CHARS_SHOWN = 200

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** A variable of the environment that is not set would be found out with the first call only. */
export function insistOn<T extends object>(who: string, options: T, names: readonly (keyof T & string)[]): void {
  for (const name of names) {
    const value = options[name]
    if (typeof value !== 'string' || value === '')
      throw new TypeError(`${who} needs ${name}, a text that is not empty.`)
  }
}

export function openCall(options: ClientOptions): ClientCall {
  insistOn('openFingerpost', options, ['baseUrl', 'key'])
  const { baseUrl, key, retriesMax = RETRIES_MAX, waitMsMax = WAIT_MS_MAX, timeoutMs = TIMEOUT_MS } = options
  const { fetch: send = fetch, sleep = pause, random = Math.random } = options
  const base = baseUrl.replace(/\/+$/, '')

  async function once<T>(method: string, path: string, call: CallOptions): Promise<ClientAnswer<T>> {
    const { query = {}, body, idempotencyKey, ifMatch } = call
    const response = await answerOf(() =>
      send(base + path + queryText(query), {
        method,
        headers: {
          Authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
          ...(ifMatch === undefined ? {} : { 'If-Match': ifMatch }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(timeoutMs),
      }),
    )
    const text = await answerOf(() => response.text())
    const { status, headers } = response
    const requestId = headers.get('x-request-id') ?? undefined
    const data = parsed(text)
    if (status === 202 && isPending(data)) {
      throw new FingerpostError(status, 'pending', 'The event is not decided yet.', {
        requestId,
        retryAfter: secondsOf(headers),
      })
    }
    if (status >= 200 && status < 300) return { status, headers, body: data as T }
    throw refusalOf(status, headers, text)
  }

  return async (method, path, call = {}) => {
    const mayRepeat = method === 'GET' || call.idempotencyKey !== undefined || call.mayRepeat === true
    for (let tries = 0; ; tries++) {
      try {
        return await once(method, path, call)
      } catch (error) {
        if (!(error instanceof FingerpostError) || !mayRepeat || !isPassing(error) || tries >= retriesMax) throw error
        const backoffMs = BACKOFF_MS * 2 ** tries * (1 + random())
        const waitMs = error.retryAfter === undefined ? backoffMs : error.retryAfter * 1_000
        if (waitMs > waitMsMax) throw error
        await sleep(waitMs)
      }
    }
  }
}

/** A file as it arrives, in one try. Fails with FingerpostError; reading it fails where it breaks off. */
export function openDownload({ baseUrl, key, fetch: send = fetch }: ClientOptions) {
  return async (path: string, type: string, query: NonNullable<CallOptions['query']>) => {
    const headers = { Authorization: `Bearer ${key}`, Accept: type }
    const response = await answerOf(() => send(baseUrl.replace(/\/+$/, '') + path + queryText(query), { headers }))
    if (response.status === 200 && response.body !== null) return response.body
    throw refusalOf(response.status, response.headers, await answerOf(() => response.text()))
  }
}

/** What an answer that is none of success says. */
export function refusalOf(status: number, headers: Headers, text: string): FingerpostError {
  const { error } = (parsed(text) ?? {}) as { error?: { code: string; message: string; field?: string } }
  const requestId = headers.get('x-request-id') ?? undefined
  return new FingerpostError(status, error?.code ?? 'unknown', error?.message ?? text.slice(0, BODY_CHARS_SHOWN), {
    requestId,
    field: error?.field,
    retryAfter: secondsOf(headers),
  })
}

/** Another try may end otherwise. */
const isPassing = ({ status, code }: FingerpostError): boolean =>
  status === 0 || status === 429 || status >= 500 || code === 'pending' || code === 'idempotency_in_progress'

const isPending = (data: unknown): boolean => (data as { status?: unknown } | null)?.status === 'pending'

async function answerOf<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (cause) {
    throw new FingerpostError(0, 'no_answer', 'The service gave no answer.', { cause })
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function secondsOf(headers: Headers): number | undefined {
  const text = headers.get('retry-after')
  return text !== null && /^\d+$/.test(text) ? Number(text) : undefined
}

export function queryText(query: Readonly<Record<string, QueryValue>>): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) params.set(name, value instanceof Date ? value.toISOString() : String(value))
  }
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}
