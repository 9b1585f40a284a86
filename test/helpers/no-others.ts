// A process of one shard: nobody to hand an identification over to.

import type { OtherShards } from '../../src/ingress/hand-over.ts'

export const NO_OTHERS: OtherShards = {
  wayFor: () => null,
  answer: () => undefined,
}
