// The data a process decides by, while files change under it.

import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createAddresses } from '../../src/ipintel/addresses.ts'
import { type IpFeed, openIpFeed } from '../../src/ipintel/feed.ts'
import { IP_SOURCES, parsePlace, type SourceName } from '../../src/ipintel/sources.ts'
import { storeTable, tablePath } from '../../src/ipintel/store.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { imageOf } from './made.ts'

interface Opened {
  readonly feed: IpFeed
  readonly failures: readonly string[]
  readonly removed: readonly SourceName[]
  isTor(ip: string): boolean
}

async function open(t: Test, dir: string, files: Partial<Record<SourceName, readonly string[]>>): Promise<Opened> {
  const failures: string[] = []
  const removed: SourceName[] = []
  const feed = await openIpFeed({
    clock,
    dir,
    places: IP_SOURCES.map((source) => ({ source, files: (files[source] ?? []).map(parsePlace), urls: [] })),
    pollMs: 50,
    bytesMax: 10_000,
    relayIsVpn: false,
    report: {
      swapped: () => undefined,
      removed: (source) => void removed.push(source),
      failed: (source, reason) => void failures.push(`${source}: ${reason}`),
    },
  })
  t.teardown(() => feed.stop())
  return {
    feed,
    failures,
    removed,
    isTor(ip) {
      const addresses = createAddresses()
      addresses.take(feed.current())
      return addresses.lookup(ip).tor
    },
  }
}

async function until(t: Test, what: string, holds: () => boolean): Promise<void> {
  const deadline = clock.monotonic() + 20_000
  while (!holds() && clock.monotonic() < deadline) await clock.sleep(20)
  t.ok(holds(), what)
}

t.test('files are loaded before the first decision, swapped when they change, and gone when they are', async (t) => {
  const dir = t.testdir({ 'tor.txt': '192.0.2.1\n' })
  const file = join(dir, 'tor.txt')
  const { feed, failures, removed, isTor } = await open(t, dir, { tor: [file] })
  t.equal(isTor('192.0.2.1'), true)
  t.match(feed.state(), { tor: { entries: 1, failure: null }, vpn: null, geo: null })
  t.ok((feed.state().tor?.ageSeconds ?? 99) < 60)
  const before = feed.current()

  writeFileSync(`${file}.new`, '192.0.2.2\n192.0.2.3\n')
  renameSync(`${file}.new`, file)
  await until(t, 'the new list is in force', () => isTor('192.0.2.2') && !isTor('192.0.2.1'))
  t.not(feed.current(), before)
  t.same(failures, [])

  rmSync(file)
  await until(t, 'without a file there is no list', () => !isTor('192.0.2.2'))
  t.equal(feed.state().tor, null)
  t.same(removed, ['tor'])
})

t.test('a file that is no list leaves the old one in force, and is reported once', async (t) => {
  const dir = t.testdir({ 'tor.txt': '192.0.2.1\n' })
  const file = join(dir, 'tor.txt')
  const { feed, failures, isTor } = await open(t, dir, { tor: [file] })
  const broken = ['<html>\n'.repeat(30), '', `192.0.2.9\n${'x\n'.repeat(30)}`, '192.0.2.9\n'.repeat(2_000)]
  for (const [i, content] of broken.entries()) {
    writeFileSync(file, content)
    await until(t, `broken file ${i} is noticed`, () => failures.length > i)
    t.equal(isTor('192.0.2.1'), true)
    t.equal(isTor('192.0.2.9'), false)
    t.match(feed.state().tor, { entries: 1, failure: /./ })
  }
  await clock.sleep(300)
  t.equal(failures.length, broken.length, 'not again with every look')
  writeFileSync(file, '192.0.2.8\n')
  await until(t, 'and a good one is taken', () => isTor('192.0.2.8'))
  t.equal(feed.state().tor?.failure, null)
})

t.test('one of several files that is missing changes nothing', async (t) => {
  const dir = t.testdir({ 'a.txt': '192.0.2.1\n', 'b.txt': '192.0.2.2\n' })
  const { failures, isTor } = await open(t, dir, { tor: [join(dir, 'a.txt'), join(dir, 'b.txt')] })
  t.equal(isTor('192.0.2.2'), true)
  rmSync(join(dir, 'a.txt'))
  await until(t, 'it is noticed', () => failures.length === 1)
  t.match(failures[0], /a\.txt is missing/)
  t.equal(isTor('192.0.2.1'), true)
})

t.test('stored tables are taken as they are, and damaged ones are not', async (t) => {
  const dir = t.testdir({})
  await storeTable(dir, 'tor', imageOf('tor', '192.0.2.1\n'))
  const { feed, failures, isTor } = await open(t, dir, {})
  t.equal(isTor('192.0.2.1'), true)
  await storeTable(dir, 'tor', imageOf('tor', '192.0.2.2\n'))
  await until(t, 'a new table is in force', () => isTor('192.0.2.2'))
  writeFileSync(tablePath(dir, 'tor'), new Uint8Array(imageOf('tor', '192.0.2.3\n')).subarray(0, 150))
  await until(t, 'half a table is noticed', () => failures.length === 1)
  writeFileSync(tablePath(dir, 'tor'), new Uint8Array(imageOf('vpn', '192.0.2.3\n')))
  await until(t, 'the table of another source as well', () => failures.length === 2)
  t.equal(isTor('192.0.2.2'), true)
  t.equal(feed.state().vpn, null)
  rmSync(tablePath(dir, 'tor'))
  await until(t, 'without a table there is no list', () => feed.state().tor === null)
})
