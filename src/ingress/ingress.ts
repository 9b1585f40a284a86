// The ingress role: wires acceptance to the replies of engines and to the clients that wait for them.

import type { Bus } from '../bus/bus.ts'
import { type ReplyMessage, replySubject } from '../records/replies.ts'
import { type AcceptNeeds, createAccept } from './accept.ts'
import { type IdentifyNeeds, serveIdentify } from './identify.ts'
import { createWaiting, type Waiting } from './waiting.ts'

export interface IngressNeeds extends Omit<AcceptNeeds, 'waiting'>, Omit<IdentifyNeeds, 'accept'> {
  readonly bus: Pick<Bus, 'subscribe'>
  /** How long a client waits for its decision before it gets 202, milliseconds. */
  readonly decisionWaitMs: number
}

export interface Ingress {
  /** Accepted by this process and not decided yet. */
  isPending: Waiting['isPending']
  originalOf: Waiting['originalOf']
  pendingCount(): number
  stop(): void
}

const SWEEP_MS = 25

export function startIngress(needs: IngressNeeds): Ingress {
  const { bus, clock } = needs
  const waiting = createWaiting(needs.decisionWaitMs, clock.monotonic)
  serveIdentify({ ...needs, accept: createAccept({ ...needs, waiting }) })

  const unsubscribe = bus.subscribe(replySubject(needs.ingressId), (message) => {
    const { replies, replays } = message as ReplyMessage
    for (const [requestId, body] of replies) waiting.settle(requestId, { body })
    for (const { requestId, original, conflict } of replays) waiting.settle(requestId, { original, conflict })
  })
  const stopped = new AbortController()
  async function sweepUntilStopped(): Promise<void> {
    while (!stopped.signal.aborted) {
      await clock.sleep(SWEEP_MS, stopped.signal)
      waiting.sweep()
    }
  }
  void sweepUntilStopped()

  return {
    isPending: waiting.isPending,
    originalOf: waiting.originalOf,
    pendingCount: waiting.size,
    stop() {
      stopped.abort()
      unsubscribe()
    },
  }
}
