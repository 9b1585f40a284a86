// Up to where rows of a partition may be in ClickHouse although its position does not say so. A Redis that fails over to a standby, or
// loses power between two flushes of its file, forgets what it had acknowledged last: marks and positions of ranges whose rows
// stay. Nobody is told, so whoever begins with a partition doubts all that was in the log by then, and whoever finds it behind
// what it has inserted itself doubts all up to there.

import type { Log, Seq } from '../log/log.ts'

export interface Horizons {
  /** A tenure begins: what an earlier one knew counts no more. */
  begin(partition: number): void
  /** Ranges that begin below are looked for before they are inserted. Fails with Unavailable. */
  of(partition: number): Promise<Seq>
  /** Rows up to `upTo` are about to be inserted. */
  reach(partition: number, upTo: Seq): void
}

export function openHorizons(log: Pick<Log, 'last'>): Horizons {
  const known = new Map<number, Seq>()
  return {
    begin(partition) {
      known.delete(partition)
    },
    async of(partition) {
      const horizon = known.get(partition) ?? (await log.last('events', partition))
      known.set(partition, horizon)
      return horizon
    },
    reach(partition, upTo) {
      known.set(partition, Math.max(known.get(partition) ?? 0, upTo))
    },
  }
}
