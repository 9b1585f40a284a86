// Reads one stream from a position on, into a bounded memory: a consumer on the server that remembers nothing but where it is, and
// one request at a time for the next messages. Whatever happens to the consumer, the stream, the server or the connection, the
// feed goes on behind the last message it got.
import { createInbox, type Msg } from 'nats'
import type { Clock } from '../lib/clock.ts'
import { type Api, jetStreamFailureOf } from './jetstream-api.ts'
import { cut, decodeMessage, messageAfter } from './jetstream-layout.ts'
import type { StreamLook } from './jetstream-streams.ts'
import { MESSAGE_ID } from './jetstream-writer.ts'
import type { LogRecord, ReadLimits, Seq } from './log.ts'

export interface FeedConfig {
  readonly api: Api
  readonly clock: Clock
  /** Asks for the stream as it is now. */
  readonly look: () => Promise<StreamLook>
  readonly after: Seq
  /** A message came, with the id it was stored with. */
  readonly onMessage: (id: string, records: readonly LogRecord[]) => void
  /** More records are there. */
  readonly onRecords: () => void
  /** The consumer was lost, or stood still, and another one was made. */
  readonly onRebuilt: (why: string) => void
  /** Message bytes that are kept; one request may exceed it by what it asked for. */
  readonly bytesMax: number
}

export interface Feed {
  /** Whether records above `after` are here, or will be as soon as they are durable. */
  covers(after: Seq): boolean
  /** What lies up to here was forgotten. */
  from(): Seq
  /** Whether any record above `after` is here. */
  has(after: Seq): boolean
  /** Those above `after` that are here, within the limits; what lies before is not needed any more. */
  take(after: Seq, limits: ReadLimits): LogRecord[]
  /** Whether the server is being asked: what is durable arrives at once. */
  isLive(): boolean
  /** By the monotonic clock. */
  usedAt(): number
  close(): void
}

interface Message {
  readonly records: readonly LogRecord[]
  readonly last: Seq
  readonly bytes: number
}

interface Session {
  readonly stream: StreamLook
  readonly consumer: string
  readonly inbox: string
  /** Messages the consumer has delivered. */
  delivered: number
  /** Of the request that is under way. */
  left: number
  heardAt: number
  settle: (outcome: Outcome) => void
}

type Outcome = 'more' | 'expired' | 'broken'

/** How long the server keeps a request for messages that are not there yet. */
const PULL_MS = 2_000
const SILENCE_MS_MAX = 1_200
const RETRY_MS = 100
const RETRY_MS_MAX = 1_000
/** After so long without a message the stream itself is asked whether there is none. */
const DOUBT_MS = 5_000
/** Servers remove a consumer that asks for nothing for so long. */
const CONSUMER_IDLE_MS = 30_000
const BATCH_BYTES = 2 * 1024 * 1024
const BATCH_MIN = 4
const BATCH_MAX = 256
const FIRST_BATCH = 8
/** What a record costs besides its bytes. */
const RECORD_OVERHEAD_BYTES = 128
/** A reader may know of a few messages before they arrive here. */
const AHEAD_SEQS_MAX = 16 * 1_024

