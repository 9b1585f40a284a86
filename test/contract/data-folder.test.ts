// One live process per data folder, whatever happened to the one before, and no folder this build does not understand.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { claimDataFolder, type DataFolderConfig } from '../../src/lib/data-folder.ts'
import { Unreadable } from '../../src/lib/failures.ts'
import { FolderInUse } from '../../src/lib/folder-lock.ts'
import { must } from '../../src/lib/must.ts'
import { startChild } from '../helpers/child.ts'
import { sized } from '../helpers/depth.ts'

const CHILD = join(import.meta.dirname, 'storage.child.js')

function tempDir(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'folder-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

const config: DataFolderConfig = { format: 1, partitions: 4, clock: systemClock, random: Math.random }

t.test('an empty or missing folder is made ready, and keeps its number of partitions', async (t) => {
  const dir = join(tempDir(t), 'deep', 'data')
  const made = await claimDataFolder(dir, config)
  t.match({ format: 1, partitions: 4 }, { format: made.format, partitions: made.partitions })
  t.equal(statSync(dir).mode & 0o777, 0o700)
  t.equal(statSync(join(dir, 'format.json')).mode & 0o077, 0)
  await made.release()
  t.same(readdirSync(dir), ['format.json'])
  const again = await claimDataFolder(dir, { ...config, partitions: 16, format: 2 })
  t.equal(again.partitions, 4)
  t.equal(again.format, 2, 'a newer build makes it its own')
  t.equal(again.createdAt, made.createdAt)
  await again.release()
  await t.rejects(claimDataFolder(dir, config), Unreadable, 'and an older one refuses it')
})

t.test('a folder that is not ours or not readable is refused and left alone', async (t) => {
  const cases: Record<string, (dir: string) => void> = {
    'files without a format': (dir) => writeFileSync(join(dir, 'holiday.jpg'), 'x'),
    'a newer format': (dir) =>
      writeFileSync(join(dir, 'format.json'), JSON.stringify({ format: 2, createdAt: new Date(0), partitions: 4 })),
    'an empty format file': (dir) => writeFileSync(join(dir, 'format.json'), ''),
    'half a format file': (dir) => writeFileSync(join(dir, 'format.json'), '{"format":1,'),
    'a format file with the wrong fields': (dir) => writeFileSync(join(dir, 'format.json'), '{"format":1}'),
    'no partitions': (dir) =>
      writeFileSync(join(dir, 'format.json'), JSON.stringify({ format: 1, createdAt: new Date(0), partitions: 0 })),
  }
  for (const [what, spoil] of Object.entries(cases)) {
    const dir = tempDir(t)
    spoil(dir)
    const before = readdirSync(dir).map((name) => readFileSync(join(dir, name), 'utf8'))
    await t.rejects(claimDataFolder(dir, config), Unreadable, what)
    t.same(
      readdirSync(dir).map((name) => readFileSync(join(dir, name), 'utf8')),
      before,
    )
  }
})

t.test('a start that ended before the format was complete does not spoil the folder', async (t) => {
  const dir = tempDir(t)
  mkdirSync(join(dir, 'lost+found'))
  writeFileSync(join(dir, 'format.json.new'), '{"for')
  const folder = await claimDataFolder(dir, config)
  t.equal(folder.partitions, 4)
  await folder.release()
})

t.test('a second claim fails while the first lives, from this and any other process', async (t) => {
  const dir = tempDir(t)
  const first = await claimDataFolder(dir, config)
  const refused = await claimDataFolder(dir, config).catch((error: unknown) => error)
  t.ok(refused instanceof FolderInUse)
  t.equal((refused as FolderInUse).pid, process.pid)
  const child = startChild(CHILD, ['claim', dir])
  t.equal(await child.line(() => true), 'FolderInUse')
  await child.kill()
  await first.release()
  const next = await claimDataFolder(dir, config)
  await next.release()
})

t.test('killed or stopped: a dead process gives the folder up at once, a stopped one keeps it', async (t) => {
  const dir = tempDir(t)
  for (let cycle = 0; cycle < sized({ usual: 1, long: 3 }); cycle += 1) {
    const child = startChild(CHILD, ['claim', dir])
    t.equal(await child.line(() => true), 'held')
    if (cycle === 0) {
      child.process.kill('SIGSTOP')
      const refused = await claimDataFolder(dir, config).catch((error: unknown) => error)
      t.ok(refused instanceof FolderInUse)
      t.equal((refused as FolderInUse).pid, must(child.process.pid))
    }
    await child.kill()
    const folder = await claimDataFolder(dir, config)
    t.equal(readdirSync(dir).filter((name) => name.endsWith('.sock')).length, 1, 'the dead lock is gone')
    await folder.release()
  }
})

t.test('of many that start together exactly one gets the folder', async (t) => {
  const dir = tempDir(t)
  for (let round = 0; round < 10; round += 1) {
    const claims = await Promise.allSettled(Array.from({ length: 6 }, () => claimDataFolder(dir, config)))
    const held = claims.filter((claim) => claim.status === 'fulfilled')
    t.equal(held.length, 1)
    for (const claim of held) await claim.value.release()
  }
})

t.test('a folder too deep for a socket address works all the same', async (t) => {
  const dir = join(tempDir(t), 'x'.repeat(120), 'y'.repeat(60))
  const folder = await claimDataFolder(dir, config)
  t.ok((await claimDataFolder(dir, config).catch((error: unknown) => error)) instanceof FolderInUse)
  await folder.release()
  t.same(readdirSync(dir), ['format.json'])
})
