// The kv on LMDB: the common guarantees, expiry on disk, damage and sudden death.
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Kv } from '../../src/kv/kv.ts'
import { type KvConfig, openKv } from '../../src/kv/open.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { Full, Unreadable } from '../../src/lib/failures.ts'
import { must } from '../../src/lib/must.ts'
import { startChild } from '../helpers/child.ts'
import { eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { kvContract, UNSORTED } from './kv.ts'

const COMPACTED = sized({ quick: 60, usual: 200, long: 600 })
/** What each life that a kill ends does. */
const LIVES = sized({
  quick: ['kv-compacting'],
  usual: ['kv', 'kv-compacting'],
  long: Array.from({ length: 10 }, (_, life) => (life < 5 ? 'kv' : 'kv-compacting')),
})
const CHILD = join(import.meta.dirname, 'storage.child.js')

function tempDir(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kv-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

type LmdbConfig = Extract<KvConfig, { backend: 'lmdb' }>

const configFor = (dataDir: string, more: Partial<LmdbConfig> = {}): LmdbConfig => ({
  backend: 'lmdb',
  dataDir,
  clock: systemClock,
  sweepEveryMs: 20,
  unsorted: UNSORTED,
  ...more,
})

kvContract(t, 'lmdb', async () => {
  const dataDir = tempDir(t)
  let kv: Kv = await openKv(configFor(dataDir))
  return {
    kv,
    reopen: async () => {
      await kv.close()
      kv = await openKv(configFor(dataDir))
      t.teardown(() => kv.close())
      return kv
    },
  }
})

t.test(
  'records that are renewed every moment take no more room for it, and still go when their time is over',
  async (t) => {
    let now = 1_000_000
    const clock: Clock = { ...systemClock, now: () => now }
    const kv = await openKv(configFor(tempDir(t), { clock }))
    t.teardown(() => kv.close())
    const keys = Array.from({ length: 1_000 }, (_, id) => ['counted', String(id)] as const)
    const renew = () =>
      kv.commit([{ scope: 'p/0', put: keys.map((key) => ({ key, value: 1, ttlMs: 26 * 3_600_000 })) }])
    const usage = () => must(kv.usage, 'a store that tells its size')()
    await renew()
    const once = await usage()
    for (let round = 0; round < 10; round++) {
      now += 5
      await renew()
    }
    const often = await usage()
    t.ok(often < 2 * once, `${once} to ${often} bytes`)
    now += 27 * 3_600_000
    const left = await eventually(usage, (bytes) => bytes < once / 4)
    t.ok(left < once / 4, `${left} bytes are left`)
  },
)

t.test('records whose writer knows them leave the disk when their last time is over, compacted or not', async (t) => {
  const HOUR_MS = 3_600_000
  let now = 1_000 * HOUR_MS
  const clock: Clock = { ...systemClock, now: () => now }
  const kv = await openKv(configFor(tempDir(t), { clock }))
  t.teardown(() => kv.close())
  const keys = Array.from({ length: 1_000 }, (_, id) => ['counted', String(id)] as const)
  const write = (isRenewal: boolean) =>
    kv.commit([{ scope: 'p/0', put: keys.map((key) => ({ key, value: now, ttlMs: 26 * HOUR_MS, isRenewal })) }])
  const usage = () => must(kv.usage, 'a store that tells its size')()
  const there = async () => (await kv.get('p/0', keys)).filter((entry) => entry !== null).length
  const empty = await usage()
  await write(false)
  const once = await usage()
  for (let hour = 0; hour < 24; hour++) {
    now += HOUR_MS
    await write(true)
  }
  t.ok((await usage()) < 1.5 * once, 'renewals note nothing')
  await kv.compact?.()
  // The time that was noted comes, and the next one is.
  now += 3 * HOUR_MS
  await systemClock.sleep(100)
  t.equal(await there(), 1_000, 'they are kept as long as they were renewed for')
  await kv.compact?.()
  now += 24 * HOUR_MS
  t.equal(await there(), 0)
  const left = await eventually(usage, (bytes) => bytes - empty < (once - empty) / 10)
  t.ok(left - empty < (once - empty) / 10, `${left} bytes are left of ${once}, and were ${empty}`)
})

t.test('expired records leave the disk, renewed ones stay', async (t) => {
  let now = 1_000_000
  const clock: Clock = { ...systemClock, now: () => now }
  const dataDir = tempDir(t)
  const kv = await openKv(configFor(dataDir, { clock, bytesMax: 3_500_000 }))
  const fill = (round: number, ttlMs: number) =>
    kv.commit([
      {
        scope: 'p/0',
        put: Array.from({ length: 1_200 }, (_, id) => ({
          key: ['c', `${round}.${id}`] as const,
          value: 'x'.repeat(1_000),
          ttlMs,
        })),
      },
    ])
  await fill(0, 1_000)
  await kv.commit([{ scope: 'p/0', put: [{ key: ['c', '0.7'], value: 'renewed', ttlMs: 100_000 }] }])
  let refused: unknown = null
  for (let round = 1; round < 10 && refused === null; round += 1) {
    refused = await fill(round, 1_000).then(
      () => null,
      (error: unknown) => error,
    )
  }
  t.ok(refused instanceof Full, 'there is no room for ever more')
  now += 1_001
  t.equal((await kv.get('p/0', [['c', '0.1']]))[0], null)
  // Removed with a later one of the sweeps.
  now += 1_000
  const deadline = performance.now() + 60_000
  let done = false
  while (!done && performance.now() < deadline) {
    await systemClock.sleep(20)
    done = await fill(11, 1_000).then(
      () => true,
      () => false,
    )
  }
  t.ok(done, 'the sweep made room')
  t.equal(must((await kv.get('p/0', [['c', '0.7']]))[0]).value, 'renewed')
  await kv.close()
})

t.test('a truncated file is refused instead of crashing', async (t) => {
  const dataDir = tempDir(t)
  const kv = await openKv(configFor(dataDir))
  for (let id = 0; id < 50; id += 1)
    await kv.commit([{ scope: 'p/0', put: [{ key: ['c', `${id}`], value: 'x'.repeat(5_000) }] }])
  await kv.close()
  const file = join(dataDir, 'kv', 'data.mdb')
  truncateSync(file, readFileSync(file).length - 30_000)
  await t.rejects(openKv(configFor(dataDir)), Unreadable)
})

t.test('large values written twice in one commit leave a file that opens', async (t) => {
  const dataDir = tempDir(t)
  for (let round = 0; round < 10; round += 1) {
    const kv = await openKv(configFor(dataDir))
    const value = new Uint8Array(20_000 * (1 + (round % 4)))
    const key = ['c', `${round % 3}`] as const
    await kv.commit([
      {
        scope: 'p/0',
        put: [
          { key, value },
          { key, value: 'small' },
          { key: ['c', 'x'], value },
        ],
        drop: [['c', 'x']],
      },
    ])
    t.equal(must((await kv.get('p/0', [key]))[0]).value, 'small')
    await kv.close()
  }
})

t.test(
  'after a compaction no byte of what was dropped is on the disk, and all that was written meanwhile is',
  async (t) => {
    const dataDir = tempDir(t)
    const kv = await openKv(configFor(dataDir))
    const canary = 'c4nary-'.repeat(3)
    const put = (id: number, value: string) => ({ key: ['c', `${id}`] as const, value })
    for (let id = 0; id < COMPACTED; id++) {
      const value = `${canary}${'x'.repeat((id * 37) % 3_000)}`
      await kv.commit([{ scope: 'p/0', put: [put(id, value), put(id + 10_000, `stays ${id}`)] }])
    }
    const inFolder = (folder: string): string[] =>
      readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
        const path = join(folder, entry.name)
        if (entry.isDirectory()) return inFolder(path)
        return readFileSync(path).includes(canary) ? [path] : []
      })
    // Keys part pages, and those that expire are in an index.
    const named = Array.from({ length: COMPACTED }, (_, id) => ['k', `${canary}${id}`] as const)
    await kv.commit([{ scope: 'p/0', put: named.map((key) => ({ key, value: 'x'.repeat(900), ttlMs: 900_000 })) }])
    for (let id = 0; id < COMPACTED; id++) await kv.commit([{ scope: 'p/0', drop: [['c', `${id}`]] }])
    await kv.commit([{ scope: 'p/0', drop: named }])
    t.not(inFolder(dataDir).length, 0, 'dropping leaves bytes behind')
    let over = false
    const written: number[] = []
    const writing = Array.from({ length: 6 }, async (_, writer) => {
      for (let n = 0; !over; n++) {
        const id = 20_000 + writer * 100_000 + n
        await kv.commit([
          { scope: 'p/0', put: [put(id, `new ${id}`), put(30, `again ${id}`)], add: [[['counters', 'n'], 1]] },
        ])
        written.push(id)
      }
    })
    await Promise.all([kv.compact?.(), kv.compact?.()])
    do await kv.compact?.()
    while (written.length <= 10)
    over = true
    await Promise.all(writing)
    t.same(inFolder(dataDir), [])
    const check = async (opened: Kv) => {
      const values = async (ids: readonly number[]) =>
        (
          await opened.get<string>(
            'p/0',
            ids.map((id) => ['c', `${id}`] as const),
          )
        ).map((entry) => entry?.value)
      t.same(
        await values(written),
        written.map((id) => `new ${id}`),
      )
      const early = Array.from({ length: COMPACTED }, (_, id) => id)
      t.same(
        await values(early.map((id) => id + 10_000)),
        early.map((id) => `stays ${id}`),
      )
      t.same((await values(early)).filter((value) => value !== undefined).length, 1)
      t.equal(must((await opened.get('p/0', [['counters', 'n']]))[0]).value, written.length)
    }
    t.ok(written.length > 10, `${written.length} commits meanwhile`)
    await check(kv)
    await kv.close()
    const again = await openKv(configFor(dataDir))
    await check(again)
    await again.close()
  },
)

t.test('killed while committing or compacting, the kv keeps every acknowledged commit whole', async (t) => {
  const dataDir = tempDir(t)
  const acknowledged = new Map<string, number>()
  for (const [life, role] of LIVES.entries()) {
    const child = startChild(CHILD, [role, dataDir])
    await child.line(() => child.lines.length > 40 + (life % 5) * 31)
    await child.kill()
    for (const line of child.lines) {
      const [name = '', last] = line.split(' ')
      if (name !== 'compacted') acknowledged.set(name, Number(last))
    }
    const kv = await openKv(configFor(dataDir))
    for (const [name, last] of acknowledged) {
      const scope = `p/${name}`
      const position = must(await kv.position(scope, 'source'))
      t.ok(position >= last, `${name}: acknowledged ${last}, found ${position}`)
      const found = await kv.get<{ next: number }>(scope, [
        ['c', 'a'],
        ['c', 'b'],
        ['c', 'c'],
      ])
      t.same(
        found.map((entry) => entry?.value.next),
        [position, position, position],
      )
      t.equal(must((await kv.get(scope, [['counters', 'n']]))[0]).value, position)
    }
    await kv.close()
  }
})
