// The engine: owner of partitions. Next batch → load → decide (pure) → append, fenced → reply → checkpoint.
// Rules R1–R6 of the protocol are here; src/README.md lists them.

import { decodeEventsRecord } from '../events/record.ts'
import type { Put } from '../kv/kv.ts'
import { Conflict } from '../lib/failures.ts'
import { must } from '../lib/must.ts'
import type { Seq } from '../log/log.ts'
import { annotatingPuts } from '../records/annotations.ts'
import type { RuleLog } from '../records/effects.ts'
import { announceAgain, erasingPuts } from '../records/erasures.ts'
import { DECIDED_TO, ENGINE_POSITION, partitionScope, SINK_POSITION } from '../records/partitions.ts'
import { commitCheckpoint, loadFrom, type NonceChunks, openNonceChunks } from './checkpoint.ts'
import { appendEffects, effectsOf, type RecordEffects } from './effects.ts'
import type { CheckpointBounds, EngineNeeds } from './engine-needs.ts'
import { ruleLogsOf } from './items.ts'
import { createPoisonRetry } from './poison-retry.ts'
import { openSettling } from './settling.ts'
import { flattenRecord } from './velocity/counted.ts'
import type { CounterFeed } from './velocity/feed.ts'

/** The checkpoint says nothing about where this partition stands: only a rebuild can. */
export class MissingPosition extends Error {
  override readonly name = 'MissingPosition'
}

const BATCH_RECORDS_MAX = 256
const BATCH_BYTES_MAX = 4_194_304
/** Of some hundred events, so that what they change fits a commit of the kv along with what was adopted before. */
const ADOPT_BYTES_MAX = 524_288
const CHECKPOINT_MS = 200
/** More than a few events wait for `checkpointMsMax`: what is seen often is then written once. */
const FEW_EVENTS = 8
/** What a successor has to adopt at most, of which it takes in some ten thousand in a second. */
const CHECKPOINT_EVENTS = 20_000
/** A commit of the kv takes twice as many entries as a checkpoint that repeats the one before may have. */
const BOUNDS: CheckpointBounds = { entriesMax: 6_000, adoptRecordsMax: 64 }
const IDLE_WAIT_MS = { takingOver: 1_000, caughtUp: 5_000 }
/** A checkpoint is due, and the one before is still being stored: so often it is looked whether it is. */
const STORED_LOOK_MS = 50
const RETRY_MS = 200

/** Owns a partition until `signal` aborts, tenure after tenure. Rejects only with MissingPosition. */
export async function runPartition(needs: EngineNeeds, partition: number, signal: AbortSignal): Promise<void> {
  const poisonRetry = createPoisonRetry(BATCH_RECORDS_MAX, needs.givenUp?.(partition) ?? [])
  while (!signal.aborted) {
    try {
      await own(needs, partition, poisonRetry, signal)
    } catch (error) {
      needs.recent.drop(partition)
      needs.report.lost(partition, error)
      if (error instanceof MissingPosition) throw error
      await needs.clock.sleep(RETRY_MS, signal)
    }
  }
}

type PoisonRetry = ReturnType<typeof createPoisonRetry>

