// Appends: one message each, acknowledged by the stream. Without a fence a message is sent again under the same id, which the
// stream takes once; with a fence nothing is repeated, since only the caller can tell what an unknown outcome was.
import { headers } from 'nats'
import type { Clock } from '../lib/clock.ts'
import { Conflict, Full, Unavailable } from '../lib/failures.ts'
import { type Api, isRefusal, jetStreamFailureOf, NobodyThere, parseAnswer } from './jetstream-api.ts'
import { seqOfMessage } from './jetstream-layout.ts'
import { APPEND_RECORDS_MAX, type Seq } from './log.ts'

/** Where messages of a partition go. */
export interface Target {
  readonly subject: string
  readonly base: number
}

export interface WriterConfig {
  readonly api: Api
  readonly clock: Clock
  /** Begins the ids of messages: unlike that of any other process. */
  readonly instance: string
  /** Message bytes that may wait for their acknowledgement before appends fail with Full. */
  readonly queuedBytesMax: number
}

export interface Destination {
  readonly name: string
  target(): Target
  /** Looks at the stream again, since nobody listens where its messages go. Fails with Unavailable. */
  find(): Promise<void>
}

export interface Writer {
  /** Of a message to be written: it is stored along with it. */
  nextId(): string
  /** Whether an id is of this writer. */
  isOwn(id: string): boolean
  /** Resolves with the seq of the last record. The message must not change any more. */
  write(to: Destination, id: string, message: Uint8Array, expectLast: Seq | undefined): Promise<Seq>
  /** Resolves when nothing is under way. */
  settled(): Promise<void>
}

/** The header with which a stream tells a repeated message, and a reader its own. */
export const MESSAGE_ID = 'Nats-Msg-Id'

interface PubAck {
  readonly seq: number
}

/** An outcome that stays unknown for longer is one for the caller. */
const ACK_MS_MAX = 2_000
/** Of an append without a fence, all attempts together, and of an outage. */
const APPEND_MS_MAX = 4_000
const RETRY_MS = 50

export function openWriter({ api, clock, instance, queuedBytesMax }: WriterConfig): Writer {
  const prefix = `${instance}.`
  const underWay = new Set<Promise<unknown>>()
  let queuedBytes = 0
  let count = 0

  /** Fails with Refusal, Unavailable or NobodyThere. */
  async function publish(
    target: Target,
    id: string,
    message: Uint8Array,
    expected: number | null,
    timeoutMs: number,
  ): Promise<Seq> {
    const about = headers()
    about.set(MESSAGE_ID, id)
    // Also when it is 0, which the library's own option would leave out.
    if (expected !== null) about.set('Nats-Expected-Last-Sequence', String(expected))
    const { data } = await api.request(target.subject, message, { timeoutMs, headers: about })
    return seqOfMessage(target.base, parseAnswer<PubAck>(data).seq)
  }

  async function writeFenced(to: Destination, id: string, message: Uint8Array, expectLast: Seq): Promise<Seq> {
    const target = to.target()
    const expected = expectLast / APPEND_RECORDS_MAX - target.base
    // Not the end of a message, or from before the stream was made anew: bases only rise.
    if (!Number.isInteger(expected) || expected < 0) throw new Conflict(`${to.name} cannot end at ${expectLast}`)
    try {
      return await publish(target, id, message, expected, ACK_MS_MAX)
    } catch (error) {
      if (error instanceof NobodyThere) await to.find()
      throw jetStreamFailureOf(error)
    }
  }

  async function writeSurely(to: Destination, id: string, message: Uint8Array): Promise<Seq> {
    const giveUpAt = (api.downSince() ?? clock.monotonic()) + APPEND_MS_MAX
    for (;;) {
      try {
        const leftMs = giveUpAt - clock.monotonic()
        return await publish(to.target(), id, message, null, Math.max(RETRY_MS, Math.min(ACK_MS_MAX, leftMs)))
      } catch (error) {
        const failure = jetStreamFailureOf(error)
        if (!(failure instanceof Unavailable) || failure instanceof Full) throw failure
        if (clock.monotonic() + RETRY_MS >= giveUpAt) throw failure
        await api.waitUntilUp(giveUpAt - clock.monotonic())
        if (error instanceof NobodyThere) await to.find().catch(() => undefined)
        if (error instanceof NobodyThere || isRefusal(error)) await clock.sleep(RETRY_MS)
      }
    }
  }

  return {
    nextId() {
      count += 1
      return `${prefix}${count}`
    },
    isOwn: (id) => id.startsWith(prefix),
    async write(to, id, message, expectLast) {
      if (queuedBytes + message.length > queuedBytesMax) {
        throw new Full(`${queuedBytes} bytes of the log wait for their acknowledgement`)
      }
      queuedBytes += message.length
      const writing = expectLast === undefined ? writeSurely(to, id, message) : writeFenced(to, id, message, expectLast)
      underWay.add(writing)
      try {
        return await writing
      } finally {
        underWay.delete(writing)
        queuedBytes -= message.length
      }
    },
    async settled() {
      await Promise.allSettled(underWay)
    },
  }
}
