// Leases: the shares fit each other whatever the group looks like, and names move when it changes.

import t, { type Test } from 'tap'
import { openLocalBus } from '../../src/bus/local.ts'
import { openKv } from '../../src/kv/open.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { leaseShareOf, listMembers, runLeases } from '../../src/records/leases.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'

/** So that a lease that never moves fails the test, however slow the machine. */
const MOVE_MS_MAX = 90_000

/** Names are looked at so often, and by every hint. */
const ROUND_MS = 750
t.teardown(cleanUp)

const names = (count: number) => Array.from({ length: count }, (_, index) => String(index))

t.test(
  'members that see the same come to even shares in three steps, and nobody gives back without need',
  async (t) => {
    const seed = testSeed()
    t.comment(`seed ${seed}`)
    const random = rng(seed)
    for (let round = 0; round < 500; round++) {
      const all = names(1 + random.int(24))
      const members = Array.from({ length: 1 + random.int(8) }, (_, index) => `m${index}`)
      const owners = new Map<string, string>()
      for (const name of all) {
        const owner = random.int(members.length + 2)
        if (owner < members.length) owners.set(name, members[owner] as string)
        else if (owner === members.length) owners.set(name, 'dead')
      }
      const even = (count: number) =>
        count >= Math.floor(all.length / members.length) && count <= Math.ceil(all.length / members.length)
      const counts = () => members.map((id) => [...owners.values()].filter((owner) => owner === id).length)
      const wasEven = ![...owners.values()].includes('dead') && owners.size === all.length && counts().every(even)
      for (const [name, owner] of owners) if (owner === 'dead') owners.delete(name)

      for (let step = 0; step < 2; step++) {
        const shares = members.map((id) => [id, leaseShareOf(id, all, { members, owners })] as const)
        const taken = shares.flatMap(([, { take }]) => take)
        if (new Set(taken).size !== taken.length) t.fail(`round ${round}: two take one name`)
        if (wasEven && shares.some(([, { giveBack }]) => giveBack.length > 0))
          t.fail(`round ${round}: moved for nothing`)
        for (const [, { giveBack }] of shares) for (const name of giveBack) owners.delete(name)
        for (const [id, { take }] of shares) for (const name of take) owners.set(name, id)
      }
      for (const id of members) for (const name of leaseShareOf(id, all, { members, owners }).take) owners.set(name, id)
      if (owners.size !== all.length || !counts().every(even))
        t.fail(`round ${round}: ${counts().join(' ')} of ${all.length}`)
    }
    t.pass('500 groups')
  },
)

t.test('names move when a member joins, leaves and dies, and no name is held twice meanwhile', async (t) => {
  const deployment = await openDeployment(t)
  const first = deployment.start('a')
  await deployment.until(() => first.holds().length === 8)

  const second = deployment.start('b')
  await deployment.until(() => first.holds().length === 4 && second.holds().length === 4)
  const third = deployment.start('c')
  await deployment.until(() => [first, second, third].every((m) => m.holds().length >= 2) && deployment.all())

  await second.leave()
  t.same(second.holds(), [])
  await deployment.until(() => first.holds().length === 4 && third.holds().length === 4)
  t.same((await listMembers(deployment.kv, 'g')).sort(), ['a', 'c'])

  third.die()
  await deployment.until(() => first.holds().length === 8)
  t.same(deployment.doubles, [])
  await first.leave()
})

t.test('work that fails is tried again, and not at once', async (t) => {
  const deployment = await openDeployment(t)
  let tries = 0
  const member = deployment.start('a', async () => {
    tries++
    throw new Error('not now')
  })
  const startedAt = clock.monotonic()
  await deployment.until(() => tries >= 8 * 3)
  await clock.sleep(500)
  const rounds = (clock.monotonic() - startedAt) / ROUND_MS
  await member.leave()
  t.ok(tries <= 8 * (rounds + 2), `${tries} tries of 8 names in ${rounds.toFixed(1)} rounds`)
})

async function openDeployment(t: Test) {
  const kv = await openKv({ backend: 'lmdb', dataDir: temporaryFolder(), clock, durability: 'relaxed' })
  const bus = openLocalBus({ onError: (error) => t.error(error) })
  const holders = new Map<string, string>()
  const doubles: string[] = []
  const ends: (() => Promise<void>)[] = []
  t.teardown(async () => {
    await Promise.all(ends.map((end) => end()))
    await kv.close()
  })

  function start(member: string, work?: () => Promise<void>) {
    const mine = new Set<string>()
    const stopping = new AbortController()
    let dead = false
    // What is dead reaches nothing any more, and what it held counts as free.
    const dying = {
      ...kv,
      commit: (...args: Parameters<typeof kv.commit>) => (dead ? new Promise<never>(() => {}) : kv.commit(...args)),
    }
    async function hold(name: string, signal: AbortSignal): Promise<void> {
      if (work !== undefined) return work()
      if (holders.has(name)) doubles.push(`${name}: ${member} while ${holders.get(name)}`)
      holders.set(name, member)
      mine.add(name)
      while (!signal.aborted && !dead) await clock.sleep(500, signal)
      mine.delete(name)
      if (holders.get(name) === member) holders.delete(name)
    }
    const needs = { bus, clock, group: 'g', member, names: names(8), hold, report: () => undefined }
    const running = runLeases({ ...needs, kv: dying }, stopping.signal)
    const leave = async () => {
      stopping.abort()
      if (!dead) await running
    }
    ends.push(leave)
    return {
      holds: () => [...mine],
      leave,
      die() {
        dead = true
        for (const name of mine) holders.delete(name)
        mine.clear()
      },
    }
  }

  return {
    kv,
    doubles,
    start,
    all: () => holders.size === 8,
    async until(done: () => boolean): Promise<void> {
      const deadline = clock.monotonic() + MOVE_MS_MAX
      while (!done() && clock.monotonic() < deadline) await clock.sleep(20)
      t.ok(done(), `within ${MOVE_MS_MAX} ms`)
    },
  }
}
