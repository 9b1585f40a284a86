// Memory of a sink's batches: it holds what was added, the next batch uses it again, and what was abandoned nobody writes to.

import t from 'tap'
import { openBytes, openRowMemory } from '../../src/sink/rows.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'

const PARTITIONS = 3

const piece = (random: Rng, bytesMax: number): Buffer =>
  Buffer.alloc(1 + random.int(bytesMax), String.fromCharCode(97 + random.int(26)))

t.test(
  'each partition’s rows are what was added since they were cleared, and joined they follow each other',
  async (t) => {
    const seed = testSeed()
    t.comment(`seed ${seed}`)
    const random = rng(seed)
    const memory = openRowMemory()
    for (let batch = 0; batch < 60; batch++) {
      const added = Array.from({ length: PARTITIONS }, (): Buffer[] => [])
      for (const partition of added.keys()) memory.of(partition).clear()
      // Every tenth is a rush, which takes more than the others together.
      const pieces = batch % 10 === 0 ? 600 : 30
      for (let i = 0; i < pieces; i++) {
        const partition = random.int(PARTITIONS)
        const bytes = piece(random, 4_000)
        memory.of(partition).add(bytes)
        added[partition]?.push(bytes)
      }
      const wanted = added.map((all) => Buffer.concat(all))
      const rows = wanted.map((_, partition) => memory.of(partition).all())
      if (!wanted.every((bytes, partition) => bytes.equals(rows[partition] as Uint8Array))) t.fail(`batch ${batch}`)
      if (!Buffer.concat(wanted).equals(memory.join(rows))) t.fail(`batch ${batch}, joined`)
      if (random.chance(0.1)) memory.abandon()
    }
    t.pass('all batches were looked at')
  },
)

t.test('the next batch lies where the last one lay, and what a rush took is given back', async (t) => {
  const bytes = openBytes()
  const fill = (count: number): ArrayBufferLike => {
    bytes.clear()
    for (let i = 0; i < count; i++) bytes.add(Buffer.alloc(1_000))
    return bytes.all().buffer
  }
  fill(1_000)
  t.equal(fill(900), fill(1_000))
  const rush = fill(20_000).byteLength
  for (let i = 0; i < 20; i++) fill(1_000)
  t.ok(fill(1_000).byteLength < rush / 4, 'it is smaller again')
})

t.test('what was abandoned stays as it was', async (t) => {
  const memory = openRowMemory()
  memory.of(0).add(Buffer.from('first'))
  const rows = memory.of(0).all()
  const joined = memory.join([rows])
  memory.abandon()
  memory.of(0).add(Buffer.from('other'))
  memory.join([Buffer.from('other')])
  t.same([rows, joined].map(String), ['first', 'first'])
})
