// A batch of identifications, and of orders between them, decided in order.

import type { StoredEvent } from '../domain/event.ts'
import { homePartition, makeVisitorId } from '../domain/ids.ts'
import type { DecidedErasure } from '../events/record.ts'
import { presentResult } from '../identity/result.ts'
import { putVisitor } from '../identity/visitor-record.ts'
import { must } from '../lib/must.ts'
import type { DecidedAnnotation } from '../records/annotations.ts'
import type { DecidedEffect, RuleLog } from '../records/effects.ts'
import { VELOCITY } from '../records/partitions.ts'
import { earlierKeysWith, packRecord, tooEarly } from '../records/visitors.ts'
import type { CompiledRuleset } from '../rules/snapshot.ts'
import type { Asking } from './asking.ts'
import { type DecideEventNeeds, decideEvent, type EventDecision } from './decide-event.ts'
import type { Dead, DecidedBatch, FreshReply, Replay } from './decided.ts'
import { failedEvent } from './failed.ts'
import type { Frame } from './frames.ts'
import { itemOf, keysBeside, type VisitOutcome } from './items.ts'
import { createLookup, isOrder, type OpenedRecord } from './lookup.ts'
import { openFrame } from './open-frame.ts'
import { createPacker, type Packer } from './packer.ts'
import type { PartitionParts } from './parts.ts'
import type { WantedEntry } from './state.ts'
import { type Counted, packCounted } from './velocity/counted.ts'
import { putCounters } from './velocity/counters.ts'
import { keysLeft } from './velocity/leaving.ts'
import { tallyEvent } from './velocity/tally.ts'
import { type FailedVisit, type Visit, visitorIdIn } from './visit.ts'
import { joinedBy, scopedId, unsettledBy } from './visitor-commands.ts'

/** A visit as it was decided; `dead`: why it could not be. */
interface DecidedVisit {
  readonly event: StoredEvent
  readonly rowBytes: number
  readonly outcome: VisitOutcome
  readonly counted: Counted | null
  readonly effectsSkipped: number
  readonly dead: string | null
}

const NO_STATE = new Uint8Array(0)
const NO_KEYS: readonly string[] = []
const NOTHING_BEFORE = { survivor: null, parted: [], former: [], earlierKeys: NO_KEYS }

