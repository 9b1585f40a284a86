// Commands on the folder of a deployment that was killed: a rebuild of its kv, a backup, a restore elsewhere, a rebuild of that, and
// an export. Everything is there afterwards, once, and what was erased is not.

import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeRequestId } from '../../src/domain/ids.ts'
import { EVENTS_TABLE } from '../../src/events/row.ts'
import type { Log } from '../../src/log/log.ts'
import { backup } from '../../src/ops/backup.ts'
import { NothingToRebuild, rebuild } from '../../src/ops/rebuild.ts'
import { rebuildRecordsOf } from '../../src/ops/rebuild-read.ts'
import { checkBackup, restore } from '../../src/ops/restore.ts'
import { decodeIdentification, encodeIdentification } from '../../src/records/identification.ts'
import { clientOf, eventually } from '../helpers/client.ts'
import {
  type Ops,
  PARTITIONS,
  quiet,
  replacePartsSoon,
  sorted,
  trimAll,
  visitorsOf,
  withOps,
} from '../helpers/deployment.ts'
import { sized } from '../helpers/depth.ts'
import { copyFolder } from '../helpers/folder.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, type Server, startServer, temporaryFolder } from '../helpers/server.ts'
import { checkBroken, checkPlaces } from './backup-refused.ts'
import { copyBehindSeam, makeHistory } from './history.ts'
import { branchOf, checkHistory, checkRecognition, checkRepeated } from './history-checks.ts'
import { checkExport } from './history-export.ts'
import { rebuildInterrupted } from './rebuild-interrupted.ts'

const seed = testSeed()
t.comment(`SEED=${seed}`)
t.teardown(cleanUp)

const history = await makeHistory(rng(seed))
const { keys, port } = history
const folders = temporaryFolder()
const short = await copyBehindSeam(history)
const straight = join(folders, 'straight')
const saved = join(folders, 'backup')
/** One server shows what came of a rebuild; what was restored is read from the ports. */
const IS_SHORT = sized({ quick: true, usual: false, long: false })
const wipe = (folder: string) => rmSync(join(folder, 'kv'), { recursive: true })
let server: Server

if (!IS_SHORT) {
  t.test('pairs that were labelled by hand are exported with both sides, and measured', (t) => checkExport(t, history))
}

t.test('what a rebuild brings back after kill -9, partly from the log and partly from ClickHouse', async (t) => {
  copyFolder(short, straight)
  wipe(straight)
  await withOps(straight, async (ops) => {
    const done = await rebuild(ops)
    t.match(done, { partitions: PARTITIONS, doubled: 0 })
    t.ok(done.adoptable >= history.unseen.length, `${done.adoptable} events are adopted`)
    t.ok(done.adoptable < history.events.length, 'and others come from ClickHouse')
    await t.rejects(rebuild(ops), NothingToRebuild, 'a second rebuild finds nothing to do')
  })
  const folder = IS_SHORT ? straight : join(folders, 'interrupted')
  const quarantined = IS_SHORT ? '' : await rebuildInterrupted(t, history, { short, straight, folder })

  const branch = { ...branchOf(history), quarantined }
  // Erasures come to their end, and what the log has of them goes.
  await replacePartsSoon(folder)
  const env = { FINGERPOST_PURGE_EVERY_SECONDS: '10', FINGERPOST_LOG_KEEP_SECONDS: '10' }
  server = await startServer({ dataDir: folder, keys, port, env })
  const client = clientOf(server)
  await checkRepeated(t, client, history)
  await checkHistory(t, client, branch)
  await checkRecognition(t, client, branch)
  if (IS_SHORT) return t.equal(await server.stop(), 0)
  await checkHistory(t, client, branch)
  const { erasureId } = history.erasure
  const ended = await eventually(
    () => client.get(`/v1/erasures/${erasureId}`, keys.testSecret),
    ({ body }) => body.status === 'done',
    240_000,
  )
  t.match(ended.body, { erasureId, status: 'done' }, 'an erasure comes to its end')
  t.equal(await server.stop(), 0)
})

