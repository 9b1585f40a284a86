// What follows the decisions of one tenure, in their order: where the log knows places at once, batches are appended behind one another
// without waiting for the disk. What needs decisions to be durable is done when they are: counts, places, answers, side effects, checkpoints.

import { Conflict } from '../lib/failures.ts'
import { must } from '../lib/must.ts'
import type { Seq } from '../log/log.ts'
import { annotatingPuts } from '../records/annotations.ts'
import { announce, erasingPuts } from '../records/erasures.ts'
import { appendDead, appendFenced, awaitDurable, persist } from './append.ts'
import { commitCheckpoint, type NonceChunks } from './checkpoint.ts'
import type { BatchTimes, Checkpoint, DecidedBatch } from './decided.ts'
import { appendEffects, type RecordEffects } from './effects.ts'
import type { EngineNeeds } from './engine-needs.ts'
import type { OwnedFreshness } from './freshness.ts'

export interface SettlingNeeds extends Omit<EngineNeeds, 'freshness'> {
  readonly partition: number
  /** At which the identifications are read. */
  readonly basis: number
  readonly chunks: NonceChunks
  readonly fresh: Pick<OwnedFreshness, 'taken'>
  /** Where the decisions and their checkpoint stand. */
  readonly seq: Seq
  readonly checkpointed: Seq
  /** Told up to where identifications have decisions that are durable. */
  readonly noteProgress: (to: Seq) => void
}

export interface Settling {
  /** Resolves when another batch may be added. Like the others it throws what ended the tenure. */
  room(): Promise<void>
  /** Takes over what was decided of the identifications up to `to`, before anything else is decided. */
  add(decided: DecidedBatch, to: Seq, times: Omit<BatchTimes, 'flushMs'>, withCheckpoint: boolean): void
  /** Resolves when all that was added is settled. */
  settled(): Promise<void>
  /** Resolves when that is stored as well, as far as it was taken for a checkpoint. */
  rest(): Promise<void>
  /** Takes all that was decided, where all of it is settled and what was taken before is stored. What fails the others throw. */
  checkpoint(to: Seq): void
  /** What was taken for the last checkpoint is in the kv; before that none can be taken. */
  isStored(): boolean
  /** Resolves when it is. Throws what failed. */
  stored(): Promise<void>
  checkpointed(): Seq
  /** Nothing is under way, and nothing has failed. */
  isIdle(): boolean
}

/** Batches under way and the bytes of their records, beyond which the engine waits. */
const UNDER_WAY_MAX = { pipelined: 4, oneByOne: 1 }
const BYTES_MAX = 2_097_152

