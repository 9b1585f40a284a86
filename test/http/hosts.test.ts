// How many of one host are under way is counted exactly, whoever else comes and goes.

import t from 'tap'
import { type Host, openHosts } from '../../src/http/hosts.ts'
import { rng, testSeed } from '../helpers/rng.ts'

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
