// The bus inside one process: a queue that is emptied on a later turn of the event loop.
import type { Bus } from './bus.ts'

export interface LocalBusConfig {
  /** Told what a receiver threw, and when messages were lost. */
  readonly onError: (error: unknown) => void
  /** Messages that may wait for delivery; more are lost, which a bus of hints allows. */
  readonly queuedMax?: number
  /** Runs what delivers when the turn is over. Default: `setImmediate`. */
  readonly atEndOfTurn?: (deliver: () => void) => void
}

interface Receiver {
  readonly receive: (message: unknown) => void
  active: boolean
}

const QUEUED_MAX = 100_000

/** Messages are handed over by reference: neither side may change one after `publish`. */
export function openLocalBus(config: LocalBusConfig): Bus {
  const { onError, queuedMax = QUEUED_MAX, atEndOfTurn = setImmediate } = config
  // The arrays are replaced, never changed: a queued message keeps the receivers it was published to.
  const subjects = new Map<string, readonly Receiver[]>()
  let queue: { readonly receivers: readonly Receiver[]; readonly message: unknown }[] = []
  let lost = 0
  let closed = false

  const deliver = () => {
    const batch = queue
    queue = []
    if (lost > 0) {
      const count = lost
      lost = 0
      onError(new Error(`${count} messages were lost: receivers are too slow`))
    }
    for (const { receivers, message } of batch) {
      for (const receiver of receivers) {
        if (!receiver.active || closed) continue
        try {
          receiver.receive(message)
        } catch (error) {
          onError(error)
        }
      }
    }
  }

  return {
    publish(subject, message) {
      const receivers = subjects.get(subject)
      if (!receivers || closed) return
      if (queue.length >= queuedMax) {
        lost += 1
        return
      }
      if (queue.length === 0) atEndOfTurn(deliver)
      queue.push({ receivers, message })
    },

    subscribe(subject, receive) {
      const receiver: Receiver = { receive, active: !closed }
      if (!closed) subjects.set(subject, [...(subjects.get(subject) ?? []), receiver])
      return () => {
        receiver.active = false
        const others = (subjects.get(subject) ?? []).filter((other) => other !== receiver)
        if (others.length > 0) subjects.set(subject, others)
        else subjects.delete(subject)
      }
    },

    isLossy: false,

    async close() {
      closed = true
      queue = []
      subjects.clear()
    },
  }
}
