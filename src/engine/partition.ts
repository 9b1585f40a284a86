// One partition, pure: from a batch of identifications and what is known, to decisions, and from decisions back to state.
// It runs in a worker thread in the product and in-process in the protocol's model test.

import type { StoredEvent } from '../domain/event.ts'
import { homePartition, makeVisitorId, type RandomBytes } from '../domain/ids.ts'
import {
  type DecidedErasure,
  type DecidedItem,
  decodeEventsRecord,
  type EventsRecord,
  rowAt,
} from '../events/record.ts'
import { fromRow, toRow } from '../events/row.ts'
import { openParsers } from '../identity/parsers.ts'
import { presentResult } from '../identity/result.ts'
import { packVisitor } from '../identity/visitor.ts'
import { type AddressFacts, NO_FACTS } from '../ipintel/addresses.ts'
import { must } from '../lib/must.ts'
import type { DecidedEffect, EventEffects } from '../records/effects.ts'
import { ERASED, type Erasure, erasedId } from '../records/erasures.ts'
import { decodeErasure } from '../records/identification.ts'
import { holdVisitor, unpackHeldVisitor } from '../records/visitors.ts'
import type { CompiledRuleset } from '../rules/snapshot.ts'
import { failedEvent } from './failed.ts'
import type { Frame } from './frames.ts'
import { type Case, judge, openCase, type RuleLog } from './judge.ts'
import { createLookup, type Opened, scopedId } from './lookup.ts'
import { createMatchCounts, type MatchCount } from './match-counts.ts'
import { createNonces } from './nonces.ts'
import { createPacker } from './packer.ts'
import { createState, type Dirty, type Loadable, type Loaded, type Wanted } from './state.ts'

/** An answer for the ingress that waits for `requestId`. */
export interface Reply {
  readonly requestId: string
  readonly replyTo: string
  readonly body: string
}

/** A repeated nonce: no event; answered with the event of `original`, or refused when the body differs. */
export interface Replay {
  readonly requestId: string
  readonly replyTo: string
  readonly keyKind: 'public' | 'secret'
  readonly workspace: string
  readonly env: 'live' | 'test'
  readonly original: string
  readonly conflict: boolean
}

export interface Dead {
  readonly seq: number
  readonly reason: string
}

export interface Decided {
  /** Encoded EventsRecords in order; at least one, so that the position always moves. */
  readonly records: readonly Uint8Array[]
  /** For each record the requestIds of its items, in order. */
  readonly placed: readonly (readonly string[])[]
  readonly replies: readonly Reply[]
  readonly replays: readonly Replay[]
  readonly dead: readonly Dead[]
  readonly logs: readonly RuleLog[]
  /** For each record the side effects of its events. */
  readonly effects: readonly (readonly EventEffects[])[]
  readonly effectsSkipped: number
  /** To be announced and checkpointed before anybody is told. */
  readonly erased: readonly Erasure[]
}

export interface Checkpoint {
  readonly dirty: readonly Dirty[]
  readonly matches: readonly MatchCount[]
  readonly nonces: Uint8Array | null
}

export interface Partition {
  /** Takes in a batch and says what must be provided before it can be decided; empty: nothing more. */
  begin(frames: readonly Frame[]): readonly Wanted[]
  /** Takes in what was asked for, and may ask for more. */
  provide(loaded: readonly Loaded[]): readonly Wanted[]
  /** Decides the batch taken in; records in `poisoned` are given up on. */
  decide(poisoned: ReadonlySet<number>): Decided
  /** Takes in decisions made before and says what must be provided first. */
  beginAdopt(records: readonly Uint8Array[]): readonly Wanted[]
  provideAdopt(loaded: readonly Loaded[]): void
  /** Applies them, and answers again whoever may still wait. */
  adopt(): readonly Reply[]
  restoreNonces(packed: Uint8Array): void
  dirtyCount(): number
  checkpoint(): Checkpoint
}

