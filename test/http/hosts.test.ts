// How many of one host are under way is counted exactly, whoever else comes and goes.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { HOST_CELLS, type Host, openHosts } from '../../src/http/hosts.ts'
import { joinCounts, newCounts } from '../../src/lib/counts.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import type { Racing } from './hosts.child.ts'

const ROUNDS = sized({ quick: 200_000, usual: 500_000, long: 5_000_000 })

t.test('a host gets as many as it may, and one more for each that leaves', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  const hosts = openHosts({ max: 3, hostOf: (address) => (address === 'proxy' ? null : address) })
  const entered = new Map<string, Host[]>()
  for (let i = 0; i < 20_000; i++) {
    const address = r.pick(['proxy', 'a', 'b', 'c', 'd'])
    const own = entered.get(address) ?? []
    entered.set(address, own)
    const [leaving] = own
    if (leaving !== undefined && r.chance(0.4)) {
      hosts.leave(leaving)
      own.shift()
      continue
    }
    const host = hosts.enter(address)
    if ((host === null) !== (address !== 'proxy' && own.length === 3)) t.fail(`${address} has ${own.length}`)
    if (host !== null) own.push(host)
  }
})

t.test('room is made among those who left, never among those who are there', async (t) => {
  const hosts = openHosts({ max: 1, hostOf: (address) => address })
  const there = Array.from({ length: 100 }, (_, i) => hosts.enter(`there ${i}`))
  t.notOk(there.includes(null))
  for (let i = 0; i < 50_000; i++) hosts.leave(hosts.enter(`passing ${i}`) as Host)
  for (let i = 0; i < 100; i++) if (hosts.enter(`there ${i}`) !== null) t.fail(`${i} came in twice`)
  t.ok(hosts.enter('passing 0'))
})

t.test('a host gets no more than it may over all threads, and nothing stays counted', async (t) => {
  const cells = new Int32Array(new SharedArrayBuffer(4 * HOST_CELLS))
  const inside = new Int32Array(new SharedArrayBuffer(4 * 4))
  const threads = 3
  const racing: Racing = { cells, inside, max: 1, rounds: ROUNDS, threads }
  const child = new URL('./hosts.child.js', import.meta.url)
  const workers = Array.from({ length: threads }, () => new Worker(child, { workerData: racing }))
  await Promise.all(workers.map((worker) => once(worker, 'exit')))
  const [left, tooMany, entered] = inside
  t.equal(tooMany, 0)
  t.equal(left, 0)
  t.ok((entered ?? 0) > 0, `${entered} came in`)
  t.ok(cells.every((count) => count === 0))
})

t.test('hosts that share cells of a full table are refused early at worst, never let in too often', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const r = rng(seed)
  const counts = newCounts(HOST_CELLS)
  const threads = [counts, joinCounts(counts)].map((share) =>
    openHosts({ max: 2, hostOf: (address) => address, counts: share }),
  )
  const inside = new Map<string, [number, Host][]>()
  let refusedEarly = 0
  for (let step = 0; step < 60_000; step++) {
    const address = `192.0.${r.int(40)}.${r.int(250)}`
    const own = inside.get(address) ?? []
    inside.set(address, own)
    const thread = r.int(2)
    if (own.length > 0 && r.chance(0.45)) {
      const [of, host] = own.pop() as [number, Host]
      threads[of]?.leave(host)
      continue
    }
    const host = threads[thread]?.enter(address) ?? null
    if (host === null && own.length < 2) refusedEarly++
    if (host !== null) {
      own.push([thread, host])
      if (own.length > 2) t.fail(`${address} has ${own.length}`)
    }
  }
  t.ok(refusedEarly < 60, `${refusedEarly} were refused early`)
  for (const own of inside.values()) for (const [of, host] of own) threads[of]?.leave(host)
  t.ok(
    counts.all.every((count) => count === 0),
    'nothing stays counted',
  )
})
