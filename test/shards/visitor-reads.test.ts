// What of an engine's reads counts as a visitor it did not hold.

import t from 'tap'
import type { Kv } from '../../src/kv/kv.ts'
import { VISITOR } from '../../src/records/partitions.ts'
import { countVisitorReads } from '../../src/shards/visitor-reads.ts'

t.test('visitors are counted by whether anybody knows them, other entries and failures are not', async (t) => {
  const counted = { found: 0, absent: 0 }
  const tally = (name: keyof typeof counted) => ({
    add(count: number) {
      counted[name] += count
    },
  })
  let fails = false
  const kv: Pick<Kv, 'get' | 'position'> = {
    async get<T>(_scope: string, keys: Parameters<Kv['get']>[1]) {
      if (fails) throw new Error('away')
      return keys.map((key) => (key[1] === 'stranger' ? null : { key, value: 1 as T, version: 1 }))
    },
    position: async () => 7,
  }
  const seen = countVisitorReads(kv, { found: tally('found'), absent: tally('absent') })
  const entries = await seen.get('p/0', [
    [VISITOR, 'a'],
    ['index', 'a'],
    [VISITOR, 'stranger'],
    [VISITOR, 'b'],
  ])
  t.same(
    entries.map((entry) => entry?.key[1] ?? null),
    ['a', 'a', null, 'b'],
  )
  t.same(counted, { found: 2, absent: 1 })
  fails = true
  await t.rejects(seen.get('p/0', [[VISITOR, 'a']]), /away/)
  t.same(counted, { found: 2, absent: 1 })
  t.equal(await seen.position('p/0', 'events'), 7)
})
