// Upgrade and rollback, rehearsed on what an earlier release stored. The folder was made by commit 0f9178a and its server killed: forty of
// its fifty identifications had reached ClickHouse and a checkpoint, ten lay in the log alone. This build opens it, reads it back and writes on;
// an older build refuses what a newer one has written, by name, and harms nothing.

import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { clientOf } from '../helpers/client.ts'
import { until } from '../helpers/processes.ts'
import { cleanUp, historyOpen, launchServer, startServer, temporaryFolder } from '../helpers/server.ts'

type Entry =
  | { readonly path: string; readonly kind: 'folder' }
  | { readonly path: string; readonly kind: 'link'; readonly target: string }
  | { readonly path: string; readonly kind: 'file'; readonly base64: string }

interface Stored {
  /** The secret key of the test environment. */
  readonly key: string
  readonly made: readonly {
    readonly n: number
    readonly linkedId: string
    readonly userAgent: string
    readonly requestId: string
    readonly visitorId: string
    readonly storageToken: string
  }[]
  readonly entries: readonly Entry[]
}

const FILE = new URL('../../../test/faults/folder-0f9178a.json.gz', import.meta.url)
/** However old the folder is when the test runs. */
const ENV = { FINGERPOST_RETENTION_EVENTS_DAYS: '3650', FINGERPOST_RETENTION_FULL_IP_DAYS: '3650' }

t.teardown(cleanUp)

function unpack({ entries }: Stored): string {
  const folder = temporaryFolder()
  for (const entry of entries) {
    const path = join(folder, entry.path)
    if (entry.kind === 'folder') mkdirSync(path, { mode: 0o700 })
    else if (entry.kind === 'link') symlinkSync(entry.target, path)
    else writeFileSync(path, Buffer.from(entry.base64, 'base64'), { mode: 0o600 })
  }
  return folder
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const REFUSED_MS_MAX = 60_000
const LISTED_MS_MAX = 30_000

t.setTimeout(300_000)

/** This build, as it was before the last migration of ClickHouse was written. */
function olderBuild(): { readonly main: string; readonly newest: number } {
  const dir = temporaryFolder()
  for (const shared of ['node_modules', 'package.json']) symlinkSync(join(ROOT, shared), join(dir, shared))
  mkdirSync(join(dir, 'build'))
  for (const shared of ['sdk', 'docs', 'console', 'build-info.json']) {
    symlinkSync(join(ROOT, 'build', shared), join(dir, 'build', shared))
  }
  const server = join(dir, 'build/server')
  cpSync(join(ROOT, 'build/server'), server, { recursive: true, filter: (path) => !path.endsWith('.map') })
  const schema = readFileSync(join(server, 'schema.sql'), 'utf8')
  const last = schema.lastIndexOf('-- migration ')
  writeFileSync(join(server, 'schema.sql'), schema.slice(0, last))
  return { main: join(server, 'main.js'), newest: Number(/\d+/.exec(schema.slice(last))?.[0]) }
}

const stored: Stored = JSON.parse(gunzipSync(readFileSync(FILE)).toString('utf8'))
const { key, made } = stored
const dataDir = unpack(stored)

t.test('migrations have numbers that rise by one', (t) => {
  const schema = readFileSync(join(ROOT, 'src/clickhouse/schema.sql'), 'utf8')
  const numbers = [...schema.matchAll(/^-- migration (\d+)$/gm)].map(([, number]) => Number(number))
  t.same(
    numbers,
    numbers.map((_, at) => at + 1),
  )
  t.end()
})

t.test('a folder of commit 0f9178a opens and has lost nothing', async (t) => {
  const server = await startServer({ dataDir, env: ENV })
  const client = clientOf(server)
  for (const { requestId, visitorId, n } of made) {
    const { status, body } = await client.get(`/v1/events/${requestId}`, key)
    t.match({ status, body }, { status: 200, body: { requestId, visitorId, tag: { n } } }, `event ${n}`)
  }
  const visits = new Map<string, number>()
  for (const { visitorId } of made) visits.set(visitorId, (visits.get(visitorId) ?? 0) + 1)
  for (const [visitorId, count] of visits) {
    const { body } = await client.get(`/v1/visitors/${visitorId}`, key)
    t.equal(body.totalVisits, count, visitorId)
  }
  const { body: page } = await client.get('/v1/events?limit=100', key)
  t.equal(page.data.length, made.length, 'each stands in the list once')
  for (const { userAgent, linkedId, storageToken, visitorId } of made.slice(-5)) {
    const { body } = await client.identify({ userAgent, linkedId, storageToken }, { key })
    t.match(body, { visitorId, visitorFound: true }, 'its tokens are genuine')
  }
  t.equal(await server.stop(), 0)
})

t.test('what is written after the upgrade stands beside what was there, also by what is new since', async (t) => {
  const server = await startServer({ dataDir, env: ENV })
  await historyOpen({ url: server.url, keys: { ...server.keys, secret: key } })
  const client = clientOf(server)
  const all = async () => (await client.get('/v1/events?limit=100', key)).body.data.length
  await until('the last of them are in the list', LISTED_MS_MAX, async () => (await all()) === made.length + 5)
  const { status, body } = await client.get('/v1/events?limit=100&keyKind=secret', key)
  t.equal(status, 200)
  t.ok(body.data.length >= 5, 'columns of later migrations are there')
  const rule = {
    name: 'New',
    conditions: { operator: 'AND', rules: [{ field: 'linkedId', operator: 'exists', value: true }] },
  }
  const draft = { ...rule, action: { verdict: 'block' }, status: 'live' }
  const created = await client.send('POST', '/v1/rules', { key, body: draft })
  t.equal(created.status, 201, JSON.stringify(created.body))
  t.equal(await server.stop(), 0)
})

t.test('an older build refuses the folder by name, and the newer one has lost nothing by that', async (t) => {
  const { main, newest } = olderBuild()
  const older = await launchServer({ dataDir, env: ENV, main })
  const refusal = `the database has schema version ${newest}, this build knows ${newest - 1}: run the newer build`
  await until('it says so', REFUSED_MS_MAX, async () => older.logs().includes(refusal))
  const ready = await fetch(`${older.url}/readyz`).catch(() => null)
  t.not(ready?.status, 200, 'it is not ready')
  await older.stop()

  const format = join(dataDir, 'format.json')
  const text = readFileSync(format, 'utf8')
  t.equal(JSON.parse(text).format, 2, 'which builds refuse that do not know of it')
  writeFileSync(format, JSON.stringify({ ...JSON.parse(text), format: 3 }))
  const refused = await launchServer({ dataDir, env: ENV })
  t.equal(await refused.exited, 1)
  t.match(refused.logs(), /has format 3, this build reads up to 2: use a newer build/)
  writeFileSync(format, text)

  const server = await startServer({ dataDir, env: ENV })
  await historyOpen({ url: server.url, keys: { ...server.keys, secret: key } })
  const client = clientOf(server)
  t.equal((await client.get('/v1/events?limit=100', key)).body.data.length, made.length + 5)
  t.equal((await client.get('/v1/rules', key)).body.data.length, 1)
  t.equal(await server.stop(), 0)
})
