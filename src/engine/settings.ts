// The settings of whoever decides.

export const ENGINE_SETTINGS = [
  {
    name: 'engine.threads',
    kind: 'integer',
    standard: 0,
    min: 0,
    max: 64,
    sentence: 'Shards: threads that listen, accept and decide, over which partitions are spread; 0: one for each core.',
  },
  {
    name: 'engine.threadsMin',
    kind: 'integer',
    standard: 0,
    min: 0,
    max: 64,
    sentence:
      'Shards that decide from the start; others join when those are full and a core is idle. 0: a quarter of all of them.',
  },
  {
    name: 'engine.visitorsMax',
    kind: 'integer',
    standard: 75_000,
    min: 100,
    max: 10_000_000,
    sentence: 'Visitors kept in memory per partition, of those who came within the last two minutes.',
  },
  {
    name: 'engine.healsPerSecondMax',
    kind: 'integer',
    standard: 5,
    min: 0,
    max: 1_000,
    sentence: 'Visitors per second and partition that are merged because a visit shows them to be one device; 0: none.',
  },
  {
    name: 'engine.stepMsMax',
    kind: 'integer',
    standard: 10_000,
    min: 100,
    max: 600_000,
    sentence: 'Time a shard may not turn its loop before it is taken to hang and is replaced.',
  },
  {
    name: 'engine.heapMbMax',
    kind: 'integer',
    standard: 2_048,
    min: 64,
    max: 65_536,
    sentence: 'Heap of one shard, in MiB.',
  },
] as const
