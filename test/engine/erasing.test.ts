// What a visitor leaves in the state of its partition when it is erased, after looks and addresses of many kinds: nothing that names
// it, whether the decisions are fresh or adopted.

import t from 'tap'
import type { Velocity } from '../../src/domain/event.ts'
import { decodeEventsRecord } from '../../src/events/record.ts'
import { must } from '../../src/lib/must.ts'
import { EARLIER_KEYS_MAX } from '../../src/records/visitors.ts'
import { AT, openWorld, T0 } from '../helpers/partition-world.ts'

const LOOKS = 30
/** Of the latest look. */
const KEYS_MAX = 6

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
  world.stored.set(`index ${AT.workspace}/${AT.env}/a_old`, [2, other, visitorId])
  const { records } = world.erase(visitorId, { found: ['a_old'] })
  t.same(world.naming(visitorId), [])
  t.same(world.stored.get(`index ${AT.workspace}/${AT.env}/a_old`), [1, other])
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