export interface PartitionNeeds {
  readonly partition: number
  readonly partitions: number
  readonly random: RandomBytes
  /** Milliseconds that never jump. */
  readonly monotonic: () => number
  readonly ruleset: (workspace: string, env: string) => CompiledRuleset | null
  /** Clean visitors kept in memory. */
  readonly visitorsMax: number
  /** What is known of a canonical address; nothing by default. */
  readonly locate?: (ip: string) => AddressFacts
}

const knowNothing = (): AddressFacts => NO_FACTS

const NO_STATE = new Uint8Array(0)

export function createPartition(needs: PartitionNeeds): Partition {
  const { partition, partitions, random } = needs
  const state = createState(needs.visitorsMax)
  const lookup = createLookup(state)
  const nonces = createNonces(needs.monotonic)
  const parsers = openParsers()
  const matches = createMatchCounts()
  let opened: Opened[] = []
  let adopting: EventsRecord[] = []
  /** Rulesets asked for since the batch came: what does not exist is not asked for again. */
  let asked = new Set<string>()

  function drawId(): string {
    for (;;) {
      const id = makeVisitorId(random)
      if (homePartition(id, partitions) === partition) return id
    }
  }

  /** The one way decisions change state: fresh ones and adopted ones alike. */
  function apply(item: DecidedItem): void {
    const prefix = `${item.workspace}/${item.env}/`
    if (item.state.length > 0) {
      state.putVisitor(prefix + item.visitorId, unpackHeldVisitor(item.state))
      for (const key of item.indexed) state.addToIndex(prefix + key, item.visitorId)
    }
    matches.add(item)
    if (item.nonceHash !== 0) nonces.add(item)
  }

  function applyErasure({ workspace, env, visitorId, indexed, erasureId, at }: DecidedErasure): void {
    const prefix = `${workspace}/${env}/`
    const keys = indexed.map((key) => prefix + key)
    state.erase(prefix + visitorId, keys, erasedId(workspace, env, visitorId), { erasureId, at })
  }

  function itemOf(
    c: Case,
    event: StoredEvent,
    state: Uint8Array,
    indexed: readonly string[],
    row: string,
    effects: readonly DecidedEffect[],
  ): DecidedItem {
    const { requestId, workspace, env, visitorId } = event
    return {
      ...{ seq: c.seq, requestId, workspace, env, visitorId },
      state,
      indexed,
      matches: [
        ...event.matchedRules.map((r) => [r.id, 1] as const),
        ...event.monitorMatches.map((r) => [r.id, 0] as const),
      ],
      nonceHash: c.nonceHash,
      bodyHash: c.bodyHash,
      acceptedAt: c.meta.acceptedAt,
      keyKind: c.meta.keyKind,
      replyTo: c.meta.replyTo,
      rowBytes: Buffer.byteLength(row) + 1,
      ...(effects.length === 0 ? {} : { effects }),
    }
  }

  function open(frame: Frame): Opened {
    try {
      const erasure = decodeErasure(frame.bytes)
      return erasure === null ? openCase(frame, parsers, needs.locate ?? knowNothing) : { seq: frame.seq, erasure }
    } catch {
      return { seq: frame.seq, broken: 'unreadable' }
    }
  }

  function begin(frames: readonly Frame[]): readonly Wanted[] {
    opened = frames.map(open)
    asked = new Set()
    return wanted()
  }

  function wanted(): Wanted[] {
    const all = lookup.wanted(opened)
    for (const one of opened) {
      if (!('meta' in one)) continue
      const { workspace, env } = one.meta
      const id = `${workspace}/${env}`
      if (asked.has(id) || needs.ruleset(workspace, env) !== null) continue
      asked.add(id)
      all.push({ kind: 'ruleset', id })
    }
    return all
  }

  function decide(poisoned: ReadonlySet<number>): Decided {
    const replies: Reply[] = []
    const replays: Replay[] = []
    const dead: Dead[] = []
    const logs: RuleLog[] = []
    const erased: Erasure[] = []
    let effectsSkipped = 0
    const pack = createPacker(must(opened[0], 'a batch').seq, must(opened.at(-1), 'a batch').seq)

    for (const one of opened) {
      if ('broken' in one) {
        dead.push({ seq: one.seq, reason: one.broken })
        continue
      }
      if ('erasure' in one) {
        const decided = { ...one.erasure, indexed: lookup.keysOf(one.erasure) }
        applyErasure(decided)
        pack.addErasure(one.seq, decided)
        erased.push(one.erasure)
        continue
      }
      const c = lookup.tokenErased(one) ? { ...one, meta: { ...one.meta, token: null } } : one
      const { meta } = c
      const first = c.nonceHash === 0 ? null : nonces.find(c.nonceHash, meta.acceptedAt)
      if (first !== null) {
        const { requestId, replyTo, keyKind, workspace, env } = meta
        const conflict = first.bodyHash !== c.bodyHash
        replays.push({ requestId, replyTo, keyKind, workspace, env, original: first.requestId, conflict })
        continue
      }
      const ruleset = needs.ruleset(meta.workspace, meta.env)
      let event: StoredEvent
      let held: Uint8Array = NO_STATE
      let indexed: readonly string[] = []
      let effects: readonly DecidedEffect[] = []
      try {
        if (poisoned.has(c.seq)) throw new Error('given up after repeated failures')
        const judged = judge(c, lookup.candidates(c), must(ruleset, 'a ruleset for every workspace'), drawId)
        event = judged.event
        logs.push(...judged.logs)
        effectsSkipped += judged.effectsSkipped
        const before = state.visitor(scopedId(c.meta, event.visitorId))
        indexed = c.keys.filter((key) => !before?.keys.includes(key))
        held = holdVisitor(c.keys, packVisitor(judged.visitor)).packed
        // Last: what could not be decided after all has none.
        effects = judged.effects
      } catch (error) {
        const reason = poisoned.has(c.seq) ? 'repeated_failure' : 'evaluation_failed'
        dead.push({ seq: c.seq, reason: `${reason}: ${String(error).slice(0, 500)}` })
        event = failedEvent(meta, drawId(), reason)
      }
      const row = toRow(event, partition, c.seq)
      const item = itemOf(c, event, held, indexed, row, effects)
      apply(item)
      pack.add(item, row)
      if (ruleset !== null) {
        replies.push({
          requestId: meta.requestId,
          replyTo: meta.replyTo,
          body: presentResult(event, ruleset.workspace, meta.keyKind),
        })
      }
    }
    opened = []
    return { ...pack.finish(), replies, replays, dead, logs, effectsSkipped, erased }
  }

  function adopt(): readonly Reply[] {
    const replies: Reply[] = []
    for (const record of adopting) {
      if (record.erasure !== undefined) applyErasure(record.erasure)
      record.items.forEach((item, index) => {
        apply(item)
        const ruleset = needs.ruleset(item.workspace, item.env)
        if (ruleset === null || item.replyTo === '') return
        const body = presentResult(fromRow(rowAt(record, index)), ruleset.workspace, item.keyKind)
        replies.push({ requestId: item.requestId, replyTo: item.replyTo, body })
      })
    }
    adopting = []
    return replies
  }

  return {
    begin,
    provide(loaded) {
      state.load(loaded)
      return wanted()
    },
    decide,
    beginAdopt(records) {
      adopting = records.map(decodeEventsRecord)
      const wanted = new Map<string, Wanted>()
      const want = (kind: Loadable, id: string) => {
        if (state.missing(kind, id)) wanted.set(`${kind} ${id}`, { kind, id })
      }
      for (const { items, erasure } of adopting) {
        for (const { workspace, env, indexed } of erasure === undefined ? items : [erasure]) {
          for (const key of indexed) want('index', `${workspace}/${env}/${key}`)
        }
        if (erasure !== undefined) want(ERASED, erasedId(erasure.workspace, erasure.env, erasure.visitorId))
      }
      return [...wanted.values()]
    },
    provideAdopt: state.load,
    adopt,
    restoreNonces: nonces.restore,
    dirtyCount: state.dirtyCount,
    checkpoint() {
      return { dirty: state.takeDirty(), matches: matches.take(), nonces: nonces.takeAdded() }
    },
  }
}
