// A checkpoint is one commit of the kv, which takes so many entries: what an owner has to write must never be more, however slow the kv is
// and whatever the owner before had left; and what changes again and again is to be written seldom. Owners are real, over a log and a kv on LMDB.

import t, { type Test } from 'tap'
import { openLocalBus } from '../../src/bus/local.ts'
import { prepareDeployment } from '../../src/control/bootstrap.ts'
import { makeObjectId, makeRequestId } from '../../src/domain/ids.ts'
import { createDecider, createPartitionHost } from '../../src/engine/decider.ts'
import { runPartition } from '../../src/engine/engine.ts'
import type { CheckpointBounds } from '../../src/engine/engine-needs.ts'
import { createFreshness } from '../../src/engine/freshness.ts'
import { createRecent } from '../../src/engine/recent.ts'
import { openCounterFeed } from '../../src/engine/velocity/feed.ts'
import type { Kv } from '../../src/kv/kv.ts'
import { openLmdbKv } from '../../src/kv/lmdb.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { openLmdbLog } from '../../src/log/lmdb.ts'
import type { Log } from '../../src/log/log.ts'
import { encodeIdentification } from '../../src/records/identification.ts'
import { DISPATCHER_POSITION, ENGINE_POSITION, partitionScope, SINK_POSITION } from '../../src/records/partitions.ts'
import { encodeSnapshot } from '../../src/rules/snapshot.ts'
import { deviceOf } from '../helpers/devices.ts'
import { WORKSPACE } from '../helpers/facts.ts'
import { rng } from '../helpers/rng.ts'
import { temporaryFolder } from '../helpers/server.ts'

const { bytes: random } = rng(7)
const PARTITION = 0
/** Each of them is new, and changes some ten entries: together more than twice what a commit takes. */
const DEVICES = 6_000
const RECORDS = 256
/** Their checkpoint is due as soon as nothing arrives for a moment. */
const FEW = 5
/** Of devices that come back. */
const VISITS = 4_800
const LATE_MS = 60_000
const STILL_MS = 3_000
const LOOK_MS = 50
const SOURCES = [ENGINE_POSITION, SINK_POSITION, DISPATCHER_POSITION]

interface Stores {
  readonly log: Log
  readonly kv: Kv
}

async function openStores(t: Test): Promise<Stores> {
  const log = await openLmdbLog({ path: temporaryFolder(), partitions: 1, clock, bytesMax: 1e9, durability: 'relaxed' })
  const kv = await openLmdbKv({ path: temporaryFolder(), clock, durability: 'relaxed' })
  t.teardown(async () => {
    await log.close()
    await kv.close()
  })
  await prepareDeployment({ log, kv, partitions: 1, sources: SOURCES })
  return { log, kv }
}

