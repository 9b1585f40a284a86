// Values that are compressed here, and those that lmdb compresses: one form, read by lmdb.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { openDatabase, storedIn } from '../../src/lib/lmdb-database.ts'
import { packed } from '../../src/lib/lz4.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { temporaryFolder } from '../helpers/server.ts'

const CONFIG = { durability: 'relaxed', pageBytes: 4_096, compressed: true } as const
const keyOf = (n: number): Buffer => Buffer.from(String(n))

t.test(
  'lmdb reads what was compressed here as it was, of any length and content, and what it has compressed itself',
  async (t) => {
    const seed = testSeed()
    t.comment(`seed ${seed}`)
    const random = rng(seed)
    const db = openDatabase(CONFIG, temporaryFolder())
    t.teardown(() => db.close())
    const values = Array.from({ length: 300 }, (_, n) => {
      const length = n < 20 ? n : random.int(n % 50 === 0 ? 300_000 : 5_000)
      if (n % 3 === 0) return randomBytes(length)
      const text = Buffer.from(`{"of":${random.int(5)}}`.repeat(1 + length / 8)).subarray(0, length)
      // lmdb takes these first bytes for its own sign.
      if (n % 5 === 0 && length > 0) text[0] = 250 + random.int(6)
      return text
    })
    let here = 0
    for (const [n, value] of values.entries()) {
      const { to, bytes } = storedIn(db, CONFIG, value)
      if (to !== db) here++
      // Every second one as before, by lmdb, which crashes when it compresses what is put outside a batch.
      await db.batch(() => void (n % 2 === 0 ? db.put(keyOf(n), value) : to.put(keyOf(n), bytes as Buffer)))
    }
    t.ok(here > 200, `${here} compressed here`)
    for (const [n, value] of values.entries()) {
      const found = db.getBinary(keyOf(n)) as Buffer
      if (Buffer.compare(found, value) !== 0) t.fail(`value ${n} of ${value.length} bytes is another`)
    }
  },
)

t.test('it is compressed in truth, with the length lmdb expects in front', async (t) => {
  const value = Buffer.from('a word and another. '.repeat(1_000))
  const bytes = packed(value) as Buffer
  t.ok(bytes.length < value.length / 10, `${bytes.length} bytes`)
  t.same([...bytes.subarray(0, 4)], [254, 0, 78, 32])
  t.equal(packed(Buffer.alloc(0x1_00_00_00)), null, 'too long for this form')
})

t.test('nothing is compressed in a database that was not asked to, nor what is short', async (t) => {
  const config = { ...CONFIG, compressed: false }
  const db = openDatabase(config, temporaryFolder())
  t.teardown(() => db.close())
  const long = Buffer.alloc(10_000)
  t.equal(storedIn(db, config, long).bytes, long)
  const short = Buffer.alloc(100)
  t.equal(storedIn(db, CONFIG, short).bytes, short)
})