/** `shrinks` says how often the state has made room so far. */
export function createDeciding(parts: PartitionParts, shrinks: () => number) {
  const { needs, state, board, orders, mergedRecords, nonces, parsers, locate } = parts
  const { partition, partitions, random } = needs
  let healingsDropped = 0
  const lookup = createLookup(state, orders, mergedRecords, parts.healings !== null)

  function drawId(): string {
    for (;;) {
      const id = makeVisitorId(random)
      if (homePartition(id, partitions) === partition) return id
    }
  }

  const decideNeeds: DecideEventNeeds = {
    partition,
    partitions,
    parsers,
    drawId,
    heldOf: (c, id) => state.visitor(visitorIdIn(c, id)) ?? null,
    relativesOf: (c, id) => mergedRecords.of(c, id),
    tally: (c, visitor, before) => tallyEvent(c.counts, visitor, before, board),
  }

  /** What is missing besides entries of the state; `asked`: rulesets asked for since the batch came, which are not asked for again. */
  function wantedBeside(opened: readonly OpenedRecord[], asked: Set<string>, wanted: WantedEntry[]): void {
    const counters = new Set<number>()
    for (const one of opened) {
      // Of all of them each time: other partitions of the thread make room among the counters.
      if (!('meta' in one)) {
        const left = 'erasure' in one ? keysLeft(state.visitor(scopedId(one.erasure, one.erasure.visitorId))) : []
        for (const key of left) if (board.missing(key)) counters.add(key)
        continue
      }
      if ('counts' in one) {
        const { ipKey, linkedKey } = one.counts
        if (board.missing(ipKey)) counters.add(ipKey)
        if (linkedKey !== 0 && board.missing(linkedKey)) counters.add(linkedKey)
      }
      const { workspace, env } = one.meta
      if (needs.ruleset(workspace, env) !== null) continue
      const id = `${workspace}/${env}`
      if (asked.has(id)) continue
      asked.add(id)
      wanted.push({ kind: 'ruleset', id })
    }
    for (const key of counters) wanted.push({ kind: VELOCITY, id: String(key) })
  }

  function* provided(opened: readonly OpenedRecord[]): Asking<void> {
    /** Visitors that the batch erases or splits. */
    const ordered = opened.filter(isOrder)
    const unsettled = new Set(ordered.flatMap(unsettledBy))
    const asked = new Set<string>()
    // Of a batch that was given up on.
    lookup.forget()
    mergedRecords.begin(new Map(ordered.flatMap(joinedBy)))
    let lacking = opened
    for (;;) {
      const askedAt = board.openings()
      const found = lookup.wanted(lacking, unsettled)
      wantedBeside(opened, asked, found.wanted)
      if (found.wanted.length === 0) return
      const before = shrinks()
      const loaded = yield found.wanted
      // Where the state made room meanwhile, what was there may be gone.
      lacking = shrinks() === before ? found.lacking : opened
      parts.load(loaded, askedAt)
    }
  }

  function decideVisit(c: Visit, ruleset: CompiledRuleset | null, pack: Packer): DecidedVisit {
    try {
      const decision = decideEvent(c, lookup.candidates(c), must(ruleset, 'a ruleset for every workspace'), decideNeeds)
      const { event, visitor, held: before, counters, keys } = decision
      const earlier = before === null ? NO_KEYS : earlierKeysWith(before, keys)
      // Of an entry that is not loaded, as in a batch with many visits of the same, a later visit takes it out.
      const left =
        earlier.length === 0 ? NO_KEYS : tooEarly(earlier).filter((key) => !state.missing('index', c.tenant + key))
      const earlierKeys = left.length === 0 ? earlier : earlier.filter((key) => !left.includes(key))
      const kept = before ?? NOTHING_BEFORE
      const { survivor, parted, former } = kept
      const hasEarlierKeys = earlierKeys.length > 0 || kept.earlierKeys.length > 0
      const more = hasEarlierKeys ? { survivor, parted, former, earlierKeys } : kept
      const outcome: VisitOutcome = {
        visitorId: visitor.id,
        state: packRecord(keys, visitor, putVisitor, counters, putCounters, more),
        indexed: before === null ? keys : keysBeside(keys, before.keys),
        left,
        effects: withHealing(decision),
        lesson: decision.lesson,
        counted: packCounted(decision.counted),
        lines: decision.logs,
      }
      const rowBytes = pack.addRow(event, partition, c.seq)
      return {
        event,
        rowBytes,
        outcome,
        counted: decision.counted,
        effectsSkipped: decision.effectsSkipped,
        dead: null,
      }
    } catch (error) {
      return failVisit({ ...c, failed: 'evaluation_failed', why: String(error) }, pack)
    }
  }

  function failVisit({ meta, seq, failed, why }: FailedVisit, pack: Packer): DecidedVisit {
    const event = failedEvent(meta, drawId(), failed)
    const nothing = { indexed: [], left: [], effects: [], lesson: null, counted: null, lines: [] }
    return {
      event,
      rowBytes: pack.addRow(event, partition, seq),
      outcome: { visitorId: event.visitorId, state: NO_STATE, ...nothing },
      counted: null,
      effectsSkipped: 0,
      dead: `${failed}: ${why.slice(0, 500)}`,
    }
  }

  /** As many in a second as are allowed; what is beyond is not decided, and counted. */
  function withHealing({ effects, healing }: EventDecision): readonly DecidedEffect[] {
    if (healing === null) return effects
    if (parts.healings?.take() === true) return [...effects, { type: 'heal', ...healing }]
    healingsDropped++
    return effects
  }

  /** What the token of a visit says by now: it names another visitor since a split, or counts as none. */
  function settled(given: Visit): Visit {
    const c = lookup.settled(given)
    return lookup.tokenErased(c) ? { ...c, meta: { ...c.meta, token: null }, tokenId: null } : c
  }

  function decideAll(opened: readonly OpenedRecord[]): DecidedBatch {
    const replies: FreshReply[] = []
    const replays: Replay[] = []
    const dead: Dead[] = []
    const logs: RuleLog[] = []
    const erased: DecidedErasure[] = []
    const annotated: DecidedAnnotation[] = []
    let effectsSkipped = 0
    healingsDropped = 0
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
        const annotation = orders.recount(one.annotation)
        annotated.push(annotation)
        pack.addCommand(one.seq, { annotation })
        continue
      }
      const c = 'failed' in one ? one : settled(one)
      const { requestId, replyTo, keyKind, workspace, env, acceptedAt } = c.meta
      const first = c.nonceHash === 0 ? null : nonces.find(c.nonceHash, acceptedAt)
      if (first !== null) {
        const conflict = first.bodyHash !== c.bodyHash
        replays.push({ requestId, replyTo, keyKind, workspace, env, original: first.requestId, conflict })
        continue
      }
      const ruleset = needs.ruleset(workspace, env)
      const decided = 'failed' in c ? failVisit(c, pack) : decideVisit(c, ruleset, pack)
      const { event, outcome } = decided
      if (decided.dead !== null) dead.push({ seq: c.seq, reason: decided.dead })
      effectsSkipped += decided.effectsSkipped
      const item = itemOf(c, event, decided.rowBytes, outcome)
      for (const line of outcome.lines) logs.push({ requestId, ...line })
      parts.apply(item, c.tenant, visitorIdIn(c, item.visitorId), decided.counted)
      pack.add(item)
      if (ruleset === null) continue
      const body = presentResult(event, ruleset.workspace, keyKind)
      replies.push({ requestId, replyTo, body, acceptedAt, verdict: event.verdict, env })
    }
    state.rest()
    board.rest()
    lookup.forget()
    const { records, placed, effects, counted } = pack.finish()
    // Named one by one: what a spread makes has no shape that the compiler knows again, and batches may be small.
    return {
      records,
      placed,
      replies,
      replays,
      dead,
      logs,
      effects,
      effectsSkipped,
      healingsDropped,
      counted,
      erased,
      annotated,
    }
  }

  /** Records in `poisoned` are given up on. */
  return function* decide(frames: readonly Frame[], poisoned: ReadonlySet<number>): Asking<DecidedBatch> {
    const opened = frames.map((frame) => {
      needs.onRecord?.(frame.seq)
      return openFrame(frame, parsers, locate, poisoned.has(frame.seq))
    })
    yield* provided(opened)
    return decideAll(opened)
  }
}