/** Ids of all that the live environment has in ClickHouse. */
const rowsOnce = async ({ clickhouse }: Ops) =>
  sorted(
    (await clickhouse.query<{ id: string }>(`SELECT request_id AS id FROM ${EVENTS_TABLE} WHERE env = 'live'`)).map(
      ({ id }) => id,
    ),
  )

let undecided = ''

/**
 * Appends what an accepted identification looks like that nobody has decided: another visit of an ordinary device, since one of a
 * device that went about with somebody's token would bring that visitor a second account.
 */
async function acceptAnother(log: Log): Promise<string> {
  const ordinary = new Set(history.unseen.map(({ event }) => event.requestId))
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const last = await log.last('identifications', partition)
    for await (const { bytes } of rebuildRecordsOf(log, 'identifications', partition, 0, last)) {
      const { meta, body } = decodeIdentification(bytes)
      if (!ordinary.has(meta.requestId)) continue
      const { nonce: _, ...rest } = JSON.parse(Buffer.from(body).toString())
      const requestId = makeRequestId(Date.now(), (n) => history.random.bytes(n))
      const fresh = encodeIdentification({ ...meta, requestId }, Buffer.from(JSON.stringify(rest)))
      await log.append('identifications', partition, [fresh])
      return requestId
    }
  }
  throw new Error('no identification is left')
}

t.test('a backup of what kill -9 has left', async (t) => {
  await withOps(short, async (ops) => {
    undecided = await acceptAnother(ops.log)
    const manifest = await backup({ ...ops, product: '0.0.0-test' }, saved)
    t.equal(manifest.partitions.length, PARTITIONS)
    const behind = manifest.partitions.filter(({ stateAt, eventsTo }) => stateAt < eventsTo)
    t.comment(`${behind.length} partitions with decisions that their state lacked`)
    await checkPlaces(t, ops, saved)
  })
})

t.test('what is not the backup as it was written is refused, and nothing is written', (t) =>
  checkBroken(t, saved, history.random),
)

t.test('a restored deployment serves all of it, once, and so does one that is rebuilt of it', async (t) => {
  const target = join(folders, 'target')
  mkdirSync(target)
  const stored = await withOps(target, async (ops) => {
    t.match(await restore(ops, saved, await checkBackup(saved, quiet)), { undecided: 1 })
    return rowsOnce(ops)
  })
  t.same(
    stored,
    sorted(history.events.map(({ requestId }) => requestId)),
    'every row is there once, and none that was erased',
  )
  if (IS_SHORT) return
  copyFileSync(join(short, 'master.key'), join(target, 'master.key'))
  server = await startServer({ dataDir: target, keys, port })
  let client = clientOf(server)
  // Counters are carried over as they were, and those of erased events with them.
  const branch = branchOf(history, history.erased)
  const { body: decided } = await eventually(
    () => client.get(`/v1/events/${undecided}`),
    ({ status }) => status === 200,
  )
  branch.events.push(decided)
  branch.matching.push(decided)
  branch.visitors.delete(decided.visitorId)
  await checkRepeated(t, client, history)
  await checkHistory(t, client, branch)
  await checkRecognition(t, client, branch)
  await checkHistory(t, client, branch)
  const ids = new Set(branch.events.map(({ visitorId }) => visitorId))
  const visitors = await visitorsOf(client, ids)
  t.equal(await server.stop(), 0)

  // Nothing of it is in the log any more: ClickHouse and `changes` must tell.
  await withOps(target, trimAll)
  wipe(target)
  const done = await withOps(target, rebuild)
  t.match(done, {
    partitions: PARTITIONS,
    visitors: ids.size + history.merged.length,
    adoptable: 0,
    inserted: 0,
    doubled: 0,
  })
  server = await startServer({ dataDir: target, keys, port })
  client = clientOf(server)
  // An account that was said of an event afterwards counts among those of its visitor from here on.
  for (const { requestId, visitorId } of branch.events) {
    if (history.said.get(requestId)?.linkedId !== undefined) visitors.delete(visitorId)
  }
  const after = { ...branchOf(branch), visitors }
  await checkHistory(t, client, after)
  await checkRecognition(t, client, after)
  t.equal(await server.stop(), 0)
})
