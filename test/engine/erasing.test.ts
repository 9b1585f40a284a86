// What a visitor leaves in the state of its partition when it is erased, after looks and addresses of many kinds: nothing that names
// it, whether the decisions are fresh or adopted.

import t from 'tap'
import type { Velocity } from '../../src/domain/event.ts'
import type { IdentifyMeta } from '../../src/domain/identify.ts'
import { makeRequestId } from '../../src/domain/ids.ts'
import { KIN } from '../../src/engine/kin.ts'
import { createPartition, type Partition } from '../../src/engine/partition.ts'
import type { Loaded, Wanted } from '../../src/engine/state.ts'
import type { StoredCounter } from '../../src/engine/velocity/board.ts'
import { decodeEventsRecord, rowAt } from '../../src/events/record.ts'
import { fromRow } from '../../src/events/row.ts'
import { must } from '../../src/lib/must.ts'
import { encodeAliasing, encodeErasure, encodeExpiry, encodeIdentification } from '../../src/records/identification.ts'
import { VELOCITY } from '../../src/records/partitions.ts'
import { EARLIER_KEYS_MAX } from '../../src/records/visitors.ts'
import { encodeSnapshot, openSnapshot } from '../../src/rules/snapshot.ts'
import { deviceOf } from '../helpers/devices.ts'
import { rng } from '../helpers/rng.ts'

const T0 = Date.UTC(2026, 4, 1)
const WORKSPACE = {
  id: 'ws_a',
  plan: 'enterprise',
  settings: { clientResult: 'id' },
  tokenSecret: 's',
  apiVersion: '2026-11-01',
} as const
const ENV = 'live'
const AT = { workspace: WORKSPACE.id, env: ENV } as const
const LOOKS = 30
/** Of the latest look. */
const KEYS_MAX = 6

interface Visit {
  readonly device: number
  readonly ip: string
  readonly visitorId?: string
  readonly linkedId?: string
}

/** A partition whose checkpoints are kept, and which keeps nothing else in memory. */
function openWorld() {
  const { bytes: random } = rng(11)
  const ruleset = openSnapshot(encodeSnapshot({ workspace: WORKSPACE, env: ENV, revision: 1, rules: [] }))
  const needs = { partition: 0, partitions: 1, random, monotonic: () => 0, visitorsMax: 0, ruleset: () => ruleset }
  const log: Uint8Array[] = []
  /** One visitor, once there is anybody. */
  const merged: string[] = []
  let seq = 0

  function openStored() {
    const partition: Partition = createPartition(needs)
    const stored = new Map<string, unknown>()
    const load = (wanted: readonly Wanted[]): Loaded[] =>
      wanted.flatMap(({ kind, id }): Loaded[] => {
        if (kind === 'ruleset') return []
        if (kind === KIN) return [{ kind, id, value: { ids: merged, elsewhere: [] } }]
        const value = stored.get(`${kind} ${id}`) ?? null
        const counter: StoredCounter = { partition: 0, seq, packed: value as Uint8Array | null }
        return [{ kind, id, value: kind === VELOCITY ? [counter] : value }]
      })
    function store(): void {
      for (const { kind, id, value } of partition.checkpoint().dirty) {
        if (value === null) stored.delete(`${kind} ${id}`)
        else stored.set(`${kind} ${id}`, value)
      }
    }
    /** Names of records that have the text anywhere. */
    const naming = (text: string): string[] =>
      [...stored]
        .filter(([name, value]) => {
          const shown = value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : JSON.stringify(value)
          return name.includes(text) || shown.includes(text)
        })
        .map(([name]) => name)
    return { partition, load, store, stored, naming }
  }
  const first = openStored()

  function decide(all: readonly Uint8Array[]) {
    let wanted = first.partition.begin(all.map((bytes) => ({ seq: ++seq, bytes })))
    while (wanted.length > 0) wanted = first.partition.provide(first.load(wanted))
    const decided = first.partition.decide(new Set())
    if (decided.dead.length > 0) throw new Error(decided.dead[0]?.reason)
    log.push(...decided.records)
    first.store()
    return decided
  }

  function recordOf({ device, ip, visitorId, linkedId }: Visit): Uint8Array {
    const { mock: _, ...body } = deviceOf(device)
    const at = T0 + 1_000 * log.length
    const meta: IdentifyMeta = {
      ...{ requestId: makeRequestId(at, random), acceptedAt: at, ...AT, keyKind: 'secret' as const },
      ...{ ip, headers: {}, tokenForged: false, replyTo: 'x' },
      token: visitorId === undefined ? null : { visitorId, generation: 1, issuedAt: T0 },
    }
    return encodeIdentification(meta, Buffer.from(JSON.stringify({ ...body, ...(linkedId ? { linkedId } : {}) })))
  }

  return {
    ...first,
    visit(...visits: readonly Visit[]): string[] {
      return decide(visits.map(recordOf)).replies.map(
        ({ body }) => (JSON.parse(body) as { visitorId: string }).visitorId,
      )
    },
    /** What rules are told of a visit. */
    velocityOf(visit: Visit): Velocity {
      const { velocity } = fromRow(rowAt(decodeEventsRecord(must(decide([recordOf(visit)]).records[0])), 0))
      return must(velocity)
    },
    erase: (visitorId: string, more: { readonly found?: readonly string[] } = {}) =>
      decide([encodeErasure({ ...AT, visitorId, erasureId: 'era_1', at: T0, ...more })]),
    expire: (visitorIds: readonly string[], before: number) => decide([encodeExpiry({ ...AT, visitorIds, before })]),
    alias(visitorId: string, survivor: string) {
      merged.push(visitorId)
      decide([encodeAliasing({ ...AT, visitorId, survivor, at: T0 })])
    },
    /** Who takes over with nothing but the log. */
    adopted() {
      const other = openStored()
      for (const bytes of log) {
        let wanted = other.partition.beginAdopt([bytes])
        while (wanted.length > 0) wanted = other.partition.provideAdopt(other.load(wanted))
        other.partition.adopt()
        other.store()
      }
      return other
    },
    log,
  }
}

