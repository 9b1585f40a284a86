// What a backup, a restore and a start refuse: a backup that is not as it was written, and a place that is not empty.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Unreadable } from '../../src/lib/failures.ts'
import { backup } from '../../src/ops/backup.ts'
import { NothingToRebuild, rebuild } from '../../src/ops/rebuild.ts'
import { checkBackup, NotEmpty, restore } from '../../src/ops/restore.ts'
import { type Ops, quiet, withOps } from '../helpers/deployment.ts'
import { sized } from '../helpers/depth.ts'
import type { Rng } from '../helpers/rng.ts'
import { launchServer, temporaryFolder } from '../helpers/server.ts'

export async function checkBroken(t: Test, saved: string, random: Rng): Promise<void> {
  const folders = temporaryFolder()
  const broken = join(folders, 'broken')
  const spoil = async (what: string, change: () => void) => {
    cpSync(saved, broken, { recursive: true })
    change()
    await t.rejects(checkBackup(broken, quiet), Unreadable, what)
    rmSync(broken, { recursive: true })
  }
  const manifest = join(broken, 'manifest.json')
  const flip = (name: string, at: number) => {
    const bytes = readFileSync(join(broken, name))
    bytes[at] = (bytes[at] as number) ^ 1
    writeFileSync(join(broken, name), bytes)
  }
  const names = readdirSync(saved)
  for (const name of sized({ quick: ['manifest.json', random.pick(names)], usual: names, long: names })) {
    const { size } = statSync(join(saved, name))
    await spoil(`${name}, one byte shorter`, () => truncateSync(join(broken, name), size - 1))
    await spoil(`${name}, one bit other`, () => flip(name, random.int(size - 2)))
    await spoil(`without ${name}`, () => rmSync(join(broken, name)))
  }
  const edit = (change: (text: string) => string) => writeFileSync(manifest, change(readFileSync(manifest, 'utf8')))
  await spoil('another number of records', () => edit((text) => text.replace(/"records": \d+/, '"records": 77')))
  await spoil('a file elsewhere', () => edit((text) => text.replace('changes.gz', '../changes.gz')))
  await spoil('no JSON', () => edit(() => 'null'))
  await t.rejects(checkBackup(folders, quiet), Unreadable, 'any other folder')
}

/** Of the deployment that was saved, a narrow one, and one whose restore was cut short. */
export async function checkPlaces(t: Test, used: Ops, saved: string): Promise<void> {
  await t.rejects(backup({ ...used, product: '0.0.0-test' }, saved), Unreadable, 'a folder that holds something')
  t.equal(statSync(saved).mode & 0o777, 0o700)
  for (const name of readdirSync(saved)) t.equal(statSync(join(saved, name)).mode & 0o777, 0o600, name)
  const manifest = await checkBackup(saved, quiet)
  await t.rejects(restore(used, saved, manifest), NotEmpty, 'a place that is used')
  if (!sized({ quick: false, usual: true, long: true })) return
  const folders = temporaryFolder()
  const [other, half] = [join(folders, 'other'), join(folders, 'half')]
  for (const folder of [other, half]) mkdirSync(folder)
  const refuseNarrow = async (narrow: Ops) => {
    await t.rejects(restore(narrow, saved, manifest), NotEmpty, 'other partitions')
    t.equal(await narrow.log.last('changes', 0), 0)
  }
  await withOps(other, refuseNarrow, 2)

  const insert = async () => {
    throw new Error('cut')
  }
  await withOps(half, async (ops) => {
    await t.rejects(restore({ ...ops, clickhouse: { ...ops.clickhouse, insert } }, saved, manifest), /cut/)
    await t.rejects(restore(ops, saved, manifest), NotEmpty, 'a restore that was cut short')
    await t.rejects(rebuild(ops), NothingToRebuild)
  })
  const started = await launchServer({ dataDir: half })
  t.equal(await started.exited, 1, 'nor is it taken for a deployment by a start')
}