export function openFeed(config: FeedConfig): Feed {
  const { api, clock, bytesMax } = config
  const closing = new AbortController()
  const messages: Message[] = []
  let bytes = 0
  /** Everything above `from` and up to `to` is here; readers have passed `taken`. */
  let from = config.after
  let to = config.after
  let taken = config.after
  let usedAt = clock.monotonic()
  let averageBytes = 0
  let session: Session | null = null
  let lostWhy: string | null = null
  let makeRoom = () => {}

  const hasRoom = () => bytes < bytesMax
  const isClosed = () => closing.signal.aborted

  /** Forgets what readers have passed, but only to make room: others may come behind them. */
  function evict(): void {
    if (hasRoom()) return
    let count = 0
    for (const message of messages) {
      if (bytes < bytesMax / 2 || message.last > taken) break
      bytes -= message.bytes
      from = message.last
      count += 1
    }
    messages.splice(0, count)
    if (hasRoom()) makeRoom()
  }

  function receive(of: Session, message: Msg): void {
    if (of !== session) return
    of.heardAt = clock.monotonic()
    const place = placeOf(message)
    if (place === null) {
      // The time of the request is over; any other status means that there is no consumer any more.
      of.settle(message.headers?.code === 408 ? 'expired' : 'broken')
      return
    }
    of.delivered += 1
    // A hole in what was delivered, or a stream that was made anew meanwhile.
    if (place.delivered !== of.delivered || message.subject !== of.stream.subject) {
      of.settle('broken')
      return
    }
    const records = decodeMessage(message.subject, place.stream, message.data)
    const last = records.at(-1)?.seq ?? 0
    averageBytes = averageBytes === 0 ? message.data.length : averageBytes * 0.8 + message.data.length * 0.2
    if (last > to) {
      config.onMessage(message.headers?.get(MESSAGE_ID) ?? '', records)
      const size = message.data.length + records.length * RECORD_OVERHEAD_BYTES
      messages.push({ records, last, bytes: size })
      bytes += size
      to = last
      evict()
      config.onRecords()
    }
    of.left -= 1
    if (of.left === 0) of.settle('more')
  }

  async function pull(of: Session): Promise<Outcome> {
    const batch = averageBytes === 0 ? FIRST_BATCH : Math.floor(BATCH_BYTES / averageBytes)
    of.left = Math.min(Math.max(batch, BATCH_MIN), BATCH_MAX)
    const startedAt = clock.monotonic()
    const done = new AbortController()
    let outcome: Outcome = 'broken'
    const settled = new Promise<void>((resolve) => {
      of.settle = (how) => {
        outcome = how
        done.abort()
        resolve()
      }
    })
    const stopWatching = api.onChange(() => of.settle('broken'))
    const request = JSON.stringify({ batch: of.left, expires: PULL_MS * 1_000_000 })
    api.connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${of.stream.name}.${of.consumer}`, request, { reply: of.inbox })
    const watch = async () => {
      while (!done.signal.aborted) {
        const silentAt = Math.max(startedAt + PULL_MS, of.heardAt) + SILENCE_MS_MAX
        const ms = silentAt - clock.monotonic()
        if (ms <= 0) return of.settle('broken')
        await clock.sleep(ms, done.signal)
      }
    }
    void watch()
    await settled
    stopWatching()
    return outcome
  }

  /** Makes a consumer and reads from it until it is lost; says why, or null when the feed was closed. */
  async function run(): Promise<string | null> {
    const stream = await config.look()
    const { name: consumer } = await api.call<{ name: string }>(`CONSUMER.CREATE.${stream.name}`, {
      stream_name: stream.name,
      config: {
        deliver_policy: 'by_start_sequence',
        opt_start_seq: messageAfter(stream.base, to),
        ack_policy: 'none',
        replay_policy: 'instant',
        inactive_threshold: CONSUMER_IDLE_MS * 1_000_000,
        mem_storage: true,
        num_replicas: 1,
      },
    })
    const inbox = createInbox()
    const opened: Session = { stream, consumer, inbox, delivered: 0, left: 0, heardAt: 0, settle: () => {} }
    const subscription = api.connection.subscribe(inbox, { callback: (_, message) => receive(opened, message) })
    session = opened
    if (lostWhy !== null) config.onRebuilt(lostWhy)
    lostWhy = null
    try {
      return await readFrom(opened)
    } finally {
      session = null
      subscription.unsubscribe()
      void api.call(`CONSUMER.DELETE.${stream.name}.${consumer}`).catch(() => undefined)
    }
  }

  async function readFrom(of: Session): Promise<string | null> {
    let newsAt = clock.monotonic()
    let isOwed = false
    while (!isClosed()) {
      if (!hasRoom()) {
        const fullAt = clock.monotonic()
        await new Promise<void>((resolve) => {
          makeRoom = resolve
        })
        newsAt = clock.monotonic()
        if (newsAt - fullAt > CONSUMER_IDLE_MS / 2) return 'nobody read for long'
        continue
      }
      const had = of.delivered
      const outcome = await pull(of)
      if (isClosed()) break
      if (outcome === 'broken') return 'the consumer was lost'
      if (of.delivered !== had) {
        newsAt = clock.monotonic()
        isOwed = false
        continue
      }
      if (isOwed) return 'the consumer stood still'
      if (clock.monotonic() - newsAt < DOUBT_MS) continue
      newsAt = clock.monotonic()
      const now = await config.look()
      if (now.base !== of.stream.base) return 'the stream was made anew'
      isOwed = now.messages > 0 && Math.max(messageAfter(now.base, to), now.firstSeq) <= now.lastSeq
    }
    return null
  }

  async function go(): Promise<void> {
    let pauseMs = RETRY_MS
    while (!isClosed()) {
      const startedAt = clock.monotonic()
      const why = await run().catch((error: unknown) => String(jetStreamFailureOf(error)))
      if (isClosed()) return
      lostWhy = why
      pauseMs = clock.monotonic() - startedAt > RETRY_MS_MAX ? RETRY_MS : Math.min(pauseMs * 2, RETRY_MS_MAX)
      await clock.sleep(pauseMs, closing.signal)
      await api.waitUntilUp(RETRY_MS_MAX)
    }
  }
  void go()

  return {
    covers: (after) => after >= from && after <= to + AHEAD_SEQS_MAX,
    from: () => from,
    has: (after) => to > after,
    take(after, limits) {
      usedAt = clock.monotonic()
      taken = Math.max(taken, after)
      evict()
      return cut(messages, firstAfter(messages, after), after, limits)
    },
    isLive: () => session !== null && hasRoom(),
    usedAt: () => usedAt,
    close() {
      closing.abort()
      makeRoom()
      session?.settle('broken')
      messages.length = 0
    },
  }
}

/** Index of the first message with a record above `after`. */
function firstAfter(messages: readonly Message[], after: Seq): number {
  let low = 0
  let high = messages.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((messages[middle] as Message).last > after) high = middle
    else low = middle + 1
  }
  return low
}

/** Where a delivered message stands in the stream and in what the consumer delivered; null for a status. */
function placeOf({ reply = '' }: Msg): { readonly stream: number; readonly delivered: number } | null {
  const tokens = reply.split('.')
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK') return null
  // Newer servers put a domain and an account in front of the stream's name.
  const at = tokens.length > 9 ? 7 : 5
  return { stream: Number(tokens[at]), delivered: Number(tokens[at + 1]) }
}
