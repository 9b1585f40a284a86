// The log on LMDB: the common guarantees, and what only a local disk can do to it.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { Full, Unreadable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import type { Log, LogRecord } from '../../src/log/log.ts'
import { type LogConfig, openLog } from '../../src/log/open.ts'
import { startChild } from '../helpers/child.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { logContract } from './log.ts'

const WHOLE = sized({ quick: false, usual: true, long: true })
const KILLS = sized({ quick: 1, usual: 2, long: 5 })
const CHILD = join(import.meta.dirname, 'storage.child.js')
const texts = (records: readonly LogRecord[]) => records.map(({ bytes }) => Buffer.from(bytes).toString())
const ALL = { recordsMax: 1_000_000, bytesMax: 1_000_000_000, waitMsMax: 0 }

function tempDir(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'log-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

const configFor = (dataDir: string, more: Partial<LogConfig> = {}): LogConfig => ({
  backend: 'lmdb',
  dataDir,
  partitions: 2,
  clock: systemClock,
  bytesMax: 1_000_000_000,
  ...more,
})

function contractWith(title: string, more: Partial<LogConfig>) {
  logContract(t, title, async () => {
    const dataDir = tempDir(t)
    let log: Log = await openLog(configFor(dataDir, more))
    return {
      log,
      reopen: async () => {
        await log.close()
        log = await openLog(configFor(dataDir, more))
        t.teardown(() => log.close())
        return log
      },
    }
  })
}

contractWith('lmdb, small memory', { tailBytesMax: 4_000 })
if (WHOLE) {
  contractWith('lmdb', {})
  contractWith('lmdb, reading from disk', { tailBytesMax: 0 })
  contractWith('lmdb, relaxed', { durability: 'relaxed' })
}

t.test(
  'entries of any size and any content are read from disk as they were appended, and texts take less room than they have',
  async (t) => {
    const seed = testSeed()
    t.comment(`SEED=${seed}`)
    const random = rng(seed)
    const text = (length: number) =>
      Buffer.from(
        JSON.stringify({ name: 'canvas', value: random.int(1_000_000) }).repeat(Math.ceil(length / 40)),
      ).subarray(0, length)
    const noise = (length: number) => Buffer.from(Array.from({ length }, () => random.int(256)))
    const dataDir = tempDir(t)
    const memoryless = configFor(dataDir, { tailBytesMax: 0 })
    const before = await openLog(memoryless)
    const appended: Buffer[] = []
    for (let i = 0; i < sized({ quick: 60, usual: 200, long: 1_000 }); i++) {
      const length = random.pick([1, 300, 511, 512, 513, 3_000, 16_384, 70_000])
      const records = Array.from({ length: 1 + random.int(3) }, () =>
        (random.chance(0.5) ? text : noise)(1 + random.int(length)),
      )
      await before.append('identifications', 0, records)
      appended.push(...records)
    }
    await before.append('events', 1, [text(400_000)])
    const { bytes } = await before.usage()
    await before.close()
    const log = await openLog(memoryless)
    t.teardown(() => log.close())
    const whole = await log.read('identifications', 0, 0, ALL)
    t.equal(whole.length, appended.length)
    const same = ({ seq, bytes }: LogRecord) => Buffer.compare(bytes, must(appended[seq - 1])) === 0
    // Compared when all were read: none may lie where another was read to later.
    t.ok(whole.every(same), 'read together')
    for (let i = 0; i < 50; i++) {
      const after = random.int(appended.length)
      const some = await log.read('identifications', 0, after, { ...ALL, recordsMax: 1 + random.int(20) })
      t.ok(some[0]?.seq === after + 1 && some.every(same), `behind ${after}`)
      t.ok(same(must(await log.at('identifications', 0, after + 1))), `at ${after + 1}`)
    }
    const texts = appended.filter((one) => one.includes('canvas')).reduce((sum, { length }) => sum + length, 400_000)
    const all = appended.reduce((sum, { length }) => sum + length, 400_000)
    t.ok(bytes < all - texts / 2, `${bytes} bytes for ${all} of which ${texts} are texts`)
  },
)

t.test('a record in flight is not readable', async (t) => {
  const log = await openLog(configFor(tempDir(t)))
  const appending = log.append('events', 0, [Buffer.from('x')])
  t.same(await log.read('events', 0, 0, ALL), [])
  t.equal(await log.last('events', 0), 0)
  t.equal(await log.at('events', 0, 1), null)
  await appending
  t.equal((await log.read('events', 0, 0, ALL)).length, 1)
  await log.close()
})

t.test('a record in flight is read by who asks for what is submitted, in any memory', async (t) => {
  for (const tailBytesMax of [0, 1_000_000]) {
    const log = await openLog(configFor(tempDir(t), { tailBytesMax }))
    const submitted = { ...ALL, submitted: true, waitMsMax: 10_000 }
    const reading = log.read('events', 0, 0, submitted)
    const appending = log.append('events', 0, [Buffer.from('x'), Buffer.from('y')])
    const found = await reading
    const durable = await log.last('events', 0)
    t.equal(durable, tailBytesMax === 0 ? 2 : 0, 'before it is durable, where it is kept in memory')
    t.same(texts(found), ['x', 'y'])
    t.same(await log.read('events', 0, must(found.at(-1)).seq, { ...submitted, waitMsMax: 0 }), [])
    await appending
    t.same(texts(await log.read('events', 0, 0, ALL)), ['x', 'y'])
    await log.close()
  }
})

t.test('an append that waits for others shares their flush, and is written without them', async (t) => {
  const log = await openLog(configFor(tempDir(t)))
  const order: string[] = []
  const patient = log.append('identifications', 0, [Buffer.from('a')], { patient: true }).then(() => order.push('a'))
  const other = log.append('events', 0, [Buffer.from('b')]).then(() => order.push('b'))
  await Promise.all([patient, other])
  t.same(order, ['a', 'b'], 'in the order in which they came')
  await log.append('identifications', 0, [Buffer.from('c')], { patient: true })
  t.same(texts(await log.read('identifications', 0, 0, ALL)), ['a', 'c'])
  void log.append('identifications', 1, [Buffer.from('d')], { patient: true })
  await log.close()
})

t.test('above its byte limit the log refuses, and a trim makes room', async (t) => {
  const log = await openLog(configFor(tempDir(t), { bytesMax: 2_000_000, tailBytesMax: 0 }))
  const fill = async () => {
    for (let count = 0; ; count += 1) {
      try {
        await log.append('events', 0, [Buffer.alloc(50_000, 1)])
      } catch (error) {
        t.ok(error instanceof Full)
        return count
      }
    }
  }
  const first = await fill()
  t.ok(first > 20, `${first} appends fit`)
  const { bytes, bytesMax } = await log.usage()
  t.ok(bytes <= bytesMax)
  t.equal((await log.read('events', 0, 0, ALL)).length, first, 'the refused one left nothing')
  await log.trim('events', 0, await log.last('events', 0))
  const second = await fill()
  t.ok(second >= first - 2, `${second} fit again`)
  await log.close()
})

t.test('more than may wait for the disk is refused at once', async (t) => {
  const log = await openLog(configFor(tempDir(t), { queuedBytesMax: 300_000 }))
  const outcomes = await Promise.allSettled(
    Array.from({ length: 6 }, () => log.append('events', 0, [Buffer.alloc(80_000, 1)])),
  )
  t.same(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'],
  )
  await log.append('events', 0, [Buffer.from('later')])
  t.equal((await log.read('events', 0, 0, ALL)).length, 4)
  await log.close()
})

/** Of the log's file. */
const PAGE_BYTES = 4_096

t.test('a damaged file is refused instead of crashing', async (t) => {
  const dataDir = tempDir(t)
  const log = await openLog(configFor(dataDir))
  for (let count = 0; count < 50; count += 1) {
    await log.append('events', 0, [randomBytes(3_000), randomBytes(100)])
  }
  await log.close()
  const file = join(dataDir, 'log', 'data.mdb')
  const good = readFileSync(file)
  const damage: Record<string, () => void> = {
    truncated: () => truncateSync(file, good.length - 20_000),
    'cut inside the header': () => truncateSync(file, 100),
    'cut after the header': () => truncateSync(file, 2 * PAGE_BYTES),
    'random bytes': () => writeFileSync(file, Buffer.alloc(50_000, 0xa5)),
    text: () => writeFileSync(file, 'not a database'),
    'second header gone': () =>
      writeFileSync(
        file,
        Buffer.concat([good.subarray(0, PAGE_BYTES), Buffer.alloc(PAGE_BYTES), good.subarray(2 * PAGE_BYTES)]),
      ),
    'all pages but the headers gone': () =>
      writeFileSync(
        file,
        Buffer.concat([good.subarray(0, 2 * PAGE_BYTES), Buffer.alloc(good.length - 2 * PAGE_BYTES)]),
      ),
  }
  for (const [what, apply] of Object.entries(damage)) {
    writeFileSync(file, good)
    apply()
    await t.rejects(openLog(configFor(dataDir)), Unreadable, what)
  }
  writeFileSync(file, good)
  const again = await openLog(configFor(dataDir))
  t.equal((await again.read('events', 0, 0, ALL)).length, 100)
  await again.close()
})

t.test('a file that lacks only free pages at its end is opened', async (t) => {
  const dataDir = tempDir(t)
  const log = await openLog(configFor(dataDir))
  // Enough for branch pages, with records inside leaves and on pages of their own.
  for (let count = 0; count < 400; count += 20) {
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        log.append('events', 0, [randomBytes(n % 2 === 0 ? 600 : 12_000), Buffer.alloc(1_000, n)]),
      ),
    )
  }
  await log.close()
  const file = join(dataDir, 'log', 'data.mdb')
  const bytes = readFileSync(file)
  for (const page of [0, PAGE_BYTES]) {
    const at = page + 24 + 120
    bytes.writeBigUInt64LE(bytes.readBigUInt64LE(at) + 50n, at)
  }
  writeFileSync(file, bytes)
  const again = await openLog(configFor(dataDir))
  t.equal((await again.read('events', 0, 0, ALL)).length, 800)
  await again.close()
  truncateSync(file, Math.floor(bytes.length / 2))
  await t.rejects(openLog(configFor(dataDir)), Unreadable, 'pages in use are missing')
})

