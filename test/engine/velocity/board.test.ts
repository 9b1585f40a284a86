// Counters shared by partitions in several threads and processes, against a list that forgets nothing: messages get lost,
// partitions move, threads and processes die, and what is kept in memory is far less than what there is.

import t from 'tap'
import { readCounters } from '../../../src/engine/checkpoint.ts'
import { UNUSED_MS_MAX } from '../../../src/engine/table.ts'
import { type Board, createBoard } from '../../../src/engine/velocity/board.ts'
import { type Counted, flattenRecord, packCounted } from '../../../src/engine/velocity/counted.ts'
import {
  addEvent,
  collectSeen,
  countEvents,
  noCounters,
  packCounters,
  unpackCounters,
} from '../../../src/engine/velocity/counters.ts'
import { packDeparture, unpackDeparture } from '../../../src/engine/velocity/departure.ts'
import {
  type CounterFeed,
  newToldCounters,
  noteTurn,
  openCounterFeed,
  type ToldCounters,
} from '../../../src/engine/velocity/feed.ts'
import type { DirtyCounter } from '../../../src/engine/velocity/taken-counters.ts'
import { finishTally, tallyEvent } from '../../../src/engine/velocity/tally.ts'
import { addTraces } from '../../../src/engine/velocity/traces.ts'
import type { DecidedItem } from '../../../src/events/packed-items.ts'
import { encodeEventsRecord } from '../../../src/events/record.ts'
import type { Kv } from '../../../src/kv/kv.ts'
import { must } from '../../../src/lib/must.ts'
import { takePacked } from '../../../src/lib/packing.ts'
import type { LogRecord } from '../../../src/log/log.ts'
import { VELOCITY } from '../../../src/records/partitions.ts'
import { sized } from '../../helpers/depth.ts'
import { built, measurePromoted } from '../../helpers/promoted.ts'
import { type Rng, rng } from '../../helpers/rng.ts'

const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const RUNS = sized({ quick: 1, usual: 3, long: 12 })
const PARTITIONS = 4
const T0 = Date.UTC(2026, 9, 1)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

interface Thread {
  board: Board
  told: ToldCounters
}
interface Process {
  readonly threads: Thread[]
  readonly feed: CounterFeed
  alive: boolean
}
interface Owner {
  readonly process: Process
  readonly thread: Thread
}

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
const KEYS_MAX = 3