export function openSettling(needs: SettlingNeeds): Settling {
  const { log, kv, clock, decider, counters, recent, partition, basis, chunks, fresh } = needs
  const effectsNeeds = { ...needs.effects, log, clock }
  const underWayMax = log.pipelined ? UNDER_WAY_MAX.pipelined : UNDER_WAY_MAX.oneByOne
  /** Where the next record goes, or will go. */
  let head: Seq | Promise<Seq> = needs.seq
  let durable = needs.seq
  let { checkpointed } = needs
  let failure: { readonly error: unknown } | null = null
  /** Of the batches that are not settled yet, in order; none rejects. */
  const underWay: Promise<void>[] = []
  let bytes = 0
  /** Nothing is appended behind the last batch before it is settled. */
  let isAlone = false
  /** Of what was taken for a checkpoint the kv may not have all yet. */
  let isTaken = false
  let storing: Promise<void> = Promise.resolve()

  const appendAt = (record: Uint8Array, after: Seq, onPlaced: (seq: Seq) => void): Promise<Seq> =>
    appendFenced(log, clock, partition, record, { expectLast: after, basis, onPlaced })

  function append(record: Uint8Array): Promise<Seq> {
    if (typeof head !== 'number') {
      // Where the log does not say at once what place it gives, each waits for the one before.
      const appended = head.then((after) => appendAt(record, after, () => undefined))
      head = appended
      return appended
    }
    let place: Seq | null = null
    const appended = appendAt(record, head, (seq) => {
      place = seq
    })
    head = place ?? appended
    return appended
  }

  function submit({ records }: DecidedBatch): readonly Promise<Seq>[] {
    const submitted = records.map(append)
    // What fails is told by the first that did.
    for (const one of submitted) one.catch(() => undefined)
    return submitted
  }

  /** Before the decisions: where these fail, what was decided must be there to be decided again. */
  async function tellFirst(decided: DecidedBatch, to: Seq): Promise<void> {
    const news = newsOf(decided)
    await awaitDurable(log, clock, partition, { seq: to, basis })
    await appendDead(log, clock, partition, decided.dead)
    if (news.length === 0) return
    const announced = await persist(clock, () => announce(kv, partition, news, durable))
    if (!announced) throw new Conflict(`somebody else has decided the commands of partition ${partition}`)
  }

  async function settle(
    decided: DecidedBatch,
    appended: readonly Promise<Seq>[],
    to: Seq,
    times: Omit<BatchTimes, 'flushMs'>,
    addedAt: number,
  ): Promise<void> {
    const effects: RecordEffects[] = []
    for (const [i, one] of appended.entries()) {
      const after = durable
      durable = await one
      counters.decided(partition, after, durable, must(decided.counted[i], 'counts of a record'))
      recent.add(partition, durable, must(decided.placed[i], 'places of a record'))
      effects.push({ seq: durable, events: decided.effects[i] ?? [], erased: [] })
    }
    const flushMs = clock.monotonic() - addedAt
    needs.noteProgress(to)
    needs.reply(decided.replies, decided.replays)
    const { begunAt, decideMs } = times
    needs.report.decided(partition, decided, { begunAt, decideMs, flushMs })
    if (decided.logs.length > 0) needs.report.ruleLogs(decided.logs)
    if (decided.effectsSkipped > 0) needs.report.effectsSkipped(decided.effectsSkipped)
    if (decided.healingsDropped > 0) needs.report.healingsDropped(decided.healingsDropped)
    effects.push({ seq: durable, events: [], erased: decided.erased })
    await appendEffects(effectsNeeds, partition, effects)
  }

  async function commit(checkpoint: Checkpoint, to: Seq): Promise<void> {
    checkpointed = await commitCheckpoint(kv, clock, partition, checkpoint, chunks, checkpointed, durable, to)
    counters.stored(partition, checkpointed)
  }

  function fail(error: unknown): void {
    failure ??= { error }
  }

  function take(): Promise<Checkpoint> {
    isTaken = true
    return decider.checkpoint(partition)
  }

  /** Batches behind it go on meanwhile. */
  function store(checkpoint: Checkpoint, to: Seq, committed: () => void): Promise<void> {
    storing = commit(checkpoint, to)
      .then(committed, fail)
      .then(() => {
        isTaken = false
      })
    return storing
  }

  function check(): void {
    if (failure !== null) throw failure.error
  }

  const isFull = () => underWay.length >= underWayMax || bytes >= BYTES_MAX || (isAlone && underWay.length > 0)

  return {
    async room() {
      while (failure === null && isFull()) await underWay[0]
      check()
    },
    add(decided, to, times, withCheckpoint) {
      const addedAt = clock.monotonic()
      const committed = withCheckpoint ? fresh.taken() : null
      const taken = withCheckpoint ? take() : null
      isAlone = decided.dead.length > 0 || newsOf(decided).length > 0
      const submitted = isAlone ? null : submit(decided)
      const size = decided.records.reduce((sum, { length }) => sum + length, 0)
      const before = underWay.at(-1)
      taken?.catch(fail)

      async function settleInTurn(): Promise<void> {
        await before
        if (failure === null && submitted === null) await tellFirst(decided, to)
        if (failure !== null) return void (await Promise.allSettled(submitted ?? []))
        await settle(decided, submitted ?? submit(decided), to, times, addedAt)
        if (taken === null || committed === null) return
        const stored = store(await taken, to, committed)
        if (isAlone) await stored
      }

      bytes += size
      const settled = settleInTurn()
        .catch(fail)
        .then(() => {
          bytes -= size
          underWay.shift()
        })
      underWay.push(settled)
    },
    async settled() {
      await underWay.at(-1)
      check()
    },
    async rest() {
      await underWay.at(-1)
      await storing
      check()
    },
    checkpoint(to) {
      const committed = fresh.taken()
      storing = take().then((checkpoint) => store(checkpoint, to, committed), fail)
    },
    isStored: () => !isTaken,
    async stored() {
      while (isTaken && failure === null) await (underWay.at(-1) ?? storing)
      check()
    },
    isIdle: () => underWay.length === 0 && !isTaken && failure === null,
    checkpointed: () => checkpointed,
  }
}

const newsOf = ({ erased, annotated }: DecidedBatch) => [...erasingPuts(erased), ...annotatingPuts(annotated)]
