// One partition, pure: from a batch of identifications and what is known, to decisions, and from decisions back to state.
// It runs in a shard's thread in the product and in-process in the protocol's model test.

import type { StoredEvent } from '../domain/event.ts'
import { homePartition, makeVisitorId, type RandomBytes } from '../domain/ids.ts'
import {
  type DecidedErasure,
  type DecidedItem,
  decodeEventsRecord,
  type EventsRecord,
  rowAt,
} from '../events/record.ts'
import { fromRow } from '../events/row.ts'
import type { Lesson } from '../identity/learned.ts'
import { openParsers } from '../identity/parsers.ts'
import { presentResult } from '../identity/result.ts'
import { packVisitor } from '../identity/visitor.ts'
import { type AddressFacts, NO_FACTS } from '../ipintel/addresses.ts'
import { must } from '../lib/must.ts'
import type { DecidedAnnotation } from '../records/annotations.ts'
import type { DecidedEffect, LogLine, RuleLog } from '../records/effects.ts'
import { VELOCITY } from '../records/partitions.ts'
import { earlierKeysWith, packHeldVisitor, tooEarly } from '../records/visitors.ts'
import type { CompiledRuleset } from '../rules/snapshot.ts'
import type { Checkpoint, Dead, Decided, Replay, Reply } from './decided.ts'
import { failedEvent } from './failed.ts'
import type { Frame } from './frames.ts'
import { itemOf, keysBeside } from './items.ts'
import { type JudgeNeeds, judge } from './judge.ts'
import { createKin, KIN, type StoredKin } from './kin.ts'
import { createLookup, isOrder, type Opened } from './lookup.ts'
import { createMatchCounts } from './match-counts.ts'
import { createNonces } from './nonces.ts'
import { openFrame } from './open-frame.ts'
import { createOrders, joinedBy, scopedId, unsettledBy } from './orders.ts'
import { createPacker } from './packer.ts'
import { createState, type Dirty, type Loadable, type Loaded, type Wanted } from './state.ts'
import { type Board, createBoard, type StoredCounter } from './velocity/board.ts'
import { allKeysOf, flattenRecord, keysOf, packCounted, unflatten, unpackCounted } from './velocity/counted.ts'
import { keysLeft, openLeaving } from './velocity/leaving.ts'
import { tallyEvent } from './velocity/tally.ts'

export interface Partition {
  /** Takes in a batch and says what must be provided before it can be decided; empty: nothing more. */
  begin(frames: readonly Frame[]): readonly Wanted[]
  /** Takes in what was asked for, and may ask for more. */
  provide(loaded: readonly Loaded[]): readonly Wanted[]
  /** Decides the batch taken in; records in `poisoned` are given up on. */
  decide(poisoned: ReadonlySet<number>): Decided
  /** Takes in decisions made before and says what must be provided first. */
  beginAdopt(records: readonly Uint8Array[]): readonly Wanted[]
  /** Takes in what was asked for, and may ask for more. */
  provideAdopt(loaded: readonly Loaded[]): readonly Wanted[]
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
  /** Counters of addresses and accounts, with this partition open; by default it is alone. */
  readonly board?: Board
  /** Told the record that is about to be opened or decided. */
  readonly onRecord?: (seq: number) => void
}

const knowNothing = (): AddressFacts => NO_FACTS

const NO_STATE = new Uint8Array(0)

