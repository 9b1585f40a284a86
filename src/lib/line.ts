// A line between two threads: each side serves functions by name, calls those of the other, and casts what needs no answer. Calls
// and answers that come together go over in one message.

import type { Transferable } from 'node:worker_threads'
import { Packr, RESET_BUFFER_MODE } from 'msgpackr'
import { Conflict, Full, Told, Unavailable, Unreadable } from './failures.ts'
import { openInFlight } from './in-flight.ts'

/** What a line needs of a MessagePort. */
export interface LinePort {
  /** `wakes`: as `Line.cast` has it. */
  postMessage(message: unknown, transfer: readonly Transferable[], wakes: boolean): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

export interface Line {
  /**
   * Arguments and result are what msgpack can hold. Fails with what the other side failed with: classes of failures.ts stay what
   * they are, others become Told where they were one and else an Error; and with Unavailable when the line ends.
   */
  call(name: string, ...args: readonly unknown[]): Promise<unknown>
  /** A call whose answer nobody waits for: what fails is told to the other side's `onError`. */
  tell(name: string, ...args: readonly unknown[]): void
  /** Sends the calls made until now: what their arguments hold may change from here on. */
  flush(): void
  /**
   * What structured cloning can hold; arrives in order with the other casts and behind the calls made before it. `wakes`, true by
   * default: whether a thread that sleeps for some milliseconds is to look at it before.
   */
  cast(name: string, message: unknown, transfer?: readonly Transferable[], wakes?: boolean): void
  /** Answers calls; one for each name. */
  serve(name: string, answer: (...args: never[]) => unknown): void
  /** Takes casts; one for each name. */
  hear(name: string, take: (message: never) => void): void
  /** Fails what is under way and what comes later. */
  end(): void
}

interface Call {
  /** 0: no answer is wanted. */
  readonly id: number
  readonly name: string
  readonly args: readonly unknown[]
}
interface Answer {
  readonly id: number
  readonly result?: unknown
  readonly failure?: Failure
}
interface Failure {
  readonly name: string
  readonly message: string
}
type Message =
  | { readonly kind: 'calls'; readonly bytes: Uint8Array }
  | { readonly kind: 'answers'; readonly bytes: Uint8Array }
  | { readonly kind: 'cast'; readonly name: string; readonly message: unknown }

type Fail<T> = (one: T, failure: Failure) => void

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

const FAILURES = { Conflict, Told, Unavailable, Unreadable, RangeError, TypeError }

function failureOf({ name, message }: Failure): Error {
  if (name === 'Full') return new Full(message)
  const Class = FAILURES[name as keyof typeof FAILURES] ?? Error
  return new Class(message)
}

function nameOf(error: unknown): string {
  if (error instanceof Full) return 'Full'
  if (error instanceof Told && !(error instanceof Unreadable)) return 'Told'
  return error instanceof Error ? error.name : ''
}
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * `onError` is told what taking a cast threw, and what could not be read. `later` says when calls and answers are sent: at the end of
 * what runs now, or, as `setImmediate`, of all that runs in this turn of the loop.
 */
export function openLine(
  port: LinePort,
  onError: (error: unknown) => void,
  later: (send: () => void) => void = queueMicrotask,
): Line {
  const packr = new Packr({ useRecords: false })
  const served = new Map<string, (...args: never[]) => unknown>()
  const heard = new Map<string, (message: never) => void>()
  const waiting = openInFlight<number, Waiting>((id) => id)
  let calls: Call[] = []
  let answers: Answer[] = []
  let ids = 0
  let ended = false

  /** In memory of its own, which goes over without a copy. */
  function send(kind: 'calls' | 'answers', what: unknown): void {
    // The place it was packed in is free again: a buffer worn out by passing messages is garbage that outlives young generations.
    const bytes = new Uint8Array(packr.pack(what, RESET_BUFFER_MODE))
    port.postMessage({ kind, bytes } satisfies Message, [bytes.buffer], true)
  }

  /** What cannot be packed fails by itself and holds up nothing that shares its message. */
  function sendEach<T extends Call | Answer>(kind: 'calls' | 'answers', all: readonly T[], fail: Fail<T>): void {
    try {
      if (all.length > 0) send(kind, all)
    } catch {
      for (const one of all) {
        try {
          send(kind, [one])
        } catch (error) {
          fail(one, { name: nameOf(error), message: messageOf(error) })
        }
      }
    }
  }

  function flush(): void {
    if (ended) return
    const [asked, answered] = [calls, answers]
    calls = []
    answers = []
    sendEach('calls', asked, ({ id }, failure) => settle({ id, failure }))
    sendEach('answers', answered, ({ id }, failure) => send('answers', [{ id, failure }]))
  }

  function add(list: unknown[], item: unknown): void {
    if (calls.length + answers.length === 0) later(flush)
    list.push(item)
  }

  async function perform({ id, name, args }: Call): Promise<void> {
    try {
      const answer = served.get(name)
      if (answer === undefined) throw new Error(`nobody serves ${name}`)
      const result = await answer(...(args as never[]))
      if (id > 0) add(answers, { id, result })
    } catch (error) {
      if (id === 0) onError(error)
      else add(answers, { id, failure: { name: nameOf(error), message: messageOf(error) } })
    }
  }

  function settle({ id, result, failure }: Answer): void {
    const one = waiting.take(id)
    if (failure === undefined) one?.resolve(result)
    else one?.reject(failureOf(failure))
  }

  function take(message: Message): void {
    if (message.kind === 'calls') for (const call of packr.unpack(message.bytes) as Call[]) void perform(call)
    else if (message.kind === 'answers') for (const answer of packr.unpack(message.bytes) as Answer[]) settle(answer)
    else heard.get(message.name)?.(message.message as never)
  }

  port.on('message', (message) => {
    if (ended) return
    try {
      take(message as Message)
    } catch (error) {
      onError(error)
    }
  })

  return {
    call(name, ...args) {
      if (ended) return Promise.reject(new Unavailable('the other thread is gone'))
      return new Promise((resolve, reject) => {
        ids += 1
        waiting.set(ids, { resolve, reject })
        add(calls, { id: ids, name, args })
      })
    },
    tell(name, ...args) {
      if (!ended) add(calls, { id: 0, name, args })
    },
    flush,
    cast(name, message, transfer = [], wakes = true) {
      if (ended) return
      flush()
      port.postMessage({ kind: 'cast', name, message } satisfies Message, transfer, wakes)
    },
    serve: (name, answer) => void served.set(name, answer),
    hear: (name, take) => void heard.set(name, take),
    end() {
      ended = true
      for (const { reject } of waiting.takeAll()) reject(new Unavailable('the other thread is gone'))
    },
  }
}
