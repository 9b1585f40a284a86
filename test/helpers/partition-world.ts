// A partition of the engine in this process, without rules: its log, and what its checkpoints stored.

import type { Velocity } from '../../src/domain/event.ts'
import type { IdentifyMeta } from '../../src/domain/identify.ts'
import { makeRequestId } from '../../src/domain/ids.ts'
import { MERGED_RECORDS } from '../../src/engine/merged-records.ts'
import { createPartition, type Partition } from '../../src/engine/partition.ts'
import type { LoadedEntry, WantedEntry } from '../../src/engine/state.ts'
import type { StoredCounter } from '../../src/engine/velocity/board.ts'
import { decodeEventsRecord, rowAt } from '../../src/events/record.ts'
import { fromRow } from '../../src/events/row.ts'
import { must } from '../../src/lib/must.ts'
import type { Recount } from '../../src/records/annotations.ts'
import {
  encodeAliasing,
  encodeAnnotation,
  encodeErasure,
  encodeExpiry,
  encodeIdentification,
} from '../../src/records/identification.ts'
import { VELOCITY } from '../../src/records/partitions.ts'
import { encodeSnapshot, openSnapshot } from '../../src/rules/snapshot.ts'
import { answered } from './asking.ts'
import { deviceOf } from './devices.ts'
import { WORKSPACE } from './facts.ts'
import { rng } from './rng.ts'

/** When the first visit comes; each one is a second after the one before. */
export const T0 = Date.UTC(2026, 4, 1)
export const AT = { workspace: WORKSPACE.id, env: 'live' } as const

export interface Visit {
  readonly device: number
  readonly ip: string
  readonly visitorId?: string
  readonly linkedId?: string
}

/** A partition whose checkpoints are kept, and which keeps nothing else in memory. */
export function openWorld() {
  const { bytes: random } = rng(11)
  const ruleset = openSnapshot(encodeSnapshot({ workspace: WORKSPACE, env: AT.env, revision: 1, rules: [] }))
  const needs = { partition: 0, partitions: 1, random, monotonic: () => 0, visitorsMax: 0, ruleset: () => ruleset }
  const log: Uint8Array[] = []
  /** One visitor, once there is anybody. */
  const merged: string[] = []
  let seq = 0

  function openStored() {
    const partition: Partition = createPartition(needs)
    const stored = new Map<string, unknown>()
    const load = (wanted: readonly WantedEntry[]): LoadedEntry[] =>
      wanted.flatMap(({ kind, id }): LoadedEntry[] => {
        if (kind === 'ruleset') return []
        if (kind === MERGED_RECORDS) return [{ kind, id, value: { ids: merged, elsewhere: [] } }]
        const value = stored.get(`${kind} ${id}`) ?? null
        const counter: StoredCounter = { partition: 0, seq, packed: value as Uint8Array | null }
        return [{ kind, id, value: kind === VELOCITY ? [counter] : value }]
      })
    function store(): void {
      const { dirty, gone } = partition.checkpoint()
      for (const { kind, id, value } of dirty) stored.set(`${kind} ${id}`, value)
      for (const [kind, id] of gone) stored.delete(`${kind} ${id}`)
    }
    /** Names of records that have the text anywhere. */
    const naming = (text: string): string[] =>
      [...stored]
        .filter(([name, value]) => {
          const shown = value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : JSON.stringify(value)
          return name.includes(text) || shown.includes(text)
        })
        .map(([name]) => name)
    return { partition, load, store, stored, naming }
  }
  const first = openStored()

  function decide(all: readonly Uint8Array[]) {
    const frames = all.map((bytes) => ({ seq: ++seq, bytes }))
    const decided = answered(first.partition.decide(frames, new Set()), first.load)
    if (decided.dead.length > 0) throw new Error(decided.dead[0]?.reason)
    log.push(...decided.records)
    first.store()
    return decided
  }

  function recordOf({ device, ip, visitorId, linkedId }: Visit): Uint8Array {
    const { mock: _, ...body } = deviceOf(device)
    const at = T0 + 1_000 * log.length
    const meta: IdentifyMeta = {
      requestId: makeRequestId(at, random),
      acceptedAt: at,
      ...AT,
      keyKind: 'secret' as const,
      ip,
      headers: {},
      tokenForged: false,
      replyTo: 'x',
      token: visitorId === undefined ? null : { visitorId, generation: 1, issuedAt: T0 },
    }
    return encodeIdentification(meta, Buffer.from(JSON.stringify({ ...body, ...(linkedId ? { linkedId } : {}) })))
  }

  return {
    ...first,
    visit(...visits: readonly Visit[]): string[] {
      return decide(visits.map(recordOf)).replies.map(
        ({ body }) => (JSON.parse(body) as { visitorId: string }).visitorId,
      )
    },
    /** What rules are told of a visit. */
    velocityOf(visit: Visit): Velocity {
      const { velocity } = fromRow(rowAt(decodeEventsRecord(must(decide([recordOf(visit)]).records[0])), 0))
      return must(velocity)
    },
    erase: (visitorId: string, more: { readonly found?: readonly string[] } = {}) =>
      decide([encodeErasure({ ...AT, visitorId, erasureId: 'era_1', at: T0, ...more })]),
    expire: (visitorIds: readonly string[], before: number) => decide([encodeExpiry({ ...AT, visitorIds, before })]),
    recount: (visitorId: string, what: Omit<Recount, 'visitorId'>) =>
      decide([
        encodeAnnotation({
          ...AT,
          annotationId: `ann_${seq}`,
          requestId: 'req_1',
          changes: {},
          recount: { visitorId, ...what },
        }),
      ]),
    /** Both are one from then on. */
    alias(visitorId: string, survivor: string) {
      merged.push(visitorId)
      decide([encodeAliasing({ ...AT, visitorId, survivor, at: T0 })])
    },
    /** Who takes over with nothing but the log. */
    adopted() {
      const other = openStored()
      for (const bytes of log) {
        answered(other.partition.adopt([bytes]), other.load)
        other.store()
      }
      return other
    },
    log,
  }
}