function openWorld(random: Rng, lossy: boolean) {
  const logs: LogRecord[][] = Array.from({ length: PARTITIONS }, () => [])
  const stored = Array.from({ length: PARTITIONS }, () => new Map<string, [number, Uint8Array]>())
  const positions: number[] = Array.from({ length: PARTITIONS }, () => 0)
  const receivers: ((message: unknown) => void)[] = []
  const owners: (Owner | null)[] = Array.from({ length: PARTITIONS }, () => null)
  const all: Counted[][] = Array.from({ length: PARTITIONS }, () => [])
  let processes: Process[] = []
  let names = 0
  let nowMs = 0
  /** Its latest decisions are not in the log yet. */
  let undecided = -1

  const kv: Pick<Kv, 'get' | 'position'> = {
    get: async <T>(scope: string, keys: readonly (readonly [string, string])[]) =>
      keys.map((key) => {
        const value = stored[Number(scope.slice(2))]?.get(key[1])
        return value === undefined ? null : { key, value: value as T, version: 1 }
      }),
    position: async (scope) => positions[Number(scope.slice(2))] ?? null,
  }
  const log = {
    read: async (_topic: string, partition: number, from: number) =>
      (logs[partition] as LogRecord[]).filter(({ seq }) => seq > from).slice(0, 5),
    last: async (_topic: string, partition: number) => (logs[partition] as LogRecord[]).at(-1)?.seq ?? 0,
  }

  async function start(): Promise<Process> {
    const looks: ((value?: unknown) => void)[] = []
    const feed = await openCounterFeed({
      log: log as never,
      kv,
      clock: { monotonic: () => 0, sleep: () => new Promise((resolve) => looks.push(resolve)) } as never,
      bus: {
        isLossy: true,
        publish(_subject, message) {
          for (const receive of receivers) if (!lossy || !random.chance(0.2)) receive(message)
        },
        subscribe(_subject, receive) {
          receivers.push(receive)
          return () => void receivers.splice(receivers.indexOf(receive), 1)
        },
      },
      id: `p${names++}`,
      partitions: PARTITIONS,
      onError: (error) => {
        throw error
      },
    })
    const process: Process = { threads: [], feed, alive: true }
    for (let i = 0; i < 2; i++) process.threads.push(freshThread())
    processes.push(process)
    Object.assign(process, { look: () => looks.splice(0).forEach((wake) => void wake()) })
    return process
  }
  const freshThread = (): Thread => ({ board: createBoard(PARTITIONS, KEYS_MAX), told: newToldCounters() })

  function tell({ process, thread }: Owner): void {
    const news = process.feed.news(thread.told)
    if (news !== null) thread.board.take(news)
  }

  async function provide(owner: Owner, keys: readonly number[]): Promise<void> {
    tell(owner)
    const missing = keys.filter((key) => owner.thread.board.missing(key))
    if (missing.length === 0) return
    const partitions = Array.from({ length: PARTITIONS }, (_, p) => p)
    const loaded = await readCounters(kv, partitions, missing.map(String))
    // A checkpoint and a step of another partition come in between.
    if (random.chance(0.5)) checkpoint(random.int(PARTITIONS))
    tell(owner)
    for (const { id, value } of loaded) owner.thread.board.load(Number(id), value as never)
    await provide(owner, keys)
  }

  async function own(partition: number, process: Process): Promise<void> {
    const owner = { process, thread: random.pick(process.threads) }
    owners[partition] = owner
    undecided = partition
    tell(owner)
    owner.thread.board.open(partition)
    noteTurn(owner.thread.told, { do: 'open', partition })
    let after = positions[partition] as number
    for (const { seq, bytes } of (logs[partition] as LogRecord[]).filter(({ seq }) => seq > after)) {
      const items = all[partition]?.filter((_, i) => seqOf(partition, i) === seq) ?? []
      const release = process.feed.hold()
      for (const counted of items) {
        const keys = counted.linkedKey === 0 ? [counted.ipKey] : [counted.ipKey, counted.linkedKey]
        await provide(owner, keys)
        owner.thread.board.add(partition, counted)
      }
      release()
      process.feed.decided(
        partition,
        after,
        seq,
        flattenRecord({ items: items.map((c) => ({ counted: packCounted(c) })) }),
      )
      after = seq
      must(bytes.length, 'bytes')
    }
    undecided = -1
  }

  const seqs: number[][] = Array.from({ length: PARTITIONS }, () => [])
  const seqOf = (partition: number, i: number) => (seqs[partition] as number[])[i]

  function append(partition: number, decided: readonly Counted[]): { after: number; seq: number } {
    const mine = logs[partition] as LogRecord[]
    undecided = -1
    const after = mine.at(-1)?.seq ?? 0
    const seq = after + 1 + random.int(2)
    const items = decided.map((counted) => ({ ...ITEM, counted: packCounted(counted) }))
    mine.push({ seq, bytes: encodeEventsRecord({ from: seq, to: seq, items, rows: new Uint8Array(0) }) } as LogRecord)
    for (const counted of decided) {
      all[partition]?.push(counted)
      seqs[partition]?.push(seq)
    }
    return { after, seq }
  }

  function checkpoint(partition: number): void {
    const owner = owners[partition]
    if (!owner || undecided === partition) return
    const seq = (logs[partition] as LogRecord[]).at(-1)?.seq ?? 0
    nowMs += random.int(UNUSED_MS_MAX / 4)
    for (const { key, packed } of owner.thread.board.takeDirty(partition, nowMs)) {
      stored[partition]?.set(String(key), [seq, packed])
    }
    positions[partition] = seq
    owner.process.feed.stored(partition, seq)
  }

  function release(partition: number): void {
    const owner = owners[partition]
    if (owner) {
      tell(owner)
      owner.thread.board.forget(partition)
      noteTurn(owner.thread.told, { do: 'forget', partition })
    }
    owners[partition] = null
  }

  return {
    all,
    owners,
    own,
    start,
    provide,
    append,
    checkpoint,
    release,
    freshThread,
    processes: () => processes,
    begin(partition: number) {
      undecided = partition
    },
    kill(process: Process) {
      process.feed.stop()
      process.alive = false
      processes = processes.filter((other) => other !== process)
      owners.forEach((owner, partition) => {
        if (owner?.process === process) owners[partition] = null
      })
    },
  }
}

