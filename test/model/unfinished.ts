// What a run has still to do before it is over.

import { ENGINE_POSITION, partitionScope, SINK_POSITION } from '../../src/records/partitions.ts'
import { CHANGES_READER, SYSTEM } from '../../src/records/scopes.ts'
import { type Deployment, decidedTo, PARTITIONS, positionOf } from './deployment.ts'
import type { Exemptions } from './exempt.ts'

/** What stands in the log and is still to be decided, stored or sunk; null: nothing. */
export function unfinished(
  { kv, log }: Deployment,
  exempt: Pick<Exemptions, 'isStream'>,
  lostPartition: number | null,
): string | null {
  if (positionOf(kv, SYSTEM, CHANGES_READER) !== log.side('changes', 0).last) return 'changes'
  for (let p = 0; p < PARTITIONS; p++) {
    if (p === lostPartition) continue
    const { last } = log.side('events', p)
    const accepted = log.side('identifications', p).last
    if (exempt.isStream(p)) {
      // It may stand above all that is left to be decided or sunk.
      const behind = (topic: 'identifications' | 'events') => log.side(topic, p).records.at(-1)?.seq ?? 0
      if (decidedTo(kv, p) < behind('identifications')) return `partition ${p} decides`
      for (const source of [ENGINE_POSITION, SINK_POSITION]) {
        if ((positionOf(kv, partitionScope(p), source) ?? 0) < behind('events')) return `${source} of ${p} is behind`
      }
      continue
    }
    if (accepted > 0 && decidedTo(kv, p) !== accepted) return `partition ${p} decides`
    if (positionOf(kv, partitionScope(p), ENGINE_POSITION) !== last)
      return `partition ${p} has no checkpoint of ${last}`
    if (positionOf(kv, partitionScope(p), SINK_POSITION) !== last) return `partition ${p} sinks`
  }
  return null
}