/** One tenure: adopt what was decided, then decide what follows. Throws when somebody else was faster, or a port failed. */
async function own(
  needs: EngineNeeds,
  partition: number,
  poisonRetry: PoisonRetry,
  signal: AbortSignal,
): Promise<void> {
  const { log, kv, decider, recent, clock, counters } = needs
  const basis = log.basis()
  const chunks = openNonceChunks(kv, clock, partition)
  const { checkpointed, seq, ...takenOver } = await takeOver(needs, partition, chunks)
  let { decidedTo, undurable } = takenOver
  const load = loadFrom(kv, { ...needs, partition }, needs.loadRuleset, () => settling.checkpointed())
  // What was accepted before us and is still undecided is known to nobody: until it is decided, "no such event" may be wrong.
  const backlogTo = await log.last('identifications', partition)
  const noteProgress = (to: Seq) => {
    if (to >= backlogTo) recent.setCaughtUp(partition, true)
  }
  noteProgress(decidedTo)

  let checkpointAt = clock.monotonic()
  const fresh = needs.freshness.own(partition, signal)
  const { checkpointMsMax, bounds: { entriesMax } = BOUNDS } = needs
  const turnMs = (partition / needs.partitions) * checkpointMsMax
  /** Partitions take turns: together they would hold up whoever writes log and kv for as long as all of them take. */
  const nextTurn = () => checkpointAt + checkpointMsMax - ((checkpointAt + checkpointMsMax - turnMs) % checkpointMsMax)
  const dueAt = () => (undurable > FEW_EVENTS && !fresh.isAsked() ? nextTurn() : checkpointAt + CHECKPOINT_MS)
  if (undurable > 0) fresh.changed()
  /** Ends a wait for records when the tenure ends or somebody asks. */
  function readSignal(): AbortSignal {
    const asked = fresh.signal()
    return asked.aborted ? signal : asked
  }

  const settling = openSettling({ ...needs, partition, basis, chunks, fresh, seq, checkpointed, noteProgress })

  /** Holds on to nothing of what it read: while decisions wait for the disk, parsed bodies would outlive a scavenge. */
  async function decideNext() {
    const due = Math.max(0, dueAt() - clock.monotonic())
    const batch = await log.read(
      'identifications',
      partition,
      decidedTo,
      {
        recordsMax: poisonRetry.recordsMax(),
        bytesMax: BATCH_BYTES_MAX,
        // R2: decided as soon as they are submitted; their decisions are durable only behind them.
        submitted: true,
        waitMsMax: undurable > 0 ? Math.max(Math.ceil(due), settling.isStored() ? 0 : STORED_LOOK_MS) : idleWaitMs(),
      },
      readSignal(),
    )
    if (batch.length === 0) return null
    const begunAt = clock.now()
    const from = clock.monotonic()
    const { decided, dirtyCount, isRepeating } = await poisonRetry.attempt(batch, (poisoned) =>
      holding(counters, () => decider.decide(partition, batch, poisoned, load)),
    )
    const times = { begunAt, decideMs: clock.monotonic() - from }
    // Where checkpoints write the same entries again and again, larger ones write each of them once (D230).
    const isFull = dirtyCount >= (isRepeating ? 2 * entriesMax : entriesMax)
    return { decided, isFull, times, count: batch.length, to: must(batch.at(-1), 'a last record').seq }
  }

  /** Without a pause now and then a batch that could not be settled would go unnoticed, or that the backlog was lost. */
  function idleWaitMs(): number {
    return settling.isIdle() && recent.caughtUp(partition) ? IDLE_WAIT_MS.caughtUp : IDLE_WAIT_MS.takingOver
  }

  /** A failover of the kv may have taken the last checkpoint with it: what it had is adopted from the log, even where nobody comes. */
  async function confirmStored(): Promise<void> {
    const stored = await kv.position(partitionScope(partition), ENGINE_POSITION)
    if (stored !== settling.checkpointed()) throw new Conflict(`the kv has partition ${partition} at another position`)
  }

  function taken(): void {
    undurable = 0
    checkpointAt = clock.monotonic()
  }

  try {
    while (!signal.aborted) {
      const next = await decideNext()
      if (next !== null) {
        const { decided, isFull, times } = next
        // R3: an erasure is told to nobody before the state without the visitor is the one that is stored.
        const isErasing = decided.erased.length > 0
        if (isErasing) await settling.rest()
        else await settling.room()
        // Where the kv is slow, decisions that went on would change more than one commit of it takes, and no checkpoint came any more.
        if (isFull) await settling.stored()
        decidedTo = next.to
        undurable += next.count
        fresh.changed()
        const isDue = undurable >= CHECKPOINT_EVENTS || isFull || clock.monotonic() >= dueAt()
        const withCheckpoint = isErasing || (isDue && settling.isStored())
        settling.add(decided, decidedTo, times, withCheckpoint)
        if (withCheckpoint) taken()
      } else {
        await settling.settled()
        if (undurable === 0 && settling.isIdle()) await confirmStored()
        // Nothing is left, even where the log says there was: what it lost will be decided by nobody.
        if (!signal.aborted) noteProgress(backlogTo)
        if (undurable > 0 && clock.monotonic() >= dueAt() && settling.isStored()) {
          taken()
          // Nobody waits until it is stored: under load there is often nothing to decide at the very moment when it is due.
          settling.checkpoint(decidedTo)
        }
      }
    }
    await settling.rest()
    if (undurable > 0) settling.checkpoint(decidedTo)
    await settling.rest()
  } finally {
    await settling.rest().catch(() => undefined)
    fresh.end()
    await decider.forget(partition).catch(() => undefined)
  }
}

/** What a thread is told to forget because the kv has it must not be missing in what was read from the kv just before. */
async function holding<T>({ hold }: Pick<CounterFeed, 'hold'>, action: () => Promise<T>): Promise<T> {
  const release = hold()
  try {
    return await action()
  } finally {
    release()
  }
}

