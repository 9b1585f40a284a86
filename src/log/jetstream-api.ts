// Requests to JetStream over one connection: answers are waited for a bounded time, a lost connection fails at once what
// waits for it, and what a server refuses becomes an error that carries its code.
import { createInbox, Events, type Msg, type MsgHdrs, type NatsConnection } from 'nats'
import { hash32 } from '../domain/ids.ts'
import type { Clock } from '../lib/clock.ts'
import { Conflict, Full, Unavailable } from '../lib/failures.ts'
import { openInFlight } from '../lib/in-flight.ts'
import { openTimeouts } from '../lib/timeouts.ts'

/** Codes of the servers' own table of errors. */
export const STREAM_NOT_FOUND = 10059
export const STREAM_NAME_IN_USE = 10058
export const SUBJECTS_OVERLAP = 10065
export const NO_MESSAGE = 10037
export const REPLICAS_NOT_SUPPORTED = 10074
/** JetStream is off, as a whole or for our account. */
export const NOT_ENABLED: readonly number[] = [10076, 10039]
/** A limit of the account or of the server. */
export const NO_STORAGE: readonly number[] = [10002, 10028, 10047]
/** Also a limit of the stream, or a disk that takes no more. */
const NO_ROOM: readonly number[] = [...NO_STORAGE, 10023, 10053, 10077]
const WRONG_LAST_SEQUENCE: readonly number[] = [10071, 10164]

/** The server answered, with an error. */
export class JetStreamRefusal extends Error {
  override readonly name = 'Refusal'
  readonly code: number

  constructor(code: number, description: string) {
    super(`JetStream refused: ${description} (${code})`)
    this.code = code
  }
}

/** Nobody listens on the subject: there is no such stream, or it has no leader. Nothing was done. */
export class NobodyThere extends Unavailable {}

export interface ErrorBody {
  readonly error?: { readonly code: number; readonly err_code?: number; readonly description?: string }
}

export interface JetStreamReply {
  readonly subject: string
  readonly headers: ReadonlyMap<string, string>
  /** Of the first header line; 0 when there is none. */
  readonly status: number
  readonly data: Uint8Array
}

export interface RequestOptions {
  readonly timeoutMs: number
  readonly headers?: MsgHdrs
}

export interface Api {
  readonly connection: NatsConnection
  /** Calls `$JS.API.<path>`. Fails with Refusal, or with Unavailable when the outcome is unknown. */
  call<T>(path: string, body?: unknown): Promise<T>
  /** Any request. Fails with NobodyThere, or with Unavailable when the outcome is unknown. */
  request(subject: string, data: Uint8Array | string, options: RequestOptions): Promise<JetStreamReply>
  isUp(): boolean
  /** When the connection was lost, by the monotonic clock; null while there is one. */
  downSince(): number | null
  /** Resolves when there is a connection again, or after `ms`. */
  waitUntilUp(ms: number): Promise<void>
  /** Tells about every loss and every return of the connection. Returns how to stop it. */
  onChange(listener: () => void): () => void
}

/** How a request ended; neither: its time is over, or the connection was lost. */
interface Outcome {
  readonly answer?: Msg
  /** Why it could not be sent. */
  readonly unsent?: unknown
}

interface Message {
  readonly subject: string
  readonly data: Uint8Array | string
  readonly reply: string
  readonly headers: MsgHdrs | undefined
}

const ANSWER_MS_MAX = 2_000