t.test('killed while appending, the log keeps every acknowledged append and no part of another', async (t) => {
  const dataDir = tempDir(t)
  const acknowledged = new Set<number>()
  for (let cycle = 0; cycle < KILLS; cycle += 1) {
    const child = startChild(CHILD, ['log', dataDir])
    await child.line(() => child.lines.length > 50 + cycle * 37)
    await child.kill()
    for (const line of child.lines) acknowledged.add(Number(line))
    const log = await openLog(configFor(dataDir))
    const complete = new Map<number, number>()
    let expected: { batch: number; index: number } | null = null
    let torn = 0
    for (const { bytes } of await log.read('events', 0, 0, ALL)) {
      const [batch, index, of] = Buffer.from(bytes).toString().split(' ').map(Number) as [number, number, number]
      if (expected ? batch !== expected.batch || index !== expected.index : index !== 0) torn += 1
      expected = index + 1 < of ? { batch, index: index + 1 } : null
      if (index + 1 === of) complete.set(batch, (complete.get(batch) ?? 0) + 1)
    }
    t.equal(torn, 0)
    t.equal(expected, null, 'the last append is whole')
    t.same(
      [...acknowledged].filter((batch) => complete.get(batch) !== 1),
      [],
      `cycle ${cycle}: ${acknowledged.size} acknowledged, ${complete.size} found`,
    )
    await log.close()
  }
})

