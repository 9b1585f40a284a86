// The two ends of a line between hosts: messages arrive in the order they were posted, some time later, whatever becomes of the host
// that posted them.

import type { LinePort } from '../../src/lib/line.ts'
import type { SimHost } from './host.ts'

export interface Joint {
  readonly here: LinePort
  readonly there: LinePort
  /** What has not arrived never will. */
  part(): void
}

export function joinHosts(here: SimHost, there: SimHost): Joint {
  let isOpen = true

  function way(from: SimHost, to: SimHost) {
    const underWay: unknown[] = []
    let take: ((message: unknown) => void) | null = null
    const arrive = () => {
      const message = underWay.shift()
      if (isOpen) take?.(message)
    }
    return {
      post(message: unknown): void {
        if (!isOpen || !from.alive()) return
        underWay.push(structuredClone(message))
        to.step(from.latency(), arrive)
      },
      listen(listener: (message: unknown) => void): void {
        take = listener
      },
    }
  }

  const out = way(here, there)
  const back = way(there, here)
  return {
    here: { postMessage: out.post, on: (_event, listener) => back.listen(listener) },
    there: { postMessage: back.post, on: (_event, listener) => out.listen(listener) },
    part: () => {
      isOpen = false
    },
  }
}
