// The bus between processes, on core NATS: at most once, nothing stored and nothing buffered while there is no connection.
import type { NatsConnection, QueuedIterator, Status, Subscription } from 'nats'
import { pack, unpack } from '../lib/codec.ts'
import type { Bus } from './bus.ts'

export interface NatsBusConfig {
  /** Opened and closed by the caller; must echo, which is the default. */
  readonly connection: NatsConnection
  /** Subjects are `<prefix>.bus.<subject>`. */
  readonly prefix: string
  /** Told what a receiver threw, which messages could not be read or sent, and once per outage how many were lost. */
  readonly onError: (error: unknown) => void
  /** Bytes on their way to a server that confirms none; beyond them messages are lost. */
  readonly unconfirmedBytesMax?: number
}

interface Receiver {
  readonly receive: (message: unknown) => void
  active: boolean
}

interface Topic {
  readonly subscription: Subscription
  /** Replaced, never changed: a delivery under way keeps the receivers it began with. */
  receivers: readonly Receiver[]
}

const UNCONFIRMED_BYTES_MAX = 16_777_216
/** A confirmation is asked for after so many bytes. */
const CONFIRM_BYTES = 262_144
const CLOSE_MS_MAX = 1_000
/** A server cuts the connection of whoever sends a longer line. */
const SUBJECT_CHARS_MAX = 1_000

/** Everything NATS has a use for, and dots that would leave a part empty, become `=` and two hex digits. */
function natsSubject(prefix: string, subject: string): string {
  const escaped = subject.replace(/[^\w.-]|^\.|\.$|\.(?=\.)/gu, (odd) =>
    Buffer.from(odd).reduce((text, byte) => `${text}=${byte.toString(16).padStart(2, '0')}`, ''),
  )
  const whole = `${prefix}.bus.${escaped === '' ? '=' : escaped}`
  if (whole.length > SUBJECT_CHARS_MAX) throw new RangeError('the subject of the bus is too long')
  return whole
}

/** `subscribe` throws a RangeError on a subject of more than some hundred characters. */
export function openNatsBus(config: NatsBusConfig): Bus {
  const { connection, prefix, onError, unconfirmedBytesMax = UNCONFIRMED_BYTES_MAX } = config
  const topics = new Map<string, Topic>()
  let connected = true
  let closed = false
  let lost = 0
  let unconfirmedBytes = 0
  let confirming = false

  function tellLost(why: string): void {
    if (lost === 0) return
    const count = lost
    lost = 0
    onError(new Error(`${count} messages of the bus were lost: ${why}`))
  }

  // Without this a link that died silently would let the client buffer messages until it notices.
  async function confirm(): Promise<void> {
    confirming = true
    while (unconfirmedBytes >= CONFIRM_BYTES && !connection.isClosed()) {
      const bytes = unconfirmedBytes
      try {
        await connection.flush()
        unconfirmedBytes -= bytes
      } catch {
        unconfirmedBytes = 0
      }
      if (connected) tellLost('NATS took no more')
    }
    confirming = false
  }

  function notice({ type, permissionContext }: Status): void {
    if (type === 'disconnect') connected = false
    else if (type === 'reconnect') {
      connected = true
      tellLost('NATS could not be reached')
    } else if (type === 'error' && permissionContext?.subject.startsWith(`${prefix}.bus.`)) {
      onError(new Error(`NATS permits no ${permissionContext.operation} of ${permissionContext.subject}`))
    }
  }

  const statuses = connection.status() as QueuedIterator<Status>
  const watching = (async () => {
    for await (const status of statuses) notice(status)
  })()
  void connection.closed().then(() => {
    connected = false
    if (!closed) onError(new Error('the connection to NATS was closed: messages of the bus are lost from now on'))
  })

  function deliver(subject: string, topic: Pick<Topic, 'receivers'>, bytes: Uint8Array): void {
    const envelope = unpack(bytes)
    if (!Array.isArray(envelope) || envelope.length !== 1) {
      onError(new Error(`a message of the bus on ${subject} cannot be read`))
      return
    }
    for (const receiver of topic.receivers) {
      if (!receiver.active) continue
      try {
        receiver.receive(envelope[0])
      } catch (error) {
        onError(error)
      }
    }
  }

  function openTopic(subject: string): Topic {
    const subscription = connection.subscribe(natsSubject(prefix, subject), {
      // A refused subscription is told by the status.
      callback: (error, message) => {
        if (error === null) deliver(subject, topic, message.data)
      },
    })
    const topic: Topic = { subscription, receivers: [] }
    topics.set(subject, topic)
    // Sends it in this turn of the event loop, ahead of whatever the caller does next.
    if (connected) connection.flush().catch(() => undefined)
    return topic
  }

  return {
    publish(subject, message) {
      if (closed) return
      if (!connected || unconfirmedBytes > unconfirmedBytesMax) {
        lost += 1
        return
      }
      try {
        // The envelope tells a message that is null from bytes that are none.
        const bytes = pack([message])
        connection.publish(natsSubject(prefix, subject), bytes)
        unconfirmedBytes += bytes.length
        if (!confirming && unconfirmedBytes >= CONFIRM_BYTES) void confirm()
      } catch (error) {
        onError(error)
      }
    },

    subscribe(subject, receive) {
      const receiver: Receiver = { receive, active: !closed && !connection.isClosed() }
      if (!receiver.active) return () => undefined
      const topic = topics.get(subject) ?? openTopic(subject)
      topic.receivers = [...topic.receivers, receiver]
      return () => {
        if (!receiver.active) return
        receiver.active = false
        topic.receivers = topic.receivers.filter((other) => other !== receiver)
        if (topic.receivers.length > 0) return
        topics.delete(subject)
        topic.subscription.unsubscribe()
      }
    },

    isLossy: true,

    async close() {
      if (closed) return
      closed = true
      for (const { subscription, receivers } of topics.values()) {
        for (const receiver of receivers) receiver.active = false
        subscription.unsubscribe()
      }
      topics.clear()
      statuses.stop()
      await watching
      if (!connection.isClosed() && connected) await flushed(connection)
      tellLost('NATS could not be reached')
    },
  }
}

/** The last hints of a process say that it leaves: they are worth a moment. */
async function flushed(connection: NatsConnection): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, CLOSE_MS_MAX)
  })
  await Promise.race([connection.flush().catch(() => undefined), late])
  clearTimeout(timer)
}