const ITEM: DecidedItem = {
  seq: 1,
  requestId: 'req_1',
  workspace: 'w',
  env: 'test',
  visitorId: 'pv_1',
  state: new Uint8Array(0),
  ...{
    indexed: [],
    matches: [],
    nonceHash: 0,
    bodyHash: 0,
    acceptedAt: 0,
    keyKind: 'secret',
    replyTo: '',
    rowBytes: 0,
  },
}

const settled = async () => {
  for (let i = 0; i < 30; i++) await new Promise((resolve) => setImmediate(resolve))
}

for (const lossy of [false, true]) {
  t.test(
    `every decision sees every one before it, ${lossy ? 'over a bus that loses messages' : 'at once'} (seed ${SEED})`,
    async (t) => {
      const random = rng(SEED + Number(lossy))
      let checked = 0
      for (let run = 0; run < RUNS; run++) {
        const world = openWorld(random, lossy)
        await world.start()
        if (lossy) await world.start()
        const history: Counted[] = []
        let now = T0
        for (let step = 0; step < 250; step++) {
          const partition = random.int(PARTITIONS)
          if (random.chance(0.05)) world.release(partition)
          if (random.chance(0.01)) {
            world.kill(random.pick(world.processes()))
            await world.start()
          }
          if (random.chance(0.15)) world.checkpoint(partition)
          if (!world.owners[partition]) await world.own(partition, random.pick(world.processes()))
          const owner = must(world.owners[partition], 'an owner')
          if (lossy) {
            const release = owner.process.feed.hold()
            await world.provide(owner, [1 + random.int(KEYS.length)])
            release()
            // As the poll of each second does: what the log has with one look is missed with the next.
            for (let looks = 0; looks < 2; looks++) {
              for (const process of world.processes()) (process as never as { look: () => void }).look()
              await settled()
            }
          }
          now += random.int(random.pick([1_000, 5 * MINUTE, 3 * 60 * MINUTE]))
          const decided: Counted[] = []
          const release = owner.process.feed.hold()
          world.begin(partition)
          for (let i = 1 + random.int(3); i > 0; i--) {
            // A little out of order, as events of several partitions come.
            const at = now - (random.chance(0.2) ? random.int(2 * MINUTE) : 0)
            const key = 1 + random.int(KEYS.length)
            const linkedKey = random.chance(0.5) ? 100 + random.int(KEYS.length) : 0
            const [visitorId, ip] = [`v${random.int(20)}`, random.int(20)]
            const event = {
              at,
              acceptedAt: now,
              ip,
              ipKey: key,
              linkedKey,
              account: linkedKey === 0 ? null : linkedKey,
              visitorId,
            }
            await world.provide(owner, linkedKey === 0 ? [key] : [key, linkedKey])
            const tally = tallyEvent(
              event,
              { visitorId: event.visitorId, country: null },
              { packed: null, others: [] },
              owner.thread.board,
            )
            const counted = finishTally(event, tally, null)
            const past = [...history, ...decided, counted].filter((c) => c.at <= at)
            const expected: Record<string, number | null> = {}
            const of = (whose: (c: Counted) => boolean, windowMs: number) =>
              past.filter((c) => whose(c) && c.at > at - windowMs)
            const byIp = (c: Counted) => c.ipKey === key
            const byAccount = (c: Counted) => c.linkedKey === linkedKey
            expected['ip.events.5m'] = of(byIp, 5 * MINUTE).length
            expected['ip.events.1h'] = of(byIp, 60 * MINUTE).length
            expected['ip.events.24h'] = of(byIp, DAY).length
            expected['ip.visitors.24h'] = new Set(of(byIp, DAY).map((c) => c.visitor)).size
            const ofAccount = linkedKey === 0 ? null : of(byAccount, DAY)
            expected['linkedId.visitors.24h'] = ofAccount && new Set(ofAccount.map((c) => c.visitor)).size
            expected['linkedId.ips.24h'] = ofAccount && new Set(ofAccount.map((c) => c.ip)).size
            for (const [name, right] of Object.entries(expected)) {
              const got = tally.velocity[name as keyof typeof tally.velocity]
              if (got !== right) return t.fail(`run ${run}, step ${step}: ${name} is ${got}, not ${right}`)
              checked++
            }
            owner.thread.board.add(partition, counted)
            if (random.chance(0.5)) owner.thread.board.rest()
            decided.push(counted)
          }
          release()
          const { after, seq } = world.append(partition, decided)
          history.push(...decided)
          owner.process.feed.decided(
            partition,
            after,
            seq,
            flattenRecord({ items: decided.map((c) => ({ counted: packCounted(c) })) }),
          )
        }
        for (const process of world.processes()) process.feed.stop()
      }
      t.ok(checked > 850 * RUNS, `${checked} counters were right`)
    },
  )
}

