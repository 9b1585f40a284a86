// One partition, pure: from a batch of identifications and what is known, to decisions, and from decisions back to state.
// It runs in a worker thread in the product and in-process in the protocol's model test.

import type { StoredEvent } from '../domain/event.ts'
import { homePartition, makeVisitorId, type RandomBytes } from '../domain/ids.ts'
import { type DecidedItem, decodeEventsRecord, encodeEventsRecord, type EventsRecord, rowAt } from '../events/record.ts'
import { fromRow, toRow } from '../events/row.ts'
import { openParsers } from '../identity/parsers.ts'
import { packVisitor, unpackVisitor, type VisitorState } from '../identity/visitor.ts'
import { must } from '../lib/must.ts'
import { RECORD_BYTES_MAX } from '../log/log.ts'
import { holdVisitor, unpackHeldVisitor } from '../records/visitors.ts'
import type { CompiledRuleset } from '../rules/snapshot.ts'
import { failedEvent } from './failed.ts'
import type { Frame } from './frames.ts'
import { type Candidates, type Case, judge, openCase, type RuleLog } from './judge.ts'
import { createNonces } from './nonces.ts'
import { presentResult } from '../identity/result.ts'
import { createState, type Dirty, type Loaded, type Wanted } from './state.ts'


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
}

export interface MatchCount {
  readonly id: string
  readonly matched: number
  readonly monitored: number
  readonly lastMatchAt: number
}

export interface Checkpoint {
  readonly dirty: readonly Dirty[]
  /** Increments since the previous checkpoint, by workspace/env/ruleId. */
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
  readonly ruleset: (workspace: string, env: string) => CompiledRuleset | null
  /** Clean visitors kept in memory. */
  readonly visitorsMax: number
}

const EXACT_CANDIDATES_MAX = 8
const LINKED_CANDIDATES_MAX = 32
const PER_KEY_MAX = 10
/** Room for a header beside rows and states. */
const RECORD_BYTES_GOAL = RECORD_BYTES_MAX - 150_000
const ITEM_OVERHEAD_BYTES = 400
const NO_STATE = new Uint8Array(0)

type Opened = Case | { readonly seq: number; readonly broken: string }

