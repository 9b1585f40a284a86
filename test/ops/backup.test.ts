// A deployment moved through a backup into a new folder: everything is there once, and what is not a whole backup, or not an
// empty place, is refused before anything is written.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { makeRequestId } from '../../src/domain/ids.ts'
import { Unreadable } from '../../src/lib/failures.ts'
import type { Log } from '../../src/log/log.ts'
import { backup } from '../../src/ops/backup.ts'
import { NothingToRebuild, rebuild } from '../../src/ops/rebuild.ts'
import { recordsOf } from '../../src/ops/rebuild-read.ts'
import { checkBackup, NotEmpty, restore } from '../../src/ops/restore.ts'
import { decodeIdentification, encodeIdentification } from '../../src/records/identification.ts'
import { clientOf } from '../helpers/client.ts'
import {
  checkTotals,
  checkVisitors,
  listAll,
  listedAll,
  makeDevices,
  makeRule,
  openOps,
  PARTITIONS,
  quiet,
  repeat,
  requestIds,
  rulesOf,
  sorted,
  trimAll,
  type Visit,
  type VisitorShown,
  visitAll,
  visitorsOf,
} from '../helpers/deployment.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, launchServer, startServer, temporaryFolder } from '../helpers/server.ts'

const seed = testSeed()
t.comment(`SEED=${seed}`)
t.teardown(cleanUp)

const random = rng(seed)
const folders = temporaryFolder()
const source = join(folders, 'source')
const target = join(folders, 'target')
const saved = join(folders, 'backup')
mkdirSync(source)

let server = await startServer({ dataDir: source })
let client = clientOf(server)
const { keys, port } = server
const about = { product: '0.0.0-test' }
const visits: Visit[] = []
let erased: Visit
let undecided: string
let before: { visits: number; visitors: Map<string, VisitorShown>; revoked: string }

const expected = () => visits.filter(({ event }) => event.visitorId !== erased.event.visitorId)

async function start(dataDir: string): Promise<void> {
  server = await startServer({ dataDir, keys, port })
  client = clientOf(server)
}

t.test('a backup of what kill -9 has left', async (t) => {
  const devices = makeDevices(random, 80)
  const rule = await makeRule(client, 'known', 'visitorFound', true)
  await makeRule(client, 'watched', 'visitorFound', true, 'monitor')
  visits.push(...(await visitAll(client, random, devices)))
  await listedAll(client, visits)
  await server.stop()
  const trimmed = await openOps(source)
  await trimAll(trimmed)
  await trimmed.close()
  await start(source)

  const version = (await client.get(`/v1/rules/${rule.id}`)).headers.get('etag') ?? ''
  for (const [name, status] of [
    ['renamed', 200],
    ['too late', 409],
  ] as const) {
    const headers = { 'If-Match': version }
    t.equal((await client.send('PUT', `/v1/rules/${rule.id}`, { body: { name }, headers })).status, status)
  }
  const { body: revoked } = await client.admin('POST', '/workspaces/ws_default/keys', {
    kind: 'secret',
    environment: 'live',
  })
  await client.admin('DELETE', `/workspaces/ws_default/keys/${revoked.id}`)
  erased = visits[20] as Visit
  const rest = devices.filter((device) => device !== erased.device)
  visits.push(...(await visitAll(client, random, rest)))
  t.equal((await client.send('DELETE', `/v1/visitors/${erased.event.visitorId}`)).status, 200)
  await listedAll(client, expected())
  before = {
    visits: visits.length,
    visitors: await visitorsOf(client, new Set(expected().map(({ event }) => event.visitorId))),
    revoked: revoked.key,
  }
  // Nobody looks: these are in the log, and hardly anywhere else, when the process dies.
  visits.push(...(await visitAll(client, random, makeDevices(random, 40, 100))))
  await server.kill9()

  const ops = await openOps(source)
  undecided = await acceptAnother(ops.log)
  const manifest = await backup({ ...ops, ...about }, saved)
  t.equal(manifest.partitions.length, PARTITIONS)
  const behind = manifest.partitions.filter(({ stateAt, eventsTo }) => stateAt < eventsTo)
  t.comment(`${behind.length} partitions with decisions that their state lacked`)
  await t.rejects(backup({ ...ops, ...about }, saved), Unreadable, 'a folder that holds something')
  await ops.close()
  t.equal(statSync(saved).mode & 0o777, 0o700)
  for (const name of readdirSync(saved)) t.equal(statSync(join(saved, name)).mode & 0o777, 0o600, name)
})

