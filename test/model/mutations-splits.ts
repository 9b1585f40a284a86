// What must go wrong with splits when the owners of partitions are not told, forget, tell twice, or the rows stay where they are.

import { decodeEventsRecord } from '../../src/events/record.ts'
import { decodeSplitting } from '../../src/records/identification.ts'
import { type Mutation, NOTHING, onDecider, onLog } from './mutations.ts'
import type { Tamper } from './process.ts'

const options = { merging: true } as const

function isSplitting(bytes: Uint8Array | undefined): boolean {
  try {
    return bytes !== undefined && decodeSplitting(bytes) !== null
  } catch {
    return false
  }
}

const unmoved: Tamper = {
  ports: (role, ports) =>
    role !== 'sink'
      ? ports
      : {
          ...ports,
          clickhouse: {
            ...ports.clickhouse,
            patch: async (table, sql, params) =>
              sql.startsWith('UPDATE') ? undefined : ports.clickhouse.patch(table, sql, params),
          },
        },
}

export const SPLIT_MUTATIONS: readonly Mutation[] = [
  {
    rule: 'splits',
    what: 'the order for the owner of the partition is not appended',
    seed: 1,
    options,
    tamper: onLog('control', (log) => ({
      append: async (topic, partition, records, opts) =>
        isSplitting(records[0]) ? 0 : log.append(topic, partition, records, opts),
    })),
  },
  {
    rule: 'splits',
    what: 'a take-over adopts everything but splits',
    seed: 15,
    options,
    tamper: onDecider((decider) => ({
      adopt: (partition, records, load) =>
        decider.adopt(
          partition,
          records.map((bytes) => (decodeEventsRecord(bytes).split === undefined ? bytes : NOTHING)),
          load,
        ),
    })),
  },
  { rule: 'splits', what: 'the sink leaves the rows of moved events', seed: 1, options, tamper: unmoved },
]
