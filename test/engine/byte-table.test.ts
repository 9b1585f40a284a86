// A table of records outside of the heap tells what a map tells, whatever is set, loaded, taken and let go.

import t from 'tap'
import { createByteTable } from '../../src/engine/byte-table.ts'
import { built, measurePromoted } from '../helpers/promoted.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const IDS = 400
const STEPS = 30_000
const RECORD_BYTES_MAX = 2_000

t.test('it holds what was set or loaded, changed since or not, as long as it may not let go of it', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  const entriesMax = 60
  const table = createByteTable(entriesMax)
  /** What is in the kv, and what was set since: of the latter nothing may be lost. */
  const stored = new Map<string, string>()
  let set = new Map<string, string | null>()
  let taken = new Map<string, string | null>()
  /** What the kv has with what it may be getting now. */
  const known = (id: string): string | null =>
    set.get(id) ?? (set.has(id) ? null : (taken.get(id) ?? (taken.has(id) ? null : (stored.get(id) ?? null))))
  let missed = 0

  function read(id: string): string | null | undefined {
    const place = table.find(id)
    return place ? table.bytes().toString('latin1', place.start, place.end) : place
  }

  for (let step = 0; step < STEPS; step++) {
    // Ids of one length that differ at their beginning only as well.
    const id = `${random.int(4)}/live/pv_${String(random.int(IDS)).padStart(20, '0')}`
    const what = random.int(10)
    const record = random.chance(0.1)
      ? null
      : 'x'.repeat(random.int(random.chance(0.05) ? RECORD_BYTES_MAX : 90)) + step
    if (what < 4) {
      table.set(id, record === null ? null : Buffer.from(record))
      set.set(id, record)
    } else if (what < 9) {
      const found = read(id)
      if (found === undefined) {
        missed++
        if (set.has(id) || taken.has(id)) t.fail(`step ${step}: what was set is not there`)
        const value = stored.get(id)
        table.load(id, value === undefined ? null : Buffer.from(value))
        // What is known already stays.
        table.load(id, Buffer.from('something else'))
      }
      if (read(id) !== known(id)) t.fail(`step ${step}: ${read(id)} instead of ${known(id)}`)
      if (!table.has(id)) t.fail(`step ${step}: it is there and is not`)
    } else if (random.chance(0.1)) {
      for (const [one, value] of taken) value === null ? stored.delete(one) : stored.set(one, value)
      if (table.dirtyCount() !== set.size)
        t.fail(`step ${step}: ${table.dirtyCount()} entries to write, not ${set.size}`)
      const { entries, gone } = table.takeDirty(0)
      const written = [
        ...gone.map((one) => [one, null] as const),
        ...[...entries()].map(([one, bytes]) => [one, bytes.toString('latin1')] as const),
      ]
      // As often as it is asked for, and as it was when it was taken.
      table.set(id, Buffer.from('later'))
      if ([...entries()].length + gone.length !== written.length) t.fail(`step ${step}: another number of entries`)
      t.same(new Map(written), set, `what was set before step ${step}`)
      taken = set
      set = new Map([[id, 'later']])
    }
  }
  t.ok(missed > 100, `${missed} times something had been let go of`)
})

t.test('generations take turns in the same memory, and give up what they no longer need', async (t) => {
  const table = createByteTable(2 * IDS)
  let nowMs = 0
  /** Has more than half of what the table may hold changed, or waits until it is old, so that a generation begins behind it. */
  function turn(turns: number, entries: number): void {
    for (let n = 0; n < entries; n++) table.set(`live/pv_${turns}/${n}`, Buffer.from('x'.repeat(90)))
    for (let n = 0; n < entries; n++) if (!table.find(`live/pv_${turns}/${n}`)) t.fail(`entry ${n} of turn ${turns}`)
    table.takeDirty(nowMs)
    nowMs += 3_600_000
  }
  const seen = new Set<Buffer>()
  let turns = 0
  for (; turns < 40; turns++) {
    turn(turns, IDS + 1)
    if (turns >= 4) seen.add(table.bytes())
  }
  t.equal(seen.size, 2)
  const bytes = table.bytes().length
  for (; turns < 44; turns++) turn(turns, 5)
  t.ok(table.bytes().length < bytes / 2, `${table.bytes().length} bytes after ${bytes}`)
  t.equal(table.find('live/pv_0/0'), undefined)
})

/** Bytes that reach the old generation with each record, of 3,000 that change again and again, as bytes in a map and in the table. */
const PROMOTED = `
  import { createByteTable } from ${built('engine/byte-table.js')}
  const table = createByteTable(100_000)
  const map = new Map()
  const idOf = (n) => 'ws/live/pv_' + String((n * 7919) % 3_000).padStart(20, '0')
  const recordOf = (n) => new Uint8Array(200 + (n % 40))
  const byMap = await promotedBy((n) => void map.set(idOf(n), recordOf(n)), 60_000)
  const byTable = await promotedBy((n) => {
    table.set(idOf(n), recordOf(n))
    if (n % 6_000 === 0) for (const one of table.takeDirty(n).entries()) one.length
  }, 60_000)
  console.log(JSON.stringify([byMap / 60_000, byTable / 60_000]))`

t.test('what changes again and again makes no heap old', async (t) => {
  const [byMap, byTable] = (await measurePromoted(PROMOTED)) as [number, number]
  t.comment(`promoted with each record: by a map ${byMap.toFixed(1)} bytes, by the table ${byTable.toFixed(1)}`)
  t.ok(byTable < byMap / 10, `${byTable} bytes of ${byMap}`)
})
