// Records at which shards were lost: a record that costs a shard again and again is given up on.

export interface Suspects {
  /** Notes the records that were being decided in these partitions. */
  lost(partitions: readonly number[]): void
  /** By partition, as a shard is started with them. */
  givenUp(): [partition: number, seqs: readonly number[]][]
}

const LOSSES_MAX = 2

/** `deciding`: by partition the record being decided, 0 for none. */
export function createSuspects(deciding: Float64Array): Suspects {
  const losses = new Map<string, number>()
  const givenUp = new Map<number, number[]>()
  return {
    lost(partitions) {
      for (const partition of partitions) {
        const seq = deciding[partition] as number
        deciding[partition] = 0
        if (seq === 0) continue
        const name = `${partition}/${seq}`
        const times = (losses.get(name) ?? 0) + 1
        losses.set(name, times)
        if (times >= LOSSES_MAX) givenUp.set(partition, [...(givenUp.get(partition) ?? []), seq])
      }
    },
    givenUp: () => [...givenUp],
  }
}
