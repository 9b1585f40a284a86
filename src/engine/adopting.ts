// Decisions made before, applied to the state again, and answered again to whoever may still wait.

import { decodeEventsRecord, type EventsRecord, rowAt } from '../events/record.ts'
import { fromRow } from '../events/row.ts'
import { presentResult } from '../identity/result.ts'
import { VELOCITY } from '../records/partitions.ts'
import type { Asking } from './asking.ts'
import type { DecisionReply } from './decided.ts'
import type { PartitionParts } from './parts.ts'
import type { Loadable, WantedEntry } from './state.ts'
import { allCounterKeysOf, flattenRecord, unflatten } from './velocity/counted.ts'

/** What is not in memory of all that the records change. */
function wantedBy(adopted: readonly EventsRecord[], { state, board, orders }: PartitionParts): WantedEntry[] {
  const wanted = new Map<string, WantedEntry>()
  const want = (kind: Loadable, id: string) => {
    if (state.missing(kind, id)) wanted.set(`${kind} ${id}`, { kind, id })
  }
  for (const record of adopted) {
    for (const one of unflatten(flattenRecord(record))) {
      for (const key of allCounterKeysOf(one)) {
        if (board.missing(key)) wanted.set(`${VELOCITY} ${key}`, { kind: VELOCITY, id: String(key) })
      }
    }
    for (const { workspace, env, indexed, left = [], lesson } of record.items) {
      for (const key of indexed) want('index', `${workspace}/${env}/${key}`)
      for (const key of left) want('index', `${workspace}/${env}/${key}`)
      if (lesson !== undefined) want('learned', lesson[0])
    }
    for (const one of orders.wantedToApply(record)) wanted.set(`${one.kind} ${one.id}`, one)
  }
  return [...wanted.values()]
}

export function* adoptRecords(parts: PartitionParts, records: readonly Uint8Array[]): Asking<readonly DecisionReply[]> {
  const { needs, state, board, orders, apply, load } = parts
  const adopted = records.map(decodeEventsRecord)
  for (;;) {
    const askedAt = board.openings()
    const wanted = wantedBy(adopted, parts)
    if (wanted.length === 0) break
    load(yield wanted, askedAt)
  }
  const replies: DecisionReply[] = []
  for (const record of adopted) {
    orders.apply(record)
    record.items.forEach((item, index) => {
      apply(item)
      const ruleset = needs.ruleset(item.workspace, item.env)
      if (ruleset === null || item.replyTo === '') return
      try {
        const body = presentResult(fromRow(rowAt(record, index)), ruleset.workspace, item.keyKind)
        replies.push({ requestId: item.requestId, replyTo: item.replyTo, body })
      } catch {
        // A row that nobody can read keeps its client waiting, who reads the event instead; it must not keep the partition from its owner.
      }
    })
  }
  state.rest()
  board.rest()
  return replies
}