export function createPartition(needs: PartitionNeeds): Partition {
  const { partition, partitions, random } = needs
  const state = createState(needs.visitorsMax)
  const nonces = createNonces()
  const parsers = openParsers()
  let matches = new Map<string, MatchCount>()
  let opened: Opened[] = []
  let adopting: EventsRecord[] = []

  const scoped = (c: { meta: { workspace: string; env: string } }, id: string) => `${c.meta.workspace}/${c.meta.env}/${id}`

  function held(id: string): VisitorState | null {
    const visitor = state.visitor(id)
    return visitor ? unpackVisitor(visitor.state) : null
  }

  /** Ids to compare with, newest first: look-alikes under the exact key, else whatever shares a blocking key. */
  function candidateIds(c: Case): { exact: string[]; linked: string[] } {
    const { exactKey } = c
    const exact = exactKey === null ? [] : [...(state.index(scoped(c, exactKey))?.ids ?? [])].reverse()
    if (exact.length > 0) return { exact: exact.slice(0, EXACT_CANDIDATES_MAX), linked: [] }
    const linked = new Set<string>()
    for (const key of c.keys) {
      if (key === exactKey) continue
      for (const id of (state.index(scoped(c, key))?.ids ?? []).slice(-PER_KEY_MAX).reverse()) {
        if (linked.size < LINKED_CANDIDATES_MAX) linked.add(id)
      }
    }
    return { exact: [], linked: [...linked] }
  }

  function wantedFor(c: Case): Wanted[] {
    const wanted: Wanted[] = []
    const want = (kind: Wanted['kind'], id: string) => {
      if (state.missing(kind, id)) wanted.push({ kind, id })
    }
    if (c.meta.token !== null) {
      const id = scoped(c, c.meta.token.visitorId)
      want('visitor', id)
      const known = state.visitor(id)
      // Only keys this visitor was not indexed under will be written, so only those must be known.
      if (known !== undefined) for (const key of c.keys) if (!known?.keys.includes(key)) want('index', scoped(c, key))
      return wanted
    }
    for (const key of c.keys) want('index', scoped(c, key))
    if (wanted.length > 0) return wanted
    const { exact, linked } = candidateIds(c)
    for (const id of [...exact, ...linked]) want('visitor', scoped(c, id))
    return wanted
  }

  function wantedNow(): Wanted[] {
    const wanted = new Map<string, Wanted>()
    for (const c of opened) {
      if ('broken' in c) continue
      for (const w of wantedFor(c)) wanted.set(`${w.kind} ${w.id}`, w)
    }
    return [...wanted.values()]
  }

  function drawId(): string {
    for (;;) {
      const id = makeVisitorId(random)
      if (homePartition(id, partitions) === partition) return id
    }
  }

  function candidatesFor(c: Case): Candidates {
    if (c.meta.token !== null) {
      return { tokenVisitor: held(scoped(c, c.meta.token.visitorId)), exact: [], linked: [] }
    }
    const { exact, linked } = candidateIds(c)
    const states = (ids: string[]) => ids.map((id) => held(scoped(c, id))).filter((v) => v !== null)
    return { tokenVisitor: null, exact: states(exact), linked: states(linked) }
  }

  /** The one way decisions change state: fresh ones and adopted ones alike. */
  function apply(item: DecidedItem): void {
    const prefix = `${item.workspace}/${item.env}/`
    if (item.state.length > 0) {
      state.putVisitor(prefix + item.visitorId, unpackHeldVisitor(item.state))
      for (const key of item.indexed) state.addToIndex(prefix + key, item.visitorId)
    }
    for (const [ruleId, live] of item.matches) {
      const id = prefix + ruleId
      const count = matches.get(id) ?? { id, matched: 0, monitored: 0, lastMatchAt: 0 }
      matches.set(id, {
        id,
        matched: count.matched + live,
        monitored: count.monitored + 1 - live,
        lastMatchAt: live === 1 ? Math.max(count.lastMatchAt, item.acceptedAt) : count.lastMatchAt,
      })
    }
    if (item.nonceHash !== 0) nonces.add(item)
  }

  function itemOf(c: Case, event: StoredEvent, state: Uint8Array, indexed: readonly string[], row: string): DecidedItem {
    return {
      seq: c.seq,
      requestId: event.requestId,
      workspace: event.workspace,
      env: event.env,
      visitorId: event.visitorId,
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
    }
  }

  function open(frame: Frame): Opened {
    try {
      return openCase(frame, parsers)
    } catch {
      return { seq: frame.seq, broken: 'unreadable' }
    }
  }

  function begin(frames: readonly Frame[]): readonly Wanted[] {
    opened = frames.map(open)
    return wantedNow()
  }

  function decide(poisoned: ReadonlySet<number>): Decided {
    const replies: Reply[] = []
    const replays: Replay[] = []
    const dead: Dead[] = []
    const logs: RuleLog[] = []
    const pack = createPacker(must(opened[0], 'a batch').seq, must(opened.at(-1), 'a batch').seq)

    for (const c of opened) {
      if ('broken' in c) {
        dead.push({ seq: c.seq, reason: c.broken })
        continue
      }
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
      try {
        if (poisoned.has(c.seq)) throw new Error('given up after repeated failures')
        const judged = judge(c, candidatesFor(c), must(ruleset, 'a ruleset for every workspace'), drawId)
        event = judged.event
        logs.push(...judged.logs)
        const before = state.visitor(scoped(c, event.visitorId))
        indexed = c.keys.filter((key) => !before?.keys.includes(key))
        held = holdVisitor(c.keys, packVisitor(judged.visitor)).packed
      } catch (error) {
        const reason = poisoned.has(c.seq) ? 'repeated_failure' : 'evaluation_failed'
        dead.push({ seq: c.seq, reason: `${reason}: ${String(error).slice(0, 500)}` })
        event = failedEvent(meta, drawId(), reason)
      }
      const row = toRow(event, partition, c.seq)
      const item = itemOf(c, event, held, indexed, row)
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
    return { ...pack.finish(), replies, replays, dead, logs }
  }

  function adopt(): readonly Reply[] {
    const replies: Reply[] = []
    for (const record of adopting) {
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
      return wantedNow()
    },
    decide,
    beginAdopt(records) {
      adopting = records.map(decodeEventsRecord)
      const wanted = new Map<string, Wanted>()
      for (const record of adopting) {
        for (const { workspace, env, indexed } of record.items) {
          for (const key of indexed) {
            const id = `${workspace}/${env}/${key}`
            if (state.missing('index', id)) wanted.set(id, { kind: 'index', id })
          }
        }
      }
      return [...wanted.values()]
    },
    provideAdopt: state.load,
    adopt,
    restoreNonces: nonces.restore,
    dirtyCount: state.dirtyCount,
    checkpoint() {
      const counted = [...matches.values()]
      matches = new Map()
      return { dirty: state.takeDirty(), matches: counted, nonces: nonces.takeAdded() }
    },
  }
}

/** Gathers items into records below the log's limit whose source ranges join without a gap. */
function createPacker(from: number, to: number) {
  const records: Uint8Array[] = []
  const placed: string[][] = []
  let items: DecidedItem[] = []
  let rows: string[] = []
  let bytes = 0
  let start = from

  function close(end: number): void {
    records.push(encodeEventsRecord({ from: start, to: end, items, rows: Buffer.from(rows.join('')) }))
    placed.push(items.map((item) => item.requestId))
    start = end + 1
    items = []
    rows = []
    bytes = 0
  }

  return {
    add(item: DecidedItem, row: string): void {
      const size = item.rowBytes + item.state.length + ITEM_OVERHEAD_BYTES
      if (items.length > 0 && bytes + size > RECORD_BYTES_GOAL) close(item.seq - 1)
      items.push(item)
      rows.push(`${row}\n`)
      bytes += size
    },
    finish(): { readonly records: readonly Uint8Array[]; readonly placed: readonly (readonly string[])[] } {
      close(to)
      return { records, placed }
    },
  }
}
