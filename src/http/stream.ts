// An answer without an end: what is written goes out at once, until either side closes. Whoever reads too slowly is cut off.

import type { RawResponse } from './port.ts'

export interface HttpStream {
  /** False when it is over, or ends now because the client does not keep up. */
  write(text: string): boolean
  end(): void
  /** Calls `listener` when the client has left or was cut off; at once when that is so already. */
  whenClosed(listener: () => void): void
}

export interface OpenStream extends HttpStream {
  /** The server says that the connection is gone. */
  left(): void
}

/** To be called when the head has been written. */
export function openStream(raw: RawResponse): OpenStream {
  let isOpen = true
  let isFull = false
  let listener: (() => void) | null = null
  raw.onWritable(() => {
    isFull = false
    return true
  })

  function over(): void {
    if (!isOpen) return
    isOpen = false
    listener?.()
  }

  return {
    write(text) {
      if (!isOpen) return false
      if (isFull) {
        over()
        raw.close()
        return false
      }
      raw.cork(() => {
        isFull = !raw.write(text)
      })
      return true
    },
    end() {
      if (!isOpen) return
      over()
      raw.cork(() => raw.end())
    },
    whenClosed(closed) {
      if (isOpen) listener = closed
      else closed()
    },
    left: over,
  }
}
