// Orders about visitors among the identifications of their partition: what each needs, what is decided, and how a decision
// changes the state, fresh or adopted.

import { createHash } from 'node:crypto'
import { hash53 } from '../domain/ids.ts'
import type { EventsRecord } from '../events/record.ts'
import { addAccount, withoutAccounts } from '../identity/linked-accounts.ts'
import { packVisitor, unpackVisitor } from '../identity/visitor-record.ts'
import { must } from '../lib/must.ts'
import type { Aliasing } from '../records/aliases.ts'
import type { DecidedAnnotation } from '../records/annotations.ts'
import { ERASED, erasedId, type RecordedErasure } from '../records/erasures.ts'
import type { Expiry } from '../records/expiry.ts'
import {
  decodeAliasing,
  decodeErasure,
  decodeExpiry,
  decodeSplitting,
  decodeUnnaming,
} from '../records/identification.ts'
import type { Splitting } from '../records/splits.ts'
import { type Unnaming, withoutName } from '../records/unnaming.ts'
import { allIndexKeysOf, type HeldVisitor, packHeldVisitor } from '../records/visitors.ts'
import { blankVisitor, decideSplit } from './splitting.ts'
import type { Loadable, PartitionState, WantedEntry } from './state.ts'

export type VisitorCommand =
  | { readonly seq: number; readonly erasure: RecordedErasure }
  | { readonly seq: number; readonly aliasing: Aliasing }
  | { readonly seq: number; readonly splitting: Splitting }
  | { readonly seq: number; readonly expiry: Expiry }
  | { readonly seq: number; readonly unnaming: Unnaming }

/** What is said of an event. */
export interface Annotating {
  readonly seq: number
  readonly annotation: DecidedAnnotation
}

/** A decided order, alone in its record. */
export type DecidedCommand = Pick<EventsRecord, 'erasure' | 'aliasing' | 'split' | 'expiry' | 'unnaming' | 'annotation'>

export const scopedId = (at: { readonly workspace: string; readonly env: string }, id: string): string =>
  `${at.workspace}/${at.env}/${id}`

/** null: the bytes are no order. Throws on those that are nothing. */
export function openVisitorCommand(seq: number, bytes: Uint8Array): VisitorCommand | null {
  const erasure = decodeErasure(bytes)
  if (erasure !== null) return { seq, erasure }
  const aliasing = decodeAliasing(bytes)
  if (aliasing !== null) return { seq, aliasing }
  const splitting = decodeSplitting(bytes)
  if (splitting !== null) return { seq, splitting }
  const expiry = decodeExpiry(bytes)
  if (expiry !== null) return { seq, expiry }
  const unnaming = decodeUnnaming(bytes)
  return unnaming === null ? null : { seq, unnaming }
}

/** Visitors whose tokens may be another's, or nobody's, once the order is decided. */
export function unsettledBy(order: VisitorCommand): string[] {
  if ('erasure' in order) return [scopedId(order.erasure, order.erasure.visitorId)]
  if ('aliasing' in order) return []
  if ('unnaming' in order) return [scopedId(order.unnaming, order.unnaming.visitorId)]
  if ('expiry' in order) return order.expiry.visitorIds.map((id) => scopedId(order.expiry, id))
  return [order.splitting.visitorId, order.splitting.to].map((id) => scopedId(order.splitting, id))
}

/** Of an order that makes somebody an alias, or a survivor: who, and whose. */
export function joinedBy(one: object): [visitorId: string, survivor: string][] {
  if (!('aliasing' in one)) return []
  const { aliasing } = one as Extract<VisitorCommand, { aliasing: Aliasing }>
  return [[scopedId(aliasing, aliasing.visitorId), aliasing.survivor]]
}

/** Who has no visits left has had its time before, and tells only whose its tokens are. */
export function isExpired({ state }: HeldVisitor, before: number): boolean {
  const { lastSeenAt, totalVisits } = unpackVisitor(state)
  return totalVisits > 0 && lastSeenAt < before
}

/** What stays of an expired visitor that was merged or split: whose its tokens are. */
function restOf(visitorId: string, { survivor, parted, former, state }: HeldVisitor): [] | [rest: Uint8Array] {
  if (survivor === null && parted.length === 0 && former.length === 0) return []
  const blank = blankVisitor(visitorId, unpackVisitor(state).lastSeenAt)
  return [packHeldVisitor(blank.keys, blank.state, { survivor, parted, former })]
}

export interface VisitorCommands {
  /** What is not in memory yet of all that the order, or what is said of an event, needs. */
  wanted(order: VisitorCommand | Annotating): WantedEntry[]
  /** The same with what it makes of the visitor, which is applied as well. */
  recount(annotation: DecidedAnnotation): DecidedAnnotation
  /** Applies it as well. null: it changes nothing, being told twice or of a visitor that was erased. */
  decide(order: VisitorCommand): DecidedCommand | null
  /** The same for one decided before. */
  wantedToApply(record: DecidedCommand): WantedEntry[]
  apply(record: DecidedCommand): void
}

