// The rest of an answer that is made while it leaves: a part is asked for when the one before has been taken by the socket.

import { type DeadlineQueue, emptyDeadline, removeDeadline } from './deadlines.ts'
import type { RawResponse } from './port.ts'

export interface AnswerParts {
  /** The server says that the connection is gone. */
  left(): void
}

export interface PartsNeeds {
  readonly raw: RawResponse
  readonly parts: AsyncGenerator<string | Uint8Array, void>
  /** How long the client may take nothing. */
  readonly stalls: DeadlineQueue
  readonly monotonic: () => number
  /** Called once: null when all is written, else why the connection is closed instead. */
  readonly over: (error: unknown) => void
  /** Whether the connection closes with the answer. */
  readonly closes: () => boolean
}

/** To be called when the head and the first bytes have been written. */
export function sendParts({ raw, parts, stalls, monotonic, over, closes }: PartsNeeds): AnswerParts {
  let isGone = false
  let go: (() => void) | null = null
  const stall = emptyDeadline(() => raw.close())
  raw.onWritable(() => {
    go?.()
    return true
  })

  const taken = () =>
    new Promise<void>((resolve) => {
      go = resolve
      stalls.add(stall, monotonic())
    })

  async function run(): Promise<void> {
    try {
      for await (const part of parts) {
        if (isGone) return
        let isFull = false
        raw.cork(() => {
          isFull = !raw.write(part)
        })
        if (isFull) await taken()
        removeDeadline(stall)
        if (isGone) return
      }
      if (isGone) return
      over(null)
      raw.cork(() => raw.end('', closes()))
    } catch (error) {
      if (isGone) return
      over(error)
      raw.close()
    }
  }
  void run()

  return {
    left() {
      isGone = true
      removeDeadline(stall)
      go?.()
    },
  }
}
