// A call that one shard hands over to another, as a promise of its answer.

import type { HandedBack, HandedOver, HandOver } from '../../src/ingress/hand-over.ts'

/** Rejects with what it is told in place of an answer. */
export const handedOver = (handOver: HandOver, call: HandedOver): Promise<HandedBack> =>
  new Promise((resolve, reject) => {
    handOver(call, (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome)))
  })