/** What orders do to counters of addresses and accounts. */
export interface LeavingCounters {
  /** What a visitor takes with it, by its own counters; null: nothing. */
  leaving(visitorId: string, counters: Uint8Array): readonly number[] | null
  remove(counted: readonly number[]): void
}

const ERASURE_ID_CHARS = 20
/** The same whoever decides it. */
const erasureIdOf = (erasureId: string, visitorId: string): string =>
  `era_${createHash('sha256').update(`${erasureId}/${visitorId}`).digest('hex').slice(0, ERASURE_ID_CHARS)}`

export function createVisitorCommands(state: PartitionState, counters: LeavingCounters): VisitorCommands {
  function missing(all: readonly (readonly [Loadable, string])[]): WantedEntry[] {
    return all.filter(([kind, id]) => state.missing(kind, id)).map(([kind, id]) => ({ kind, id }))
  }
  function keysOf(id: string): readonly string[] {
    const held = state.visitor(id)
    return held ? allIndexKeysOf(held) : []
  }

  function wanted(order: VisitorCommand | Annotating): WantedEntry[] {
    if ('annotation' in order) {
      const { recount } = order.annotation
      return recount === undefined ? [] : missing([['visitor', scopedId(order.annotation, recount.visitorId)]])
    }
    if ('aliasing' in order) {
      const { workspace, env, visitorId } = order.aliasing
      const id = scopedId(order.aliasing, visitorId)
      const isGone = state.visitor(id) === null
      return missing([['visitor', id], ...(isGone ? [[ERASED, erasedId(workspace, env, visitorId)] as const] : [])])
    }
    if ('expiry' in order) {
      return order.expiry.visitorIds.flatMap((visitorId) => {
        const id = scopedId(order.expiry, visitorId)
        const keys = keysOf(id).map((key) => ['index', scopedId(order.expiry, key)] as const)
        return missing([['visitor', id], ...keys])
      })
    }
    if ('unnaming' in order) return missing([['visitor', scopedId(order.unnaming, order.unnaming.visitorId)]])
    const what = 'erasure' in order ? order.erasure : order.splitting
    const at = { workspace: what.workspace, env: what.env }
    const id = scopedId(at, what.visitorId)
    const keys = new Set(keysOf(id))
    if ('erasure' in order) {
      for (const key of order.erasure.found ?? []) keys.add(key)
      return missing([
        ['visitor', id],
        [ERASED, erasedId(at.workspace, what.env, what.visitorId)],
        ...[...keys].map((key) => ['index', scopedId(at, key)] as const),
      ])
    }
    const { to } = order.splitting
    const isGone = state.visitor(id) === null
    return missing([
      ['visitor', id],
      ['visitor', scopedId(at, to)],
      [ERASED, erasedId(at.workspace, what.env, to)],
      ...(isGone ? [[ERASED, erasedId(at.workspace, what.env, what.visitorId)] as const] : []),
      ...[...keys].map((key) => ['index', scopedId(at, key)] as const),
    ])
  }

  function apply({ erasure, aliasing, split, expiry, unnaming, annotation }: DecidedCommand): void {
    if (annotation?.recount !== undefined && annotation.state !== undefined) {
      state.putVisitor(scopedId(annotation, annotation.recount.visitorId), annotation.state)
    }
    if (erasure !== undefined) {
      const { workspace, env, visitorId, indexed, erasureId, at } = erasure
      const keys = indexed.map((key) => scopedId(erasure, key))
      state.erase(scopedId(erasure, visitorId), keys, erasedId(workspace, env, visitorId), { erasureId, at })
      if (erasure.counted !== undefined) counters.remove(erasure.counted)
    }
    for (const [visitorId, indexed, rest] of expiry?.visitors ?? []) {
      const at = must(expiry)
      const id = scopedId(at, visitorId)
      state.expire(
        id,
        indexed.map((key) => scopedId(at, key)),
      )
      if (rest !== undefined) state.putVisitor(id, rest)
    }
    if (aliasing !== undefined) {
      state.putVisitor(scopedId(aliasing, aliasing.visitorId), aliasing.state)
    }
    if (unnaming !== undefined) {
      state.putVisitor(scopedId(unnaming, unnaming.visitorId), unnaming.state)
    }
    if (split !== undefined) {
      const { visitorId, to } = split
      state.putVisitor(scopedId(split, visitorId), split.state)
      if (split.toState.length > 0) state.putVisitor(scopedId(split, to), split.toState)
      for (const key of split.dropped) state.dropFromIndex(scopedId(split, key), visitorId)
      for (const key of split.toIndexed) state.addToIndex(scopedId(split, key), to)
    }
  }

  function decidedSplit(splitting: Splitting): DecidedCommand | null {
    const { workspace, env, visitorId, to } = splitting
    const held = state.visitor(scopedId(splitting, visitorId)) ?? null
    // Told twice, and erased in between.
    if (state.tombstone(erasedId(workspace, env, to))) return null
    const tombstone = held === null ? state.tombstone(erasedId(workspace, env, visitorId)) : null
    if (!tombstone) {
      const split = decideSplit(splitting, held)
      return split === null ? null : { split }
    }
    // The visits were erased before they could be another's, so whoever they were to be is erased with them.
    if (state.visitor(scopedId(splitting, to))) return null
    const erasureId = erasureIdOf(tombstone.erasureId, to)
    return { erasure: { erasureId, workspace, env, visitorId: to, at: tombstone.at, indexed: [] } }
  }

  function decided(order: VisitorCommand): DecidedCommand | null {
    if ('erasure' in order) {
      const id = scopedId(order.erasure, order.erasure.visitorId)
      const held = state.visitor(id) ?? null
      const survivor = held?.survivor ?? null
      const counted = held === null ? null : counters.leaving(order.erasure.visitorId, held.counters)
      const isAlias = survivor !== null && survivor !== order.erasure.visitorId
      const { found = [], ...what } = order.erasure
      const former = (held?.former ?? []).filter((one) => one !== survivor && one !== order.erasure.visitorId)
      const names = isAlias ? { survivor, ...(former.length === 0 ? {} : { former }) } : {}
      const more = { ...names, ...(counted === null ? {} : { counted }) }
      return { erasure: { ...what, indexed: [...keysOf(id), ...found], ...more } }
    }
    if ('expiry' in order) {
      const { visitorIds, ...what } = order.expiry
      const visitors = visitorIds.flatMap((visitorId) => {
        const held = state.visitor(scopedId(what, visitorId))
        if (!held || !isExpired(held, what.before)) return []
        return [[visitorId, allIndexKeysOf(held), ...restOf(visitorId, held)] as const]
      })
      return visitors.length === 0 ? null : { expiry: { ...what, visitors } }
    }
    if ('splitting' in order) return decidedSplit(order.splitting)
    if ('unnaming' in order) {
      const { erased, ...what } = order.unnaming
      const held = state.visitor(scopedId(what, what.visitorId))
      const left = held ? withoutName(held, order.unnaming) : null
      if (!held || left === null) return null
      return { unnaming: { ...what, state: packHeldVisitor(held.keys, held.state, { ...held, ...left }) } }
    }
    const { aliasing } = order
    const { workspace, env, visitorId, survivor, at } = aliasing
    const held = state.visitor(scopedId(aliasing, visitorId))
    // Told twice, or once more behind a later one.
    if (held?.survivor === survivor || held?.former.includes(survivor)) return null
    if (held?.former.includes(erasedId(workspace, env, survivor))) return null
    if (!held && state.tombstone(erasedId(workspace, env, visitorId))) return null
    // Whose only visits could not be decided has no record, but a token, with which it may come back.
    const own = held ?? blankVisitor(visitorId, at)
    const former = own.survivor === null ? [] : [...own.former, own.survivor]
    return { aliasing: { ...aliasing, state: packHeldVisitor(own.keys, own.state, { ...own, survivor, former }) } }
  }

  return {
    wanted,
    decide(order) {
      const decision = decided(order)
      if (decision !== null) apply(decision)
      return decision
    },
    recount(annotation) {
      const { recount } = annotation
      const held = recount === undefined ? null : state.visitor(scopedId(annotation, recount.visitorId))
      if (!held || recount === undefined) return annotation
      const visitor = unpackVisitor(held.state)
      const { add, drop, lastSeenAt } = recount
      const isLatest = visitor.lastSeenAt <= lastSeenAt
      if (drop !== null && isLatest) visitor.accounts = withoutAccounts(visitor.accounts, [hash53(drop)])
      if (add !== null) addAccount(visitor.accounts, add)
      const decided = { ...annotation, state: packHeldVisitor(held.keys, packVisitor(visitor), held) }
      apply({ annotation: decided })
      return decided
    },
    wantedToApply({ erasure, split, expiry }) {
      if (erasure !== undefined) {
        return missing([
          ...erasure.indexed.map((key) => ['index', scopedId(erasure, key)] as const),
          [ERASED, erasedId(erasure.workspace, erasure.env, erasure.visitorId)],
        ])
      }
      if (expiry !== undefined) {
        const keys = new Set(expiry.visitors.flatMap(([, indexed]) => indexed))
        return missing([...keys].map((key) => ['index', scopedId(expiry, key)] as const))
      }
      if (split === undefined) return []
      const keys = new Set([...split.toIndexed, ...split.dropped])
      return missing([...keys].map((key) => ['index', scopedId(split, key)] as const))
    },
    apply,
  }
}