function recordOf(n: number): Uint8Array {
  const { mock: _, ...body } = deviceOf(n)
  const acceptedAt = Date.now()
  const ip = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`
  const meta = {
    requestId: makeRequestId(acceptedAt, random),
    acceptedAt,
    workspace: WORKSPACE.id,
    env: 'live',
    keyKind: 'secret',
    ip,
    headers: {},
    token: null,
    tokenForged: false,
    replyTo: 'x',
  } as const
  return encodeIdentification(meta, Buffer.from(JSON.stringify({ ...body, linkedId: `account ${n}` })))
}

async function accept(log: Log, devices = DEVICES): Promise<void> {
  for (let n = 0; n < devices; n += RECORDS) {
    const records = Array.from({ length: Math.min(RECORDS, devices - n) }, (_, i) => recordOf(n + i))
    await log.append('identifications', PARTITION, records)
  }
}

/** Owns the partition until the test ends, or `stop`. */
async function startOwner(t: Test, { log, kv }: Stores, bounds?: CheckpointBounds) {
  const stopping = new AbortController()
  const { monotonic, now } = clock
  const place = createPartitionHost({ partitions: 1, random, monotonic, now, visitorsMax: 100_000 })
  const snapshot = encodeSnapshot({ workspace: WORKSPACE, env: 'live', revision: 1, rules: [] })
  place.take({ snapshots: [snapshot], lists: [] })
  const bus = openLocalBus({ onError: (error) => t.fail(String(error)) })
  const onError = (error: unknown) => t.fail(String(error))
  const id = makeObjectId('eng', random)
  const counters = await openCounterFeed({ log, kv, bus, clock, id, partitions: 1, onError })
  const told = { replies: 0, lost: [] as unknown[] }
  const nothing = () => undefined
  const owning = runPartition(
    {
      ...{ log, kv, clock, counters, partitions: 1 },
      ...(bounds ? { bounds, checkpointMsMax: LATE_MS } : { checkpointMsMax: 5_000 }),
      decider: createDecider(async (_, turn) => turn(place)),
      recent: createRecent(1, 100_000),
      freshness: createFreshness(),
      loadRuleset: async () => undefined,
      effects: { random, deployment: 'd', entriesMax: 1_000, partitions: 1 },
      reply(replies) {
        told.replies += replies.length
      },
      report: {
        decided: nothing,
        lost: (_, error) => void told.lost.push(error),
        ruleLogs: nothing,
        effectsSkipped: nothing,
        healingsDropped: nothing,
      },
    },
    PARTITION,
    stopping.signal,
  )
  const stop = async () => {
    stopping.abort()
    await owning
    counters.stop()
  }
  return { told, stop }
}

/** The kv with checkpoints that wait until `go`. */
function held(kv: Kv) {
  let go: () => void = () => undefined
  let waiting = 0
  const gone = new Promise<void>((resolve) => {
    go = resolve
  })
  const commit: Kv['commit'] = async (commits) => {
    if (commits.some(({ guard }) => guard?.source === ENGINE_POSITION)) {
      waiting++
      await gone
    }
    return kv.commit(commits)
  }
  return { kv: { ...kv, commit }, go: () => go(), waiting: () => waiting }
}

/** The kv, and how many entries checkpoints have put into it. */
function counting(kv: Kv) {
  let puts = 0
  const commit: Kv['commit'] = (commits) => {
    for (const { guard, put = [] } of commits) if (guard?.source === ENGINE_POSITION) puts += [...put].length
    return kv.commit(commits)
  }
  return { kv: { ...kv, commit }, puts: () => puts }
}

/** Resolves with the value when it is `done`, or has not changed for a while. */
async function settled<T>(value: () => T | Promise<T>, done: T): Promise<T> {
  const lateAt = Date.now() + LATE_MS
  let [last, sinceAt] = [await value(), Date.now()]
  while (last !== done && Date.now() < lateAt && Date.now() - sinceAt < STILL_MS) {
    await clock.sleep(LOOK_MS)
    const now = await value()
    if (now !== last) [last, sinceAt] = [now, Date.now()]
  }
  return last
}

t.test('while a checkpoint is not stored no more is decided than the next one can take', async (t) => {
  const stores = await openStores(t)
  const slow = held(stores.kv)
  await accept(stores.log)
  const owner = await startOwner(t, { ...stores, kv: slow.kv })
  await settled(() => owner.told.replies, DEVICES)
  t.ok(owner.told.replies < DEVICES, `it waits behind ${owner.told.replies}`)
  slow.go()
  await settled(() => owner.told.replies, DEVICES)
  t.equal(owner.told.replies, DEVICES, 'all are decided')
  await owner.stop()
  t.same(owner.told.lost, [], 'no tenure was lost')
  const last = await stores.log.last('events', PARTITION)
  t.equal(await stores.kv.position(partitionScope(PARTITION), ENGINE_POSITION), last, 'and stored')
})

t.test('what arrives while a checkpoint is stored that was due when nothing arrived is decided at once', async (t) => {
  const stores = await openStores(t)
  const slow = held(stores.kv)
  const owner = await startOwner(t, { ...stores, kv: slow.kv })
  await accept(stores.log, FEW)
  t.equal(await settled(slow.waiting, 1), 1, 'a checkpoint is being stored')
  await accept(stores.log, FEW)
  t.equal(await settled(() => owner.told.replies, 2 * FEW), 2 * FEW, 'all are answered')
  t.equal(slow.waiting(), 1, 'and no other checkpoint was begun')
  slow.go()
  await owner.stop()
  t.same(owner.told.lost, [], 'no tenure was lost')
  const last = await stores.log.last('events', PARTITION)
  t.equal(
    await stores.kv.position(partitionScope(PARTITION), ENGINE_POSITION),
    last,
    'what came later is stored as well',
  )
})

t.test('whoever takes over more than one checkpoint can take stores it in parts', async (t) => {
  const stores = await openStores(t)
  // The owner before checkpoints into another kv than the one which is left.
  const other = await openLmdbKv({ path: temporaryFolder(), clock, durability: 'relaxed' })
  await prepareDeployment({ log: stores.log, kv: other, partitions: 1, sources: SOURCES })
  await accept(stores.log)
  const before = await startOwner(t, { ...stores, kv: other })
  await settled(() => before.told.replies, DEVICES)
  t.equal(before.told.replies, DEVICES, 'the owner before decides all')
  await before.stop()
  await other.close()
  const owner = await startOwner(t, stores)
  const last = await stores.log.last('events', PARTITION)
  const stored = await settled(() => stores.kv.position(partitionScope(PARTITION), ENGINE_POSITION), last)
  await owner.stop()
  t.equal(owner.told.replies, DEVICES, 'everybody is answered again')
  t.same(owner.told.lost, [], 'no tenure was lost')
  t.equal(stored, last, 'and all of it is stored')
})

/** Entries put for `VISITS` visits of so many devices that were all here before, one after the other. */
async function putsOf(t: Test, devices: number): Promise<number> {
  const stores = await openStores(t)
  const counted = counting(stores.kv)
  await accept(stores.log, devices)
  const owner = await startOwner(t, { ...stores, kv: counted.kv }, { entriesMax: 1_500, adoptRecordsMax: 64 })
  t.equal(await settled(() => owner.told.replies, devices), devices, 'the first visits are decided')
  const before = counted.puts()
  for (let visits = 0; visits < VISITS; visits += devices) await accept(stores.log, devices)
  t.equal(await settled(() => owner.told.replies, devices + VISITS), devices + VISITS, 'and the others')
  const puts = counted.puts() - before
  await owner.stop()
  t.same(owner.told.lost, [], 'no tenure was lost')
  return puts
}

t.test(
  'what fits into a checkpoint of twice the size and changes again and again is written once, not with every checkpoint',
  async (t) => {
    const [few, many] = [await putsOf(t, 600), await putsOf(t, 2_400)]
    t.ok(
      many > 2 * VISITS,
      `of many, whose entries differ from checkpoint to checkpoint, nearly all are written: ${many}`,
    )
    t.ok(few < VISITS, `of few, 1,800 entries, each is written once for several visits: ${few}`)
  },
)
