// The bus as a thread sees it that has no connection of its own: what it publishes and listens to goes over a line to the thread
// that has one.

import type { Line } from '../lib/line.ts'
import type { Bus, Unsubscribe } from './bus.ts'

interface Message {
  readonly subject: string
  readonly message: unknown
}

const CASTS = {
  publish: 'bus.publish',
  subscribe: 'bus.subscribe',
  unsubscribe: 'bus.unsubscribe',
  deliver: 'bus.deliver',
} as const

/** `onError` is told what a receiver threw. */
export function openRemoteBus(line: Line, onError: (error: unknown) => void): Bus {
  const subjects = new Map<string, Set<(message: unknown) => void>>()

  line.hear(CASTS.deliver, ({ subject, message }: Message) => {
    for (const receive of subjects.get(subject) ?? []) {
      try {
        receive(message)
      } catch (error) {
        onError(error)
      }
    }
  })

  return {
    publish: (subject, message) => line.cast(CASTS.publish, { subject, message } satisfies Message),
    subscribe(subject, receive) {
      const receivers = subjects.get(subject) ?? new Set()
      if (receivers.size === 0) line.cast(CASTS.subscribe, subject)
      subjects.set(subject, receivers.add(receive))
      return () => {
        receivers.delete(receive)
        if (receivers.size === 0 && subjects.delete(subject)) line.cast(CASTS.unsubscribe, subject)
      }
    },
    isLossy: false,
    async close() {
      for (const subject of subjects.keys()) line.cast(CASTS.unsubscribe, subject)
      subjects.clear()
    },
  }
}

/** Returns what ends all subscriptions of the thread at the other end. */
export function serveBus(line: Line, bus: Pick<Bus, 'publish' | 'subscribe'>): () => void {
  const subscribed = new Map<string, Unsubscribe>()
  line.hear(CASTS.publish, ({ subject, message }: Message) => bus.publish(subject, message))
  line.hear(CASTS.subscribe, (subject: string) => {
    const deliver = (message: unknown) => line.cast(CASTS.deliver, { subject, message } satisfies Message)
    if (!subscribed.has(subject)) subscribed.set(subject, bus.subscribe(subject, deliver))
  })
  line.hear(CASTS.unsubscribe, (subject: string) => {
    subscribed.get(subject)?.()
    subscribed.delete(subject)
  })
  return () => {
    for (const unsubscribe of subscribed.values()) unsubscribe()
    subscribed.clear()
  }
}
