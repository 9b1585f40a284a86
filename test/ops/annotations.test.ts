// What was said of events through a rebuild and through a backup: of those only ClickHouse knows as of those still in the log.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { backup } from '../../src/ops/backup.ts'
import { rebuild } from '../../src/ops/rebuild.ts'
import { checkBackup, restore } from '../../src/ops/restore.ts'
import { clientOf, eventually } from '../helpers/client.ts'
import {
  listedAll,
  makeDevices,
  openOps,
  PARTITIONS,
  quiet,
  trimAll,
  type Visit,
  visitAll,
} from '../helpers/deployment.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

const seed = testSeed()
t.comment(`SEED=${seed}`)
t.teardown(cleanUp)

const random = rng(seed)
const dataDir = temporaryFolder()
const visits: Visit[] = []
const said = new Map<string, object>()
let server = await startServer({ dataDir })
let client = clientOf(server)
const { keys, port } = server

async function start(dir = dataDir): Promise<void> {
  server = await startServer({ dataDir: dir, keys, port })
  client = clientOf(server)
}

async function say(t: Test, visit: Visit, changes: object): Promise<void> {
  const { requestId } = visit.event
  t.equal((await client.send('PATCH', `/v1/events/${requestId}`, { body: changes })).status, 200)
  said.set(requestId, { ...said.get(requestId), ...changes })
}

async function check(t: Test): Promise<void> {
  await listedAll(client, visits)
  for (const [requestId, changes] of said) {
    const { body } = await client.get(`/v1/events/${requestId}`)
    for (const [name, value] of Object.entries(changes)) t.same(body[name], value, `${name} of ${requestId}`)
  }
  const accounts = [...said.values()].map((changes) => (changes as { linkedId?: string }).linkedId)
  for (const account of accounts.filter((one) => one !== undefined)) {
    const listed = () => client.get(`/v1/events?linkedId=${account}`)
    t.equal((await eventually(listed, ({ body }) => body.data.length === 1)).body.data.length, 1, account)
  }
}

t.test('a rebuild keeps what was said, wherever the events are', async (t) => {
  visits.push(...(await visitAll(client, random, makeDevices(random, 12))))
  await listedAll(client, visits)
  await say(t, visits[0] as Visit, { linkedId: 'said-0', label: 'fraud' })
  await say(t, visits[1] as Visit, { label: 'fraud' })
  await say(t, visits[1] as Visit, { label: 'legitimate', tag: { a: 1 } })
  await eventually(
    () => client.get('/v1/events?linkedId=said-0'),
    ({ body }) => body.data.length === 1,
  )
  t.equal(await server.stop(), 0)
  const trimmed = await openOps(dataDir)
  await trimAll(trimmed)
  await trimmed.close()

  await start()
  visits.push(...(await visitAll(client, random, makeDevices(random, 8, 50))))
  await listedAll(client, visits)
  await say(t, visits[0] as Visit, { linkedId: 'said-again' })
  await say(t, visits[14] as Visit, { label: 'fraud', linkedId: 'said-14' })
  await server.kill9()
  rmSync(join(dataDir, 'kv'), { recursive: true })
  const ops = await openOps(dataDir)
  await rebuild(ops)
  await ops.close()
  await start()
  await check(t)
})

t.test('a backup carries it to another place', async (t) => {
  await say(t, visits[2] as Visit, { tag: { late: true } })
  visits.push(...(await visitAll(client, random, makeDevices(random, 3, 80))))
  await say(t, visits.at(-1) as Visit, { label: 'legitimate', linkedId: 'said-last' })
  await server.kill9()
  const saved = join(temporaryFolder(), 'backup')
  const ops = await openOps(dataDir)
  await backup({ ...ops, product: '0.0.0-test' }, saved)
  await ops.close()
  const target = temporaryFolder()
  const into = await openOps(target, PARTITIONS)
  await restore(into, saved, await checkBackup(saved, quiet))
  await into.close()
  await start(target)
  await check(t)
})
