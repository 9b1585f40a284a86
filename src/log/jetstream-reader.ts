// Reads of one partition: right behind this process's own appends from memory, else from feeds that follow each reader's
// position. An empty answer is given only when the server said so, is being asked, or has just acknowledged the newest record.
import type { Clock } from '../lib/clock.ts'
import { type Api, isRefusal, jetStreamFailureOf, NO_MESSAGE } from './jetstream-api.ts'
import { type Feed, openFeed } from './jetstream-feed.ts'
import { cut, decodeMessage, messageAfter } from './jetstream-layout.ts'
import type { StreamLook } from './jetstream-streams.ts'
import { APPEND_RECORDS_MAX, type LogRecord, type ReadLimits, type Seq } from './log.ts'
import { openOrigins } from './origins.ts'
import { openReaders } from './readers.ts'
import { openTail, type Tail } from './tail.ts'

export interface ReaderConfig {
  readonly api: Api
  readonly clock: Clock
  readonly stream: string
  readonly look: () => Promise<StreamLook>
  readonly onRebuilt: (why: string) => void
  /** Whether this process has written the message of this id. */
  readonly isOwn: (id: string) => boolean
}

export interface Reader {
  /** As the port says; records at or below `floor()` are hidden. */
  read(after: Seq, limits: ReadLimits, signal?: AbortSignal): Promise<readonly LogRecord[]>
  at(seq: Seq): Promise<LogRecord | null>
  /** What the records of a message are made of that is about to be written. */
  appending(id: string, attached: readonly unknown[] | undefined): void
  /** What this process has appended, in the order of acknowledgement. */
  appended(id: string, last: Seq, records: readonly Uint8Array[]): void
  /** A message of which nobody knows whether it was written. */
  forget(id: string): void
  floor(): Seq
  raiseFloor(to: Seq): void
  /** Stops what nobody has used for a while. */
  sweep(): void
  close(): void
}

interface StoredMessage {
  readonly message: { readonly subject: string; readonly seq: number; readonly data?: string }
}

const TAIL_BYTES_MAX = 8 * 1024 * 1024
const FEED_BYTES_MAX = 4 * 1024 * 1024
const FEEDS_MAX = 8
const IDLE_MS = 30_000
/** Who appends so often needs no feed to learn of it. What others append meanwhile is a hole before the next append. */
const APPEND_PAUSE_MS = { alone: 500, amongOthers: 50 }
/** Nobody else seems to append when nobody has for so long. */
const ALONE_AFTER_MS = 10_000
const GET_MS_MAX = 2_000

