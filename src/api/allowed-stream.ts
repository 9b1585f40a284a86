// A stream ends when whoever asked for it may no longer: a key that was revoked, a session that is over.

import { ApiError } from '../domain/errors.ts'
import type { HttpStream } from '../http/stream.ts'
import type { Clock } from '../lib/clock.ts'
import { nextBeat } from '../lib/clock.ts'

/** A revocation counts within a second. */
const LOOK_MS = 500

/** `permit` throws ApiError when it is over; what cannot be told now changes nothing. */
export function whileAllowed(
  serve: (stream: HttpStream) => void,
  permit: () => unknown,
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
): (stream: HttpStream) => void {
  async function watch(stream: HttpStream, closed: AbortSignal): Promise<void> {
    for (;;) {
      await nextBeat(clock, LOOK_MS, closed)
      if (closed.aborted) return
      try {
        await permit()
      } catch (error) {
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return stream.end()
      }
    }
  }
  return (stream) => {
    const closed = new AbortController()
    const listeners: (() => void)[] = []
    stream.whenClosed(() => {
      closed.abort()
      for (const listener of listeners) listener()
    })
    void watch(stream, closed.signal)
    serve({
      write: (text) => stream.write(text),
      end: () => stream.end(),
      whenClosed(listener) {
        if (closed.signal.aborted) listener()
        else listeners.push(listener)
      },
    })
  }
}