const ipOf = (n: number): string => `203.0.${n}.7`

t.test('a visitor is found under its latest looks, and under none when it is erased', async (t) => {
  const world = openWorld()
  const [visitorId] = world.visit({ device: 1, ip: ipOf(1) }) as [string]
  const places = () => world.naming(visitorId).filter((name) => name.startsWith('index '))
  const first = places()
  t.ok(first.length > 2)
  for (let n = 2; n <= LOOKS; n++) {
    t.same(world.visit({ device: n, ip: ipOf(n), visitorId }), [visitorId])
    t.ok(places().length <= KEYS_MAX + EARLIER_KEYS_MAX, `after ${n} looks it is in ${places().length} entries`)
    if (n === 3)
      t.ok(
        first.every((name) => places().includes(name)),
        'and not forgotten at once where it was',
      )
  }
  t.notOk(first.some((name) => places().includes(name)))
  // Several looks in one batch, the last of it the order.
  world.visit({ device: 40, ip: ipOf(40), visitorId }, { device: 41, ip: ipOf(41), visitorId })
  world.erase(visitorId)
  t.same(world.naming(visitorId), [])
  t.same(world.adopted().naming(visitorId), [], 'nor for whoever adopts')
})

t.test('without a token a visitor is found by its looks, and bounded all the same', async (t) => {
  const world = openWorld()
  const [visitorId] = world.visit({ device: 1, ip: ipOf(1) }) as [string]
  for (let n = 2; n <= LOOKS; n++) {
    t.same(world.visit({ device: 1, ip: ipOf(n) }), [visitorId], 'its exact look leads to it')
    const places = world.naming(visitorId).filter((name) => name.startsWith('index '))
    t.ok(places.length <= KEYS_MAX + EARLIER_KEYS_MAX, `${places.length} entries`)
  }
  t.same([...world.adopted().stored], [...world.stored], 'adoption comes to the same')
  world.erase(visitorId)
  t.same(world.naming(visitorId), [])
})

