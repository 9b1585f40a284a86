// The decider of a build, this one or an older one in another folder: partitions with all their state in memory, spread over shards as
// a process spreads them, with clock, ids and tokens that only the seed decides.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { TokenClaims } from '../../src/domain/identify.ts'
import type { Asking } from '../../src/engine/asking.ts'
import type { LoadedEntry, WantedEntry } from '../../src/engine/state.ts'
import type { Board, CounterDelta } from '../../src/engine/velocity/board.ts'
import { must } from '../../src/lib/must.ts'
import { absent, answered } from '../../test/helpers/asking.ts'
import { rng } from '../../test/helpers/rng.ts'
import { createStorages } from '../identity/answer.ts'
import type { Visit } from '../identity/population.ts'
import { ENV, evidenceOf, recordOf, WORKSPACE } from '../identity/record.ts'
import { CORPUS_RULES, factsOf } from './corpus.ts'

export interface DecidingWanted {
  readonly seed: number
  readonly partitions: number
  readonly shards: number
  /** Visits that a partition decides at once, at most. */
  readonly batch: number
}

/** What one visit was answered and what is stored of it, as JSON: `{reply, event}`. */
export type AnswerText = string

interface Frame {
  readonly seq: number
  readonly bytes: Uint8Array
}
interface Batch {
  readonly records: readonly Uint8Array[]
  readonly placed: readonly (readonly string[])[]
  readonly replies: readonly { readonly requestId: string; readonly body: string }[]
  readonly dead: readonly { readonly reason: string }[]
  readonly counted: readonly Float64Array[]
}
/** As partitions asked before they did so in one step. */
interface AskingInTurns {
  begin(frames: readonly Frame[]): readonly WantedEntry[]
  provide(loaded: readonly LoadedEntry[]): readonly WantedEntry[]
  decide(poisoned: ReadonlySet<number>): Batch
}
interface AskingAtOnce {
  decide(frames: readonly Frame[], poisoned: ReadonlySet<number>): Asking<Batch>
}

function decideBatch(partition: AskingInTurns | AskingAtOnce, frames: readonly Frame[]): Batch {
  if (!('begin' in partition)) return answered(partition.decide(frames, new Set()), absent)
  for (let wanted = partition.begin(frames); wanted.length > 0; ) wanted = partition.provide(absent(wanted))
  return partition.decide(new Set())
}

/** `dir`: the folder of a checkout that is built. What is imported here has had its shape since the first build that can be driven. */
export async function openAnswersBuild(dir: string) {
  const load = <T>(path: string): Promise<T> => import(pathToFileURL(join(dir, 'build/src', path)).href) as Promise<T>
  const [partition, board, record, row, snapshot, parsers, routing, token, ids] = await Promise.all([
    load<typeof import('../../src/engine/partition.ts')>('engine/partition.js'),
    load<typeof import('../../src/engine/velocity/board.ts')>('engine/velocity/board.js'),
    load<typeof import('../../src/events/record.ts')>('events/record.js'),
    load<typeof import('../../src/events/row.ts')>('events/row.js'),
    load<typeof import('../../src/rules/snapshot.ts')>('rules/snapshot.js'),
    load<typeof import('../../src/identity/parsers.ts')>('identity/parsers.js'),
    load<typeof import('../../src/identity/routing.ts')>('identity/routing.js'),
    load<typeof import('../../src/identity/token.ts')>('identity/token.js'),
    load<typeof import('../../src/domain/ids.ts')>('domain/ids.js'),
  ])
  return { ...partition, ...board, ...record, ...row, ...snapshot, ...parsers, ...routing, ...token, ...ids }
}
export type AnswersBuild = Awaited<ReturnType<typeof openAnswersBuild>>

interface Waiting {
  readonly visit: Visit
  readonly partition: number
  readonly frame: Frame
}

