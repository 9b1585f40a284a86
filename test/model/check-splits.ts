// What must hold of splits when everything is quiet: each was decided once, its events are the new visitor's in every store, and
// both records count what is theirs.

import { COLUMNS } from '../../src/events/row.ts'
import { openEventReads } from '../../src/reads/events.ts'
import { openVisitorReads } from '../../src/reads/visitors.ts'
import { tenantScope } from '../../src/records/scopes.ts'
import { type Moved, movedKey } from '../../src/records/splits.ts'
import type { Facts } from './checks.ts'
import { visitorOf } from './decided.ts'
import { PARTITIONS } from './deployment.ts'
import { peek } from './model-kv.ts'

const REQUEST = COLUMNS.indexOf('request_id')
const VISITOR = COLUMNS.indexOf('visitor_id')
const DETAIL = COLUMNS.indexOf('detail')

export async function checkSplits(facts: Facts): Promise<void> {
  const { changes, kv, raw, decided, clickhouse, workspace, lostPartition, problem } = facts
  const sight = async () => ({ place: null, pending: false, original: null, complete: true })
  const ageless = { clock: { now: () => 0 }, retentionDays: () => 1 }
  const needs = { clickhouse: raw.clickhouse, log: raw.log, kv: raw.kv, partitions: PARTITIONS, sight, ...ageless }
  const events = openEventReads(needs)
  const visitors = openVisitorReads(raw.kv, PARTITIONS)
  for (const { draft, outcome } of changes) {
    if (draft.type !== 'visitor.split' || outcome?.ok !== true || draft.env === null) continue
    const { env, data } = draft
    const first = data.parts[0]?.to
    for (const { from, to, requestIds } of data.parts) {
      const times = decided.splits().filter(({ split }) => split.to === to).length
      // Who asked for the same as somebody else was told of that one's visitor.
      const expected = outcome.split?.visitorId === first ? 1 : 0
      const isErased = (visitorId: string) => decided.erasureOf(visitorOf({ env, visitorId })) !== undefined
      // An erasure was decided before it.
      const isVain = times === 0 && isErased(from)
      if (isVain) continue
      if (times !== expected && lostPartition === null) problem('a split is decided once', `${to}: ${times} times`)
      for (const requestId of requestIds) {
        const moved = peek(kv, tenantScope(workspace.id, env), movedKey(requestId)) as Moved | undefined
        // Of somebody who is erased nothing needs to be known.
        if (moved?.isErased === true || (moved !== undefined && isErased(moved.to))) continue
        if (moved === undefined || moved.to === from)
          problem('an answered split is kept', `${requestId} of ${from}: ${moved?.to}`)
        const rows = (clickhouse.rows.get('events') ?? []).filter(({ cells }) => cells[REQUEST] === requestId)
        for (const { cells } of rows) {
          if (lostPartition !== null) continue
          if (cells[VISITOR] !== moved?.to || String(cells[DETAIL]).includes('"own":'))
            problem('a moved event is the new visitor’s in ClickHouse', `${requestId}: ${cells[VISITOR]}`)
        }
        if (lostPartition !== null) continue
        const event = await events.byId(workspace.id, env, requestId)
        if (event !== null && event !== 'pending' && event.visitorId !== moved?.to)
          problem('a moved event reads as the new visitor’s', `${requestId}: ${event.visitorId}`)
      }
      if (lostPartition !== null || expected === 0 || isErased(to)) continue
      if ((await visitors.record(workspace.id, env, to)) === null && stillOf(facts, env, to).length > 0)
        problem('a new visitor has a record', to)
    }
  }
}

/** Events that were split off to a visitor and not moved on since. */
function stillOf({ decided, kv, workspace }: Facts, env: 'live' | 'test', to: string): string[] {
  return decided
    .splits()
    .filter(({ split }) => split.to === to)
    .flatMap(({ split }) => split.requestIds)
    .filter((id) => (peek(kv, tenantScope(workspace.id, env), movedKey(id)) as Moved | undefined)?.to === to)
}
