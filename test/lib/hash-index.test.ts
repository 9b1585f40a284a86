// Entries found by a hash, alone and in a queue: what a map or a list tells, whatever comes, goes and coincides.

import t from 'tap'
import { createHashIndex, NO_ENTRY } from '../../src/lib/hash-index.ts'
import { createHashQueue } from '../../src/lib/hash-queue.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const KEYS = 3_000
/** Many keys share a hash, and many hashes their lowest bits. */
const hashOf = (key: number): number => (key % 700) * 2 ** 28 + (key % 5)

t.test('an index holds what a map holds, though hashes and their lowest bits coincide', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  const map = new Map<number, number>()
  /** By entry. */
  const keys: number[] = []
  const index = createHashIndex<number>(
    (entry) => hashOf(keys[entry] as number),
    (entry, key) => keys[entry] === key,
  )
  for (let step = 0; step < 60_000; step++) {
    const key = random.int(KEYS)
    const held = map.get(key) ?? NO_ENTRY
    if (index.find(hashOf(key), key) !== held) t.fail(`step ${step}: another entry is found`)
    // It fills up in half of the time and empties in the other.
    if (random.chance(step % 20_000 < 10_000 ? 0.7 : 0.3)) {
      keys.push(key)
      map.set(key, keys.length - 1)
      index.put(hashOf(key), key, keys.length - 1)
    } else {
      if (index.remove(hashOf(key), key) !== held) t.fail(`step ${step}: another entry was removed`)
      map.delete(key)
    }
    if (index.size() !== map.size) t.fail(`step ${step}: ${index.size()} entries instead of ${map.size}`)
  }
  for (let key = 0; key < KEYS; key++) {
    if (index.find(hashOf(key), key) !== (map.get(key) ?? NO_ENTRY)) t.fail(`key ${key} in the end`)
  }
  index.clear()
  t.equal(index.size(), 0)
  t.equal(index.find(hashOf(1), 1), NO_ENTRY)
})

t.test('a queue finds the newest entry of a hash, with its numbers and bytes, until that is dropped', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  const queue = createHashQueue(2, 2)
  let list: { hash: number; value: number }[] = []
  for (let step = 0; step < 20_000; step++) {
    if (random.chance(step % 5_000 < 2_500 ? 0.7 : 0.3)) {
      const hash = random.int(400) * 2 ** 40
      const slot = queue.push(hash)
      queue.setNumber(0, slot, step)
      queue.setNumber(1, slot, -step)
      queue.bytes().writeUInt16BE(step % 65_536, 2 * slot)
      list.push({ hash, value: step })
    } else if (list.length > 0) {
      queue.dropOldest()
      list = list.slice(1)
    }
    const asked = random.int(400) * 2 ** 40
    const slot = queue.find(asked)
    const expected = list.findLast(({ hash }) => hash === asked)
    const found =
      slot === NO_ENTRY
        ? undefined
        : [queue.hashOf(slot), queue.number(0, slot), queue.number(1, slot), queue.bytes().readUInt16BE(2 * slot)]
    const wanted = expected && [asked, expected.value, -expected.value, expected.value % 65_536]
    if (JSON.stringify(found) !== JSON.stringify(wanted)) t.same(found, wanted, `step ${step}`)
    if (queue.size() !== list.length) t.fail(`step ${step}: ${queue.size()} entries instead of ${list.length}`)
  }
  const inOrder = Array.from(list, (_, place) => queue.number(0, queue.slotAt(place)))
  t.same(
    inOrder,
    list.map(({ value }) => value),
    'oldest first',
  )
})
