// What must go wrong with merges when the owners of partitions are not told, or forget.

import { decodeEventsRecord } from '../../src/events/record.ts'
import { type Mutation, NOTHING, onDecider, onLog } from './mutations.ts'

const options = { merging: true } as const

export const MERGE_MUTATIONS: readonly Mutation[] = [
  {
    rule: 'merges',
    what: 'the order for the owner of the partition is not appended',
    seed: 1,
    options,
    tamper: onLog('control', (log) => ({
      append: async (topic, ...rest) => (topic === 'identifications' ? 0 : log.append(topic, ...rest)),
    })),
  },
  {
    rule: 'merges',
    what: 'a take-over adopts everything but merges',
    seed: 74,
    from: 40,
    options,
    tamper: onDecider((decider) => ({
      adopt: (partition, records, load) =>
        decider.adopt(
          partition,
          records.map((bytes) => (decodeEventsRecord(bytes).aliasing === undefined ? bytes : NOTHING)),
          load,
        ),
    })),
  },
]
