// A process of one shard: nobody to hand an identification over to.

import type { OtherShards } from '../../src/ingress/hand-over.ts'
import { Unavailable } from '../../src/lib/failures.ts'

export const NO_OTHERS: OtherShards = {
  count: () => 0,
  has: () => false,
  handOver: () => Promise.reject(new Unavailable('there is no other shard')),
  answer: () => undefined,
}