/** Appends what an accepted identification looks like that nobody has decided. */
async function acceptAnother(log: Log): Promise<string> {
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const last = await log.last('identifications', partition)
    for await (const { bytes } of recordsOf(log, 'identifications', partition, 0, last)) {
      const { meta, body } = decodeIdentification(bytes)
      const { nonce: _, ...rest } = JSON.parse(Buffer.from(body).toString())
      const requestId = makeRequestId(Date.now(), (n) => random.bytes(n))
      const fresh = encodeIdentification({ ...meta, requestId }, Buffer.from(JSON.stringify(rest)))
      await log.append('identifications', partition, [fresh])
      return requestId
    }
  }
  throw new Error('no identification is left')
}

t.test('what is not the backup as it was written is refused, and nothing is written', async (t) => {
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
  for (const name of readdirSync(saved)) {
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
})

t.test('a place that is not empty, or has other partitions, is refused', async (t) => {
  const manifest = await checkBackup(saved, quiet)
  const used = await openOps(source)
  await t.rejects(restore(used, saved, manifest), NotEmpty)
  await used.close()
  const other = join(folders, 'other')
  mkdirSync(other)
  const narrow = await openOps(other, 2)
  await t.rejects(restore(narrow, saved, manifest), NotEmpty)
  t.equal(await narrow.log.last('changes', 0), 0)
  await narrow.close()
})

t.test('a restore that was cut short is taken for a deployment by nobody', async (t) => {
  const manifest = await checkBackup(saved, quiet)
  const half = join(folders, 'half')
  mkdirSync(half)
  const ops = await openOps(half)
  const failing = {
    ...ops.clickhouse,
    insert: async () => {
      throw new Error('cut')
    },
  }
  await t.rejects(restore({ ...ops, clickhouse: failing }, saved, manifest), /cut/)
  await t.rejects(restore(ops, saved, manifest), NotEmpty)
  await t.rejects(rebuild(ops), NothingToRebuild)
  await ops.close()
  const started = await launchServer({ dataDir: half })
  t.equal(await started.exited, 1)
})

t.test('the restored deployment serves all of it, once', async (t) => {
  const manifest = await checkBackup(saved, quiet)
  mkdirSync(target)
  const ops = await openOps(target)
  const done = await restore(ops, saved, manifest)
  t.equal(done.undecided, 1)
  await ops.close()
  await start(target)
  for (const visit of visits.slice(-20)) {
    const again = await repeat(client, visit)
    t.match(again, { status: 200, body: { requestId: visit.event.requestId } }, 'a nonce is answered with its event')
  }
  await check(t, [...requestIds(expected()), undecided])
  const rules = await rulesOf(client, visits)
  t.match(rules.map(({ name }) => name).sort(), ['renamed', 'watched'], 'a refused change is refused again')
  t.equal((await client.get('/v1/rules', before.revoked)).status, 401)
  const { body: decided } = await client.get(`/v1/events/${undecided}`)
  await checkTotals(t, client, [...expected().map(({ event }) => event), decided])
  const unchanged = new Map(before.visitors)
  for (const { event } of visits.slice(before.visits)) unchanged.delete(event.visitorId)
  unchanged.delete(decided.visitorId)
  await checkVisitors(t, client, unchanged)
  t.equal((await client.get(`/v1/visitors/${erased.event.visitorId}`)).status, 404)
  t.equal((await client.get(`/v1/events/${erased.event.requestId}`)).status, 404)
  t.not((await client.identify({ storageToken: erased.event.storageToken })).body.visitorId, erased.event.visitorId)
  const tokenless = visits.at(-1) as Visit
  const { body } = await client.identify({ ...tokenless.body, storageToken: null, nonce: 'another-nonce-altogether' })
  t.equal(body.visitorId, tokenless.event.visitorId, 'recognised without its token')
  const [first] = expected()
  const token = first?.event.storageToken ?? ''
  t.equal((await client.identify({ storageToken: token })).body.visitorId, first?.event.visitorId)
})

t.test('the restored deployment can be rebuilt like any other', async (t) => {
  const ids = sorted(await listAll(client))
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  const all = sorted(await listAll(client))
  t.ok(all.length >= ids.length)
  const shown = await visitorsOf(client, before.visitors.keys())
  await server.kill9()
  rmSync(join(target, 'kv'), { recursive: true })
  const ops = await openOps(target)
  t.match(await rebuild(ops), { doubled: 0 })
  await ops.close()
  await start(target)
  await check(t, all)
  await checkVisitors(t, client, shown)
  t.equal(await server.stop(), 0)
})

async function check(t: Test, ids: readonly string[]): Promise<void> {
  t.same(
    sorted(
      await listedAll(
        client,
        ids.map(() => visits[0] as Visit),
      ),
    ),
    sorted(ids),
    'every event is listed once',
  )
}