/** R1: decisions that are in the log are adopted, never remade. */
async function takeOver(needs: EngineNeeds, partition: number, chunks: NonceChunks) {
  const { log, kv, decider, recent, clock, bounds: { adoptRecordsMax, entriesMax } = BOUNDS } = needs
  const scope = partitionScope(partition)
  const stored = await kv.position(scope, ENGINE_POSITION)
  const sunk = await kv.position(scope, SINK_POSITION)
  const [decided] = await kv.get<number>(scope, [DECIDED_TO])
  // A new deployment writes its first positions as 0 and nothing else; any later checkpoint also says what was decided.
  let decidedTo = decided?.value ?? (stored === 0 ? 0 : null)
  if (stored === null || sunk === null || decidedTo === null) {
    throw new MissingPosition(`partition ${partition} has no position in the kv: run rebuild`)
  }
  let checkpointed = stored
  await decider.open(partition, await chunks.read())
  const load = loadFrom(kv, { ...needs, partition }, needs.loadRuleset, () => checkpointed)
  recent.drop(partition)

  let seq = Math.min(checkpointed, sunk)
  let adopted = 0
  let lostUpTo = 0
  let news: Put[] = []
  /** What is adopted may be stored, and what it announces is. */
  const confirm = async (): Promise<void> => {
    // Had somebody else made a checkpoint meanwhile, records behind it may be trimmed and some be missing here, and entries that were
    // read since would already hold what is applied to them.
    if ((await kv.position(scope, ENGINE_POSITION)) !== checkpointed) {
      throw new Conflict(`partition ${partition} was checkpointed while it was taken over`)
    }
    if (news.length > 0 && !(await announceAgain(kv, partition, news, sunk))) {
      throw new Conflict(`the sink of partition ${partition} moved while it was taken over`)
    }
    news = []
  }
  const limits = { recordsMax: adoptRecordsMax, bytesMax: ADOPT_BYTES_MAX, waitMsMax: 0 }
  for (;;) {
    const records = await log.read('events', partition, seq, limits)
    if (records.length === 0) {
      seq = Math.max(seq, checkpointed, lostUpTo)
      const last = await log.last('events', partition)
      if (last === seq) break
      // Either the partition grew meanwhile, which the next read shows, or what was between is gone for good: a log that was
      // lost and made anew goes on above all it ever held.
      if (lostUpTo === last) throw new Conflict(`events/${partition} ends before its checkpoint`)
      lostUpTo = last
      continue
    }
    const effects: RecordEffects[] = []
    const lines: RuleLog[] = []
    const unapplied = records.filter((r) => r.seq > checkpointed)
    adopted += unapplied.length
    let dirtyCount = 0
    if (unapplied.length > 0) {
      const all = unapplied.map((r) => r.bytes)
      const done = await holding(needs.counters, () => decider.adopt(partition, all, load))
      needs.reply(done.replies, [])
      dirtyCount = done.dirtyCount
    }
    for (const record of records) {
      const decoded = decodeEventsRecord(record.bytes)
      const { items, to, erasure, annotation } = decoded
      if (record.seq > checkpointed) {
        effects.push(effectsOf(record.seq, decoded))
        lines.push(...items.flatMap(ruleLogsOf))
        needs.counters.decided(partition, seq, record.seq, flattenRecord(decoded))
      }
      if (record.seq > sunk && record.seq > checkpointed) {
        if (erasure !== undefined) news.push(...erasingPuts([erasure]))
        if (annotation !== undefined) news.push(...annotatingPuts([annotation]))
      }
      if (record.seq > sunk)
        recent.add(
          partition,
          record.seq,
          items.map((item) => item.requestId),
        )
      if (record.seq > checkpointed) decidedTo = to
      seq = record.seq
    }
    // Whether the last owner came to write and append them is not known.
    if (lines.length > 0) needs.report.ruleLogs(lines)
    await appendEffects({ ...needs.effects, log, clock }, partition, effects)
    if (dirtyCount < entriesMax) continue
    // What the owner before had not stored yet may be more than one commit takes.
    await confirm()
    const part = await decider.checkpoint(partition)
    checkpointed = await commitCheckpoint(kv, clock, partition, part, chunks, checkpointed, seq, decidedTo)
    needs.counters.stored(partition, checkpointed)
    adopted = 0
  }
  await confirm()
  // Up to where the log lost what it had nothing is left to be adopted: readers who compare it with the checkpoint are to see that.
  return { checkpointed, seq, decidedTo, undurable: Math.max(adopted, seq > checkpointed ? 1 : 0) }
}