t.test('what is stored under an account and an address stays apart', async (t) => {
  const board = createBoard(1, 10)
  board.open(0)
  board.load(7, [])
  board.load(8, [])
  board.add(0, { at: T0, ipKey: 7, linkedKey: 8, visitor: 1, ip: 2, lat: null, lng: null })
  t.strictSame(
    Array.from(board.takeDirty(0, 0), ({ key }) => key),
    [7, 8],
  )
  t.equal(board.dirtyCount(0), 0)
  t.equal(VELOCITY, 'velocity')
})

t.test('only counters that this owner had stored within half a day are said to be in the kv still', async (t) => {
  const board = createBoard(1, 10)
  const isRenewal = (nowMs: number) => {
    board.add(0, { at: T0, ipKey: 7, linkedKey: 0, visitor: 1, ip: 2, lat: null, lng: null })
    return Array.from(board.takeDirty(0, nowMs), (one) => one.isRenewal)
  }
  board.open(0)
  packCounters(noCounters())
  board.load(7, [{ partition: 0, seq: 4, packed: takePacked() }])
  t.strictSame(isRenewal(0), [false], 'one that was loaded may have expired since')
  t.strictSame(isRenewal(11 * HOUR), [true])
  t.strictSame(isRenewal(22 * HOUR), [true])
  t.strictSame(isRenewal(35 * HOUR), [false])
  board.forget(0)
  board.open(0)
  board.load(7, [])
  t.strictSame(isRenewal(35 * HOUR), [false], 'another owner may have been there')
})

t.test('counters that nobody used for a while are let go although there is room, and no others', async (t) => {
  const board = createBoard(1, 1_000)
  const counted = (ipKey: number) => ({ at: T0, ipKey, linkedKey: 0, visitor: 1, ip: 2, lat: null, lng: null })
  const keys = Array.from({ length: 100 }, (_, key) => key + 1)
  board.open(0)
  for (const key of keys) board.load(key, [])
  for (const key of keys) board.of(key)
  const missing = () => keys.filter((key) => board.missing(key))
  let nowMs = 0
  for (; nowMs < UNUSED_MS_MAX; nowMs += 1_250) {
    board.takeDirty(0, nowMs)
    t.same(missing(), [], `all stay until ${nowMs} ms`)
  }
  for (; nowMs < 4 * UNUSED_MS_MAX; nowMs += 1_250) {
    board.of(7)
    board.add(0, counted(9))
    board.takeDirty(0, nowMs)
  }
  t.same(
    keys.filter((key) => !board.missing(key)),
    [7, 9],
    'what was asked for, and what may not be stored yet',
  )
  board.of(7)
  board.takeDirty(0, nowMs + 10 * UNUSED_MS_MAX)
  t.notOk(board.missing(7), 'however long nothing was decided, what was used before is looked at once')
})

