// Wakes a thread that sleeps outside of its event loop when another thread has sent it something. Sockets do not wake it.

import type { LinePort } from './line.ts'

/** How often each thread was sent something, by its index, in memory that all threads share. */
export type Bells = Int32Array

export interface Bell {
  /** How often it has rung. */
  rings(): number
  /** Blocks the thread until it has rung another number of times than `rings`, for `msMax` at most. */
  sleep(rings: number, msMax: number): void
}

/** The bell of this thread. */
export const openBell = (bells: Bells, index: number): Bell => ({
  rings: () => Atomics.load(bells, index),
  sleep: (rings, msMax) => void Atomics.wait(bells, index, rings, msMax),
})

/** The port of a line to the thread of this index, whose bell each message rings that is to wake it. */
export const ringing = (port: LinePort, bells: Bells, index: number): LinePort => ({
  postMessage(message, transfer, wakes) {
    port.postMessage(message, transfer, wakes)
    if (!wakes) return
    Atomics.add(bells, index, 1)
    Atomics.notify(bells, index)
  },
  on: (event, listener) => port.on(event, listener),
})