export function openReader(config: ReaderConfig): Reader {
  const { api, clock, stream } = config
  const readers = openReaders(clock)
  const origins = openOrigins()
  let feeds: Feed[] = []
  let tail: Tail | null = null
  let tailLast: Seq = 0
  let appendedAt = Number.NEGATIVE_INFINITY
  let readAt = Number.NEGATIVE_INFINITY
  /** When somebody else was last known to append. */
  let othersAt = clock.monotonic()
  let floor: Seq = 0
  let closed = false

  const wake = () => readers.wake(false)

  const takeTail = (after: Seq, limits: ReadLimits): LogRecord[] =>
    tail?.covers(after) ? tail.take(after, limits) : []

  /** The one that begins nearest behind its reader, so that a slower one keeps its own. */
  const findFeed = (after: Seq): Feed | undefined =>
    feeds.reduce<Feed | undefined>(
      (best, feed) => (feed.covers(after) && feed.from() >= (best?.from() ?? 0) ? feed : best),
      undefined,
    )

  function followFrom(after: Seq): void {
    if (findFeed(after)) return
    if (feeds.length >= FEEDS_MAX) {
      const oldest = feeds.reduce((a, b) => (a.usedAt() <= b.usedAt() ? a : b))
      oldest.close()
      feeds = feeds.filter((feed) => feed !== oldest)
    }
    const { look, onRebuilt } = config
    const onMessage = (id: string, records: readonly LogRecord[]) => {
      if (!config.isOwn(id)) othersAt = clock.monotonic()
      origins.stored(id, records.at(-1)?.seq ?? 0)
    }
    const feed = openFeed({
      api,
      clock,
      look,
      after,
      onMessage,
      onRecords: wake,
      onRebuilt,
      bytesMax: FEED_BYTES_MAX,
    })
    feeds.push(feed)
    // Readers of a feed that had to go look for another one.
    wake()
  }

  /** Asks the stream's leader for the first message that holds a record above `after`. */
  async function ask(after: Seq): Promise<LogRecord[]> {
    const { base, subject, messages, firstSeq, lastSeq } = await config.look()
    const seq = Math.max(messageAfter(base, after), firstSeq)
    return messages === 0 || seq > lastSeq ? [] : getMessage({ seq, next_by_subj: subject })
  }

  async function getMessage(query: object): Promise<LogRecord[]> {
    try {
      const { message } = await api.call<StoredMessage>(`STREAM.MSG.GET.${stream}`, query)
      return decodeMessage(message.subject, message.seq, Buffer.from(message.data ?? '', 'base64'))
    } catch (error) {
      if (isRefusal(error, NO_MESSAGE)) return []
      throw jetStreamFailureOf(error)
    }
  }

  /** From any server that holds the stream: what it does not have may still be elsewhere. */
  async function getDirect(seq: number): Promise<LogRecord[]> {
    const query = JSON.stringify({ seq })
    const reply = await api.request(`$JS.API.DIRECT.GET.${stream}`, query, { timeoutMs: GET_MS_MAX })
    if (reply.status !== 0) return []
    const subject = reply.headers.get('Nats-Subject')
    return subject === undefined ? [] : decodeMessage(subject, seq, reply.data)
  }

  return {
    async read(after, limits, signal) {
      const deadline = clock.monotonic() + limits.waitMsMax
      while (!signal?.aborted && !closed) {
        const now = clock.monotonic()
        const from = Math.max(after, floor)
        // Who asks once follows nothing.
        if (limits.waitMsMax > 0) {
          readAt = now
          // What its reader is past is let go at once: it dies young, where memory that waits for its turn in a full tail is promoted
          // and has the whole heap marked again and again. A slower reader has a feed.
          tail?.skip(from)
        }
        const fromTail = takeTail(from, limits)
        if (fromTail.length > 0) return origins.attach(fromTail)
        const feed = findFeed(from)
        const isAlone = now - othersAt > ALONE_AFTER_MS
        const pauseMs = isAlone ? APPEND_PAUSE_MS.alone : APPEND_PAUSE_MS.amongOthers
        const quietAt = tail?.covers(from) ? appendedAt + pauseMs : now
        // A feed nobody takes from fills up and rests: while our own appends are all there is, the server need not send them back.
        const fed = feed && (now >= quietAt || (feed.has(from) && !isAlone)) ? feed.take(from, limits) : []
        if (fed.length > 0) return origins.attach(fed)
        if (now >= deadline) {
          if (limits.waitMsMax > 0 && (feed?.isLive() || now < quietAt)) return []
          const found = cut([{ records: await ask(from) }], 0, Math.max(from, floor), limits)
          const last = found.at(-1)
          // Somebody who asks once while this process appends wants what it is about to be told.
          if (last !== undefined && !closed && now >= appendedAt + pauseMs) followFrom(last.seq)
          return found
        }
        if (now >= quietAt) followFrom(from)
        const until = now < quietAt ? quietAt : now + IDLE_MS / 3
        await readers.wait({}, Math.min(until, deadline) - now, signal)
      }
      return []
    },

    async at(seq) {
      if (!Number.isSafeInteger(seq) || seq <= floor || seq < 1) return null
      const pick = (records: readonly LogRecord[]) => records.find((record) => record.seq === seq) ?? null
      const one = pick(takeTail(seq - 1, { recordsMax: 1, bytesMax: 1, waitMsMax: 0 }))
      if (one) return one
      const { base, firstSeq, lastSeq } = await config.look()
      const place = Math.ceil(seq / APPEND_RECORDS_MAX) - base
      if (place < firstSeq || place > lastSeq) return null
      return pick(await getDirect(place)) ?? pick(await getMessage({ seq: place }))
    },

    appending(id, attached) {
      if (attached !== undefined && clock.monotonic() - readAt <= IDLE_MS) origins.keep(id, attached)
    },

    forget: origins.forget,

    appended(id, last, records) {
      origins.stored(id, last)
      const now = clock.monotonic()
      appendedAt = now
      if (now - readAt > IDLE_MS) {
        tail = null
        return
      }
      if (last <= tailLast) return
      const before = last - APPEND_RECORDS_MAX
      if (tail === null || tailLast !== before) {
        if (tail !== null) othersAt = now
        tail = openTail(before, TAIL_BYTES_MAX)
      }
      for (const [index, bytes] of records.entries()) tail.push({ seq: last - records.length + 1 + index, bytes })
      tailLast = last
      wake()
    },

    floor: () => floor,
    raiseFloor(to) {
      floor = Math.max(floor, to)
    },
    sweep() {
      const now = clock.monotonic()
      const isIdle = (usedAt: number) => now - usedAt > IDLE_MS
      for (const feed of feeds) if (isIdle(feed.usedAt())) feed.close()
      feeds = feeds.filter((feed) => !isIdle(feed.usedAt()))
      if (!isIdle(readAt)) return
      tail = null
      origins.clear()
    },
    close() {
      closed = true
      for (const feed of feeds) feed.close()
      feeds = []
      readers.wakeAll()
    },
  }
}