t.test('counters read before a partition was taken over are not taken for what it has', async (t) => {
  const counted = { at: T0, ipKey: 7, linkedKey: 0, visitor: 1, ip: 2, lat: null, lng: null }
  const before = createBoard(2, 10)
  before.open(1)
  before.load(7, [])
  before.add(1, counted)
  const [{ packed }] = [...before.takeDirty(1, 0)] as [DirtyCounter]

  const board = createBoard(2, 10)
  board.open(0)
  const askedAt = board.openings()
  // Its owner before stores it meanwhile.
  board.open(1)
  board.load(7, [{ partition: 1, seq: 0, packed: null }], askedAt)
  board.rest()
  t.ok(board.missing(7), 'they are asked for again')
  board.load(7, [{ partition: 1, seq: 4, packed }], board.openings())
  t.notOk(board.missing(7))
  board.add(1, { ...counted, visitor: 3 })
  const [stored] = [...board.takeDirty(1, 0)] as [DirtyCounter]
  t.equal(countEvents(unpackCounters(stored.packed), T0, DAY), 2)
})

t.test('whoever follows a partition forgets an erased visitor with it, loaded before or after', async (t) => {
  const [AT, IP, ACCOUNT] = [T0, 7, 8]
  const boards = [createBoard(1, 10), createBoard(1, 10), createBoard(1, 10)] as const
  const [owner, early, late] = boards
  owner.open(0)
  for (const key of [IP, ACCOUNT]) for (const board of [owner, early]) board.load(key, [])
  const event = (visitor: number, at: number) =>
    ({ at, ipKey: IP, linkedKey: ACCOUNT, visitor, ip: 2, lat: null, lng: null }) satisfies Counted
  const mine = noCounters()
  const events = [event(1, AT), event(1, AT + 5), event(2, AT + 9)]
  mine.traces = []
  for (const one of events) owner.add(0, one)
  for (const one of events.slice(0, 2)) {
    addEvent(mine, one.at, [one.ip])
    addTraces(mine.traces, one, AT)
  }
  const departure = must(owner.leaving(0, 1, mine))
  t.same(unpackDeparture(packDeparture(departure)), departure)
  owner.remove(0, departure)
  const deltas = [
    { partition: 0, seq: 1, counted: flattenRecord({ items: events.map((one) => ({ counted: packCounted(one) })) }) },
    { partition: 0, seq: 2, counted: flattenRecord({ items: [], erasure: { counted: packDeparture(departure) } }) },
  ]
  for (const board of [early, late]) board.take({ deltas, storedTo: [0], reset: false })
  for (const key of [IP, ACCOUNT]) late.load(key, [])
  for (const board of boards) {
    for (const key of [IP, ACCOUNT]) {
      const seen = new Set<number>()
      const [counters] = board.of(key)
      collectSeen(must(counters), 0, AT + 10, seen)
      t.same([...seen], [2])
      t.equal(countEvents(must(counters), AT + 10, DAY), 1)
    }
  }
})

t.test('events of others are kept until they are stored, also of a key that always has a newer one', async (t) => {
  const perEvent = (await measurePromoted(`
    import { createBoard } from ${built('engine/velocity/board.js')}
    import { flattenRecord } from ${built('engine/velocity/counted.js')}
    const board = createBoard(2, 1_000)
    const BEHIND = 10
    const STEPS = 60_000
    const promoted = await promotedBy((n) => {
      const counted = flattenRecord({ items: [{ counted: [${T0} + n, 1, 0, n, 1] }] })
      board.take({ reset: false, deltas: [{ partition: 1, seq: n + 1, counted }], storedTo: [0, n - BEHIND] })
    }, STEPS)
    console.log(Math.round(promoted / STEPS))`)) as number
  t.comment(`${perEvent} bytes of each event`)
  t.ok(perEvent < 40)
})