t.test('places that an erased visitor was left in go when they are found', async (t) => {
  const world = openWorld()
  const [visitorId] = world.visit({ device: 1, ip: ipOf(1) }) as [string]
  const [other] = world.visit({ device: 2, ip: ipOf(2) }) as [string]
  world.erase(visitorId)
  world.stored.set(`index ${AT.workspace}/${ENV}/a_old`, [2, other, visitorId])
  const { records } = world.erase(visitorId, { found: ['a_old'] })
  t.same(world.naming(visitorId), [])
  t.same(world.stored.get(`index ${AT.workspace}/${ENV}/a_old`), [1, other])
  t.same(decodeEventsRecord(must(records[0])).erasure?.indexed, ['a_old'])
})

t.test('addresses and accounts do not count an erased visitor any more, and all the others', async (t) => {
  const counts = (velocity: Velocity) =>
    (['ip.visitors.24h', 'ip.events.24h', 'linkedId.visitors.24h', 'linkedId.ips.24h'] as const).map(
      (name) => velocity[name],
    )
  const world = openWorld()
  const [gone] = world.visit({ device: 1, ip: ipOf(1), linkedId: 'alone' }) as [string]
  const other = must(world.visit({ device: 2, ip: ipOf(2), linkedId: 'shared' })[0])
  // With the other one at its address, alone at another, and in the batch of its erasure.
  for (const ip of [ipOf(2), ipOf(3), ipOf(3)]) world.visit({ device: 1, ip, visitorId: gone, linkedId: 'shared' })
  t.same(counts(world.velocityOf({ device: 2, ip: ipOf(2), visitorId: other, linkedId: 'shared' })), [2, 3, 2, 2])
  world.erase(gone)
  t.same(
    counts(world.velocityOf({ device: 7, ip: ipOf(1), linkedId: 'alone' })),
    [1, 1, 1, 1],
    'as if nobody had been there',
  )
  t.same(counts(world.velocityOf({ device: 2, ip: ipOf(2), visitorId: other, linkedId: 'shared' })), [1, 3, 1, 1])
  t.same([...world.adopted().stored], [...world.stored], 'adoption comes to the same')
})

t.test('an expired visitor leaves nothing, and comes back with its token alone', async (t) => {
  const world = openWorld()
  const [old] = world.visit({ device: 1, ip: ipOf(1) }) as [string]
  world.visit({ device: 2, ip: ipOf(2), visitorId: old })
  const [young] = world.visit({ device: 3, ip: ipOf(3) }) as [string]
  // Each visit is a second after the one before.
  world.expire([old, young], T0 + 1_500)
  t.same(world.naming(old), [])
  t.ok(world.naming(young).length > 3, 'who was seen since stays, though it was named')
  t.not(world.visit({ device: 2, ip: ipOf(2) })[0], old)
  t.same(world.visit({ device: 1, ip: ipOf(9), visitorId: old }), [old])
  t.same([...world.adopted().stored], [...world.stored], 'adoption comes to the same')
  world.erase(old)
  t.not(world.visit({ device: 1, ip: ipOf(9), visitorId: old })[0], old, 'an erased one never does')
})

t.test('an expired visitor that was merged keeps nothing but whose its tokens are', async (t) => {
  const world = openWorld()
  const [survivor] = world.visit({ device: 1, ip: ipOf(1) }) as [string]
  const [other] = world.visit({ device: 2, ip: ipOf(2) }) as [string]
  world.alias(other, survivor)
  world.alias(survivor, survivor)
  const before = T0 + 1_000_000
  world.expire([survivor, other], before)
  for (const id of [survivor, other]) {
    t.same(world.naming(id).filter((key) => !key.startsWith('visitor ')).length, 0, 'no look leads to it')
  }
  const [again] = world.expire([survivor, other], before).records
  t.equal(decodeEventsRecord(must(again)).expiry, undefined, 'who has had its time has it once')
  const [back] = world.visit({ device: 2, ip: ipOf(9), visitorId: other })
  t.equal(back, survivor, 'its token still is the survivor’s')
  t.not(world.visit({ device: 1, ip: ipOf(1) })[0], survivor)
  t.same([...world.adopted().stored], [...world.stored], 'adoption comes to the same')
})