export function openApi(connection: NatsConnection, clock: Clock): Api {
  const listeners = new Set<() => void>()
  let downSince: number | null = null

  const setUp = (up: boolean) => {
    if (up === (downSince === null)) return
    downSince = up ? null : clock.monotonic()
    for (const listener of [...listeners]) listener()
  }

  async function watch(): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === Events.Disconnect) setUp(false)
      else if (type === Events.Reconnect) setUp(true)
    }
  }
  void watch()
  void connection.closed().then(() => setUp(false))

  const onChange = (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  // The library's own requests make an error object for each answer that came in time, which costs more than the request.
  const inbox = createInbox()
  const timeouts = openTimeouts(clock)
  const underWay = openInFlight<string, (outcome: Outcome) => void>(hash32)
  let count = 0
  let toSend: Message[] = []

  /** What one turn of the event loop asks for goes out as one write: writes cost more than what they carry. */
  function sendWithTurn(message: Message): void {
    if (toSend.length === 0) {
      setImmediate(() => {
        const all = toSend
        toSend = []
        for (const one of all) send(one)
      })
    }
    toSend.push(message)
  }

  function settle(reply: string, outcome: Outcome): void {
    underWay.take(reply)?.(outcome)
  }

  function send({ subject, data, reply, headers }: Message): void {
    if (underWay.get(reply) === undefined) return
    try {
      connection.publish(subject, data, headers === undefined ? { reply } : { reply, headers })
    } catch (unsent) {
      settle(reply, { unsent })
    }
  }

  connection.subscribe(`${inbox}.*`, {
    callback: (error, answer) => {
      if (error === null) settle(answer.subject, { answer })
    },
  })

  onChange(() => {
    for (const end of underWay.takeAll()) end({})
  })

  async function answerTo(subject: string, settled: Promise<Outcome>): Promise<JetStreamReply> {
    const { answer, unsent } = await settled
    if (answer !== undefined) return replyOf(subject, answer)
    if (unsent !== undefined) throw new Unavailable(`${subject} cannot be asked`, { cause: unsent })
    throw new Unavailable(downSince === null ? `no answer from ${subject}` : 'the connection to NATS was lost')
  }

  function waitFor(reply: string, timeoutMs: number): Promise<Outcome> {
    const stop = timeouts.add(timeoutMs, () => settle(reply, {}))
    return new Promise((resolve) => {
      underWay.set(reply, (outcome) => {
        stop()
        resolve(outcome)
      })
    })
  }

  // Not async, and without a closure: whatever waits for the answer would keep the data, which is large, from the collector (D227).
  function request(
    subject: string,
    data: Uint8Array | string,
    { timeoutMs, headers }: RequestOptions,
  ): Promise<JetStreamReply> {
    // Without a connection the library would keep a request until it has one, long after the caller gave up.
    if (downSince !== null) return Promise.reject(new Unavailable('there is no connection to NATS'))
    count += 1
    const reply = `${inbox}.${count}`
    const settled = waitFor(reply, timeoutMs)
    sendWithTurn({ subject, data, reply, headers })
    return answerTo(subject, settled)
  }

  return {
    connection,
    request,
    async call<T>(path: string, body?: unknown): Promise<T> {
      const text = body === undefined ? '' : JSON.stringify(body)
      const { data } = await request(`$JS.API.${path}`, text, { timeoutMs: ANSWER_MS_MAX })
      return parseAnswer<T>(data)
    },
    isUp: () => downSince === null,
    downSince: () => downSince,
    async waitUntilUp(ms) {
      const woken = new AbortController()
      const stop = onChange(() => woken.abort())
      if (downSince !== null) await clock.sleep(ms, woken.signal)
      stop()
    },
    onChange,
  }
}

const NO_RESPONDERS = 503

function replyOf(asked: string, { subject, headers, data }: Msg): JetStreamReply {
  if (headers?.code === NO_RESPONDERS) throw new NobodyThere(`nobody answers ${asked}`)
  return {
    subject,
    headers: new Map([...(headers ?? [])].map(([name, values]) => [name, values[0] ?? ''])),
    status: headers?.code ?? 0,
    data,
  }
}

/** The answer, unless it is an error. */
export function parseAnswer<T>(data: Uint8Array): T {
  let answer: ErrorBody
  try {
    answer = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.length).toString()) as ErrorBody
  } catch (cause) {
    throw new Unavailable('an answer of JetStream cannot be read', { cause })
  }
  const { error } = answer
  if (error) throw new JetStreamRefusal(error.err_code ?? error.code, error.description ?? 'no reason given')
  return answer as T
}

export const isRefusal = (error: unknown, ...codes: readonly number[]): boolean =>
  error instanceof JetStreamRefusal && codes.includes(error.code)

/** What a failed request means to the caller of the port. */
export function jetStreamFailureOf(error: unknown): unknown {
  if (!(error instanceof JetStreamRefusal)) return error
  if (WRONG_LAST_SEQUENCE.includes(error.code)) return new Conflict(error.message, { cause: error })
  if (NO_ROOM.includes(error.code)) return new Full(error.message, { cause: error })
  return new Unavailable(error.message, { cause: error })
}
