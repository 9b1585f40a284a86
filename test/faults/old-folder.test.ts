// What an earlier release stored. The folder was made by commit 0f9178a and its server killed: forty of its fifty identifications had
// reached ClickHouse and a checkpoint, ten lay in the log alone.

import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { clientOf } from '../helpers/client.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

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

t.test('a folder of commit 0f9178a opens and has lost nothing', async (t) => {
  const stored: Stored = JSON.parse(gunzipSync(readFileSync(FILE)).toString('utf8'))
  const { key, made } = stored
  const dataDir = unpack(stored)
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