/** Decides the visits in order and tells what became of each, in order. */
export function* answersOf(
  build: AnswersBuild,
  { seed, partitions: count, shards, batch }: DecidingWanted,
  visits: Iterable<Visit>,
): Generator<AnswerText, void> {
  const parsers = build.openParsers()
  const storages = createStorages()
  const rules = CORPUS_RULES
  const ruleset = build.openSnapshot(build.encodeSnapshot({ workspace: WORKSPACE, env: ENV, revision: 1, rules }))
  const boards = Array.from({ length: shards }, () => build.createBoard(count, Number.POSITIVE_INFINITY))
  const boardOf = (partition: number): Board => must(boards[partition % shards], 'a board')
  const nothingStored = new Array<number>(count).fill(0)
  // One visit at a time draws by its own number, so that what another build draws for one visit moves nothing in the next.
  let draws = rng(seed)
  const streams = Array.from({ length: count }, (_, partition) => rng(seed + 1 + partition))
  const partitions = streams.map((stream, partition) => {
    boardOf(partition).open(partition)
    return build.createPartition({
      partition,
      partitions: count,
      random: (n) => (batch === 1 ? draws : stream).bytes(n),
      monotonic: () => 0,
      ruleset: () => ruleset,
      visitorsMax: Number.POSITIVE_INFINITY,
      locate: factsOf,
      board: boardOf(partition),
    }) as AskingAtOnce | AskingInTurns
  })
  const seqs = new Array<number>(count).fill(0)
  let waiting: Waiting[] = []
  let number = 0

  function homeOf(visit: Visit, claims: TokenClaims | null): number {
    if (claims !== null) return build.homePartition(claims.visitorId, count)
    const headers = evidenceOf(visit)
    const key = build.hardwareKey(visit.body, headers, headers['user-agent'] ?? '', parsers)
    return build.hash32(`${WORKSPACE.id}/${ENV}/${key}`) % count
  }

  function tellOthers(partition: number, delta: CounterDelta): void {
    for (const board of boards) {
      if (board !== boardOf(partition)) board.take({ deltas: [delta], storedTo: nothingStored, reset: false })
    }
  }

  function decideOf(partition: number, frames: readonly Frame[]): Map<string, AnswerText> {
    draws = rng(seed * 1_000_003 + number)
    const { records, placed, replies, dead, counted } = decideBatch(must(partitions[partition], 'one'), frames)
    if (dead.length > 0) throw new Error(`a visit was not decided: ${dead[0]?.reason}`)
    const bodies = new Map(replies.map(({ requestId, body }) => [requestId, body]))
    const texts = new Map<string, AnswerText>()
    records.forEach((bytes, at) => {
      const decoded = build.decodeEventsRecord(bytes)
      must(placed[at], 'places').forEach((requestId, place) => {
        const event = build.fromRow(build.rowAt(decoded, place))
        texts.set(requestId, JSON.stringify({ reply: JSON.parse(bodies.get(requestId) ?? 'null'), event }))
      })
      const seq = must(frames.at(-1), 'a frame').seq
      tellOthers(partition, { partition, seq, counted: must(counted[at], 'counters') })
    })
    return texts
  }

  function decideWaiting(): AnswerText[] {
    const found = new Map<Frame, AnswerText>()
    for (let partition = 0; partition < count; partition++) {
      const own = waiting.filter((one) => one.partition === partition)
      if (own.length === 0) continue
      const texts = [
        ...decideOf(
          partition,
          own.map(({ frame }) => frame),
        ).values(),
      ]
      own.forEach(({ visit, frame }, at) => {
        const text = must(texts[at], 'an answer')
        found.set(frame, text)
        storages.write(visit, (JSON.parse(text) as { reply: { storageToken: string } }).reply.storageToken)
      })
    }
    const texts = waiting.map(({ frame }) => must(found.get(frame), 'an answer'))
    waiting = []
    return texts
  }

  const sharesStorage = (visit: Visit): boolean => waiting.some((one) => one.visit.truth.device === visit.truth.device)

  /** What partitions count of one address or account together depends on the order of visits. */
  function sharesCounters({ ip, body }: Visit, partition: number): boolean {
    return waiting.some(({ visit, partition: other }) => {
      if (other === partition) return false
      return visit.ip === ip || (body.linkedId !== undefined && visit.body.linkedId === body.linkedId)
    })
  }

  for (const visit of visits) {
    if (sharesStorage(visit)) yield* decideWaiting()
    const sent = storages.read(visit)
    const claims = sent === null ? null : build.verifyToken(WORKSPACE.tokenSecret, WORKSPACE.id, ENV, sent)
    const partition = homeOf(visit, claims)
    if (sharesCounters(visit, partition)) yield* decideWaiting()
    const seq = must(seqs[partition], 'a place') + 1
    seqs[partition] = seq
    const bytes = recordOf(visit, sent, claims, rng(seed * 7_919 + number++).bytes)
    waiting.push({ visit, partition, frame: { seq, bytes } })
    if (waiting.filter((one) => one.partition === partition).length >= batch) yield* decideWaiting()
  }
  yield* decideWaiting()
}