if (WHOLE) {
  t.test('a full disk fails appends, keeps what was written, and heals', async (t) => {
    const child = startChild(CHILD, ['full', tempDir(t)], 'ulimit -S -f 20000;')
    t.teardown(() => child.kill())
    await child.line((line) => line === 'full')
    execFileSync('prlimit', ['--pid', String(must(child.process.pid)), '--fsize=unlimited:unlimited'])
    must(child.process.stdin).write('go\n')
    t.same(JSON.parse(await child.line((line) => line.startsWith('{'))), {
      consistentWhenFull: true,
      consistentAfter: true,
      writtenAfter: 20,
      failures: true,
      unhandled: 0,
      takenBack: true,
    })
  })
}

t.test('a record is replaced in its place, and trimmed and replaced bytes go with a compaction', async (t) => {
  const dataDir = tempDir(t)
  let log = await openLog(configFor(dataDir))
  const texts = (from: number) => [0, 1, 2].map((n) => Buffer.from(`record ${from + n} s3cret-${from + n}-`))
  for (let from = 1; from <= 30; from += 3) await log.append('changes', 0, texts(from))
  const read = async () =>
    (await log.read('changes', 0, 0, ALL)).map(({ seq, bytes }) => `${seq} ${Buffer.from(bytes)}`)
  // Ends in the middle of what was appended together.
  await log.trim('changes', 0, 10)
  const before = await read()
  await Promise.all([
    log.replace?.('changes', 0, 14, Buffer.from('another, and longer than it was before')),
    log.replace?.('changes', 0, 5, Buffer.from('one that is gone')),
    log.replace?.('changes', 0, 99, Buffer.from('one that never was')),
    log.append('changes', 0, [Buffer.from('the last')]),
  ])
  const wanted = [...before, '31 the last']
  wanted[3] = '14 another, and longer than it was before'
  t.same(await read(), wanted)
  t.equal(Buffer.from(must(await log.at('changes', 0, 14)).bytes).toString(), 'another, and longer than it was before')
  await log.compact?.()
  const file = readFileSync(join(dataDir, 'log', 'data.mdb'))
  for (const n of [1, 9, 10, 14]) t.notOk(file.includes(`s3cret-${n}-`), `record ${n}`)
  for (const n of [11, 12, 15]) t.ok(file.includes(`s3cret-${n}-`), `record ${n} is there`)
  t.same(await read(), wanted)
  await log.append('changes', 0, [Buffer.from('after')], { expectLast: 31 })
  await log.close()
  log = await openLog(configFor(dataDir))
  t.same(await read(), [...wanted, '32 after'])
  await log.close()
})
