// A bus between processes with a short way home: what a process publishes to a subject that nobody but itself listens to
// never leaves it.
import type { Bus } from './bus.ts'

export interface LoopbackBusConfig {
  /** Between processes. Closed by the caller. */
  readonly far: Bus
  /** Inside this process; closed with the bus that is returned. */
  readonly near: Bus
  /** Only this process subscribes to it, whoever publishes. */
  readonly own: string
}

/** Messages to the own subject are handed over by reference, so neither side may change one after `publish`. */
export function openLoopbackBus({ far, near, own }: LoopbackBusConfig): Bus {
  return {
    publish: (subject, message) => (subject === own ? near : far).publish(subject, message),
    subscribe(subject, receive) {
      const fromFar = far.subscribe(subject, receive)
      if (subject !== own) return fromFar
      const fromNear = near.subscribe(subject, receive)
      return () => {
        fromFar()
        fromNear()
      }
    },
    isLossy: far.isLossy,
    close: () => near.close(),
  }
}
