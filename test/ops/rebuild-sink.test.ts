// What ClickHouse was in the middle of when the kv was wiped, and a rebuild that is killed again and again: no event is
// doubled or lost, no erased visitor comes back.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { decodeEventsRecord } from '../../src/events/record.ts'
import { rebuild } from '../../src/ops/rebuild.ts'
import { recordsOf } from '../../src/ops/rebuild-read.ts'
import { startChild } from '../helpers/child.ts'
import { clientOf } from '../helpers/client.ts'
import {
  checkTotals,
  listedAll,
  makeDevices,
  openOps,
  requestIds,
  sorted,
  type Visit,
  visitAll,
} from '../helpers/deployment.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

const seed = testSeed()
t.comment(`SEED=${seed}`)
t.teardown(cleanUp)

const dataDir = temporaryFolder()
const random = rng(seed)
let server = await startServer({ dataDir })
let client = clientOf(server)
const { keys, port } = server
const visits: Visit[] = []
let erased: Visit
let quarantined: string

const expected = () => visits.filter(({ event }) => event.visitorId !== erased.event.visitorId)

async function start(): Promise<void> {
  server = await startServer({ dataDir, keys, port })
  client = clientOf(server)
}

t.test('rows that are there stay alone, those that are missing come, erased ones do not', async (t) => {
  const devices = makeDevices(random, 100)
  visits.push(...(await visitAll(client, random, devices)))
  erased = visits[10] as Visit
  await listedAll(client, visits)
  t.equal((await client.send('DELETE', `/v1/visitors/${erased.event.visitorId}`)).status, 200)
  const later = devices.filter((device) => device !== erased.device)
  visits.push(...(await visitAll(client, random, later)))
  await listedAll(client, expected())
  await server.stop()

  // As if the sink had been in the middle of several ranges, one row of which ClickHouse refused.
  const ops = await openOps(dataDir)
  for (const hole of ['log_seq % 3 = 0 AND log_seq > 5', 'log_partition = 3']) {
    await ops.clickhouse.command(`ALTER TABLE events DELETE WHERE ${hole} SETTINGS mutations_sync = 1`)
  }
  const last = await ops.log.last('events', 1)
  for await (const { bytes } of recordsOf(ops.log, 'events', 1, 0, last)) {
    const { items, rows } = decodeEventsRecord(bytes)
    const [item] = items
    if (item === undefined || item.seq % 3 !== 0 || item.seq <= 5) continue
    const line = Buffer.from(rows.subarray(0, item.rowBytes)).toString()
    const row = `${JSON.stringify([Date.now(), 'events', 1, 'token', 'refused', line])}\n`
    const columns = ['at', 'source', 'log_partition', 'token', 'reason', 'raw']
    await ops.clickhouse.insert('quarantine', columns, Buffer.from(row), { token: 'one' })
    quarantined = item.requestId
    break
  }
  t.type(quarantined, 'string')
  await ops.close()
  rmSync(join(dataDir, 'kv'), { recursive: true })
})

t.test('a rebuild that is killed is finished by the next', async (t) => {
  const script = new URL('./rebuild.child.js', import.meta.url).pathname
  for (const stage of ['configuration', 'partition 0', 'partition 2']) {
    const child = startChild(script, [dataDir, stage])
    await child.line((line) => line.startsWith(stage))
    await child.kill()
  }
  const ops = await openOps(dataDir)
  const done = await rebuild(ops)
  t.match(done, { commands: null, doubled: 0 })
  t.ok(done.partitions >= 1 && done.partitions < 4, `${done.partitions} partitions were left`)
  await ops.close()

  await start()
  const wanted = requestIds(expected()).filter((id) => id !== quarantined)
  t.same(sorted(await listedAll(client, expected().slice(1))), wanted, 'each event once')
  t.equal((await client.get(`/v1/visitors/${erased.event.visitorId}`)).status, 404)
  t.equal((await client.get(`/v1/events/${erased.event.requestId}`)).status, 404)
  const again = await client.identify({ storageToken: erased.event.storageToken })
  t.not(again.body.visitorId, erased.event.visitorId, 'its token is as good as none')
  await checkTotals(
    t,
    client,
    expected().map(({ event }) => event),
  )
  t.equal(await server.stop(), 0)
})