export function createPartition(needs: PartitionNeeds): Partition {
  const { partition, partitions, random } = needs
  const state = createState(needs.visitorsMax)
  const board = needs.board ?? createBoard(partitions, needs.visitorsMax)
  if (needs.board === undefined) board.open(partition)
  const orders = createOrders(state, openLeaving(board, partition))
  const kin = createKin(state, needs)
  const lookup = createLookup(state, orders, kin)
  const nonces = createNonces(needs.monotonic)
  const parsers = openParsers()
  const matches = createMatchCounts()
  let opened: Opened[] = []
  let adopting: EventsRecord[] = []
  /** Who of the batch may still lack something, and the visitors that it erases or splits. */
  let lacking: readonly Opened[] = []
  let unsettled: ReadonlySet<string> = new Set()
  /** Rulesets asked for since the batch came: what does not exist is not asked for again. */
  let asked = new Set<string>()
  /** When counters were last asked for. */
  let countersAskedAt = 0

  function drawId(): string {
    for (;;) {
      const id = makeVisitorId(random)
      if (homePartition(id, partitions) === partition) return id
    }
  }

  const judging: JudgeNeeds = {
    partition,
    partitions,
    parsers,
    drawId,
    heldOf: (c, id) => state.visitor(c.tenant + id) ?? null,
    relativesOf: (c, id) => kin.of(c, id),
    tally: (c, visitor, before) => tallyEvent(c.counts, visitor, before, board),
  }

  /** The one way decisions change state: fresh ones and adopted ones alike. */
  function apply(item: DecidedItem): void {
    const prefix = `${item.workspace}/${item.env}/`
    if (item.state.length > 0) {
      state.putVisitor(prefix + item.visitorId, item.state)
      for (const key of item.indexed) state.addToIndex(prefix + key, item.visitorId)
      for (const key of item.left ?? []) state.dropFromIndex(prefix + key, item.visitorId)
    }
    if (item.lesson !== undefined) state.teach(item.lesson[0], item.lesson[1])
    if (item.counted !== undefined) board.add(partition, unpackCounted(item.counted))
    matches.add(item)
    if (item.nonceHash !== 0) nonces.add(item)
  }

  function begin(frames: readonly Frame[]): readonly Wanted[] {
    opened = frames.map((frame) => {
      needs.onRecord?.(frame.seq)
      return openFrame(frame, parsers, needs.locate ?? knowNothing)
    })
    lacking = opened
    unsettled = new Set(opened.filter(isOrder).flatMap(unsettledBy))
    asked = new Set()
    kin.begin(new Map(opened.flatMap(joinedBy)))
    return wanted()
  }

  function wanted(): Wanted[] {
    const found = lookup.wanted(lacking, unsettled)
    lacking = found.lacking
    const all = found.wanted
    const counters = new Set<number>()
    countersAskedAt = board.openings()
    for (const one of opened) {
      // Of all of them each time: other partitions of the thread make room among the counters.
      const left = 'erasure' in one ? keysLeft(state.visitor(scopedId(one.erasure, one.erasure.visitorId))) : []
      for (const key of 'meta' in one ? keysOf(one.counts) : left) if (board.missing(key)) counters.add(key)
      if (!('meta' in one)) continue
      const { workspace, env } = one.meta
      if (needs.ruleset(workspace, env) !== null) continue
      const id = `${workspace}/${env}`
      if (asked.has(id)) continue
      asked.add(id)
      all.push({ kind: 'ruleset', id })
    }
    for (const key of counters) all.push({ kind: VELOCITY, id: String(key) })
    return all
  }

  function load(loaded: readonly Loaded[]): void {
    state.load(loaded)
    for (const { kind, id, value } of loaded) {
      if (kind === VELOCITY) board.load(Number(id), (value as readonly StoredCounter[] | null) ?? [], countersAskedAt)
      else if (kind === KIN) kin.load(id, value as StoredKin)
    }
  }

  function decide(poisoned: ReadonlySet<number>): Decided {
    const replies: Reply[] = []
    const replays: Replay[] = []
    const dead: Dead[] = []
    const logs: RuleLog[] = []
    const erased: DecidedErasure[] = []
    const annotated: DecidedAnnotation[] = []
    let effectsSkipped = 0
    const pack = createPacker(must(opened[0], 'a batch').seq, must(opened.at(-1), 'a batch').seq)

    for (const one of opened) {
      needs.onRecord?.(one.seq)
      if ('broken' in one) {
        dead.push({ seq: one.seq, reason: one.broken })
        continue
      }
      if (isOrder(one)) {
        const decided = orders.decide(one)
        if (decided !== null) pack.addCommand(one.seq, decided)
        if (decided?.erasure !== undefined) erased.push(decided.erasure)
        continue
      }
      if ('annotation' in one) {
        annotated.push(orders.recount(one.annotation))
        pack.addCommand(one.seq, { annotation: must(annotated.at(-1)) })
        continue
      }
      const settled = lookup.settled(one)
      const c = lookup.tokenErased(settled) ? { ...settled, meta: { ...settled.meta, token: null } } : settled
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
      let visitorId = ''
      let held: Uint8Array = NO_STATE
      let indexed: readonly string[] = []
      let left: readonly string[] = []
      let effects: readonly DecidedEffect[] = []
      let lines: readonly LogLine[] = []
      let lesson: Lesson | null = null
      let counted: readonly (number | null)[] | null = null
      try {
        if (poisoned.has(c.seq)) throw new Error('given up after repeated failures')
        const judged = judge(c, lookup.candidates(c), must(ruleset, 'a ruleset for every workspace'), judging)
        event = judged.event
        visitorId = judged.visitor.id
        effectsSkipped += judged.effectsSkipped
        const { held: before, counters, keys } = judged
        indexed = before === null ? keys : keysBeside(keys, before.keys)
        const { survivor = null, parted = [], former = [] } = before ?? {}
        const earlier = before === null ? [] : earlierKeysWith(before, keys)
        // Of an entry that is not loaded, as in a batch with many visits of the same, a later visit takes it out.
        if (earlier.length > 0) left = tooEarly(earlier).filter((key) => !state.missing('index', c.tenant + key))
        const earlierKeys = left.length === 0 ? earlier : earlier.filter((key) => !left.includes(key))
        const more = { counters, survivor, parted, former, earlierKeys }
        held = packHeldVisitor(keys, packVisitor(judged.visitor), more)
        counted = packCounted(judged.counted)
        // Last: what could not be decided after all has none.
        effects = judged.effects
        lines = judged.logs
        lesson = judged.lesson
      } catch (error) {
        const reason = poisoned.has(c.seq) ? 'repeated_failure' : 'evaluation_failed'
        dead.push({ seq: c.seq, reason: `${reason}: ${String(error).slice(0, 500)}` })
        event = failedEvent(meta, drawId(), reason)
        visitorId = event.visitorId
        held = NO_STATE
        indexed = []
        left = []
      }
      const size = pack.addRow(event, partition, c.seq)
      const item = itemOf(c, event, size, { visitorId, state: held, indexed, left, effects, lesson, counted, lines })
      for (const line of lines) logs.push({ requestId: meta.requestId, ...line })
      apply(item)
      pack.add(item)
      if (ruleset !== null) {
        replies.push({
          requestId: meta.requestId,
          replyTo: meta.replyTo,
          body: presentResult(event, ruleset.workspace, meta.keyKind),
        })
      }
    }
    opened = []
    state.rest()
    return { ...pack.finish(), replies, replays, dead, logs, effectsSkipped, erased, annotated }
  }

  function wantedToAdopt(): Wanted[] {
    const wanted = new Map<string, Wanted>()
    countersAskedAt = board.openings()
    const want = (kind: Loadable, id: string) => {
      if (state.missing(kind, id)) wanted.set(`${kind} ${id}`, { kind, id })
    }
    for (const record of adopting) {
      const { items } = record
      for (const one of unflatten(flattenRecord(record))) {
        for (const key of allKeysOf(one)) {
          if (board.missing(key)) wanted.set(`${VELOCITY} ${key}`, { kind: VELOCITY, id: String(key) })
        }
      }
      for (const { workspace, env, indexed, left = [] } of items) {
        for (const key of [...indexed, ...left]) want('index', `${workspace}/${env}/${key}`)
      }
      for (const { lesson } of items) if (lesson !== undefined) want('learned', lesson[0])
      for (const one of orders.wantedToApply(record)) wanted.set(`${one.kind} ${one.id}`, one)
    }
    return [...wanted.values()]
  }

  function adopt(): readonly Reply[] {
    const replies: Reply[] = []
    for (const record of adopting) {
      orders.apply(record)
      record.items.forEach((item, index) => {
        apply(item)
        const ruleset = needs.ruleset(item.workspace, item.env)
        if (ruleset === null || item.replyTo === '') return
        const body = presentResult(fromRow(rowAt(record, index)), ruleset.workspace, item.keyKind)
        replies.push({ requestId: item.requestId, replyTo: item.replyTo, body })
      })
    }
    adopting = []
    state.rest()
    return replies
  }

  return {
    begin,
    provide(loaded) {
      load(loaded)
      return wanted()
    },
    decide,
    beginAdopt(records) {
      adopting = records.map(decodeEventsRecord)
      return wantedToAdopt()
    },
    provideAdopt(loaded) {
      load(loaded)
      return wantedToAdopt()
    },
    adopt,
    restoreNonces: nonces.restore,
    dirtyCount: () => state.dirtyCount() + board.dirtyCount(partition),
    checkpoint() {
      // The state makes room with it: what was there may be gone.
      lacking = opened
      const counters = board
        .takeDirty(partition)
        .map(([key, value]): Dirty => ({ kind: VELOCITY, id: String(key), value }))
      return { dirty: [...state.takeDirty(), ...counters], matches: matches.take(), nonces: nonces.takeAdded() }
    },
  }
}
