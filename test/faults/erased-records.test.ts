// What is left in the state of an embedded server when an erasure is answered: no record of it names the visitor, wherever its
// devices were, and nobody is counted beside it. Folders of earlier releases, where the index still names some, heal by themselves.

import { open } from 'lmdb'
import t from 'tap'
import { homePartition } from '../../src/domain/ids.ts'
import { must } from '../../src/lib/must.ts'
import { partitionScope } from '../../src/records/partitions.ts'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { PARTITIONS, withOps } from '../helpers/deployment.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const LOOKS = 4
const dataDir = temporaryFolder()

/** Records of the kv, by what they are called and hold, that have the text anywhere. */
async function naming(text: string): Promise<string[]> {
  const db = open({ path: `${dataDir}/kv`, readOnly: true, encoding: 'binary', keyEncoding: 'binary' })
  try {
    return [...db.getRange({})].flatMap(({ key, value }) => {
      const name = Buffer.from(key as Uint8Array).toString('latin1')
      const shown = Buffer.from(value as Uint8Array).toString('latin1')
      return name.includes(text) || shown.includes(text) ? [name] : []
    })
  } finally {
    await db.close()
  }
}

t.test('an erased visitor is in no record, and counted nowhere, from the answer on', async (t) => {
  let server = await startServer({ dataDir })
  const { keys, port } = server
  const key = keys.secret
  let client = clientOf(server)
  async function visit(look: number, storageToken: string | null, ip = `203.0.113.${look}`) {
    const device = browserBody('GPU of the erased')
    Object.assign(device.components, { fonts: { value: [`Font ${look}`] }, canvas: { value: `canvas ${look}` } })
    const body = { ...device, ip, linkedId: 'account', storageToken, userAgent: CHROME }
    const answer = await client.identify(body, { key })
    t.equal(answer.status, 200, answer.text)
    return answer.body as {
      readonly visitorId: string
      readonly storageToken: string
      readonly velocity: {
        readonly ip: { readonly visitors: object }
        readonly linkedId: { readonly visitors: object }
      }
    }
  }
  let last = await visit(1, null)
  const { visitorId } = last
  for (let look = 2; look <= LOOKS; look++) last = await visit(look, last.storageToken)
  t.equal(last.visitorId, visitorId)
  const remove = () => client.send('DELETE', `/v1/visitors/${visitorId}`, { key })
  t.equal((await eventually(remove, ({ status }) => status !== 404)).status, 200)
  const { velocity, visitorId: other } = await visit(1, null)
  t.not(other, visitorId)
  t.same([velocity.ip.visitors, velocity.linkedId.visitors], [{ '24h': 1 }, { '24h': 1 }])
  t.equal(await server.stop(), 0)
  t.same(await naming(visitorId), [])
  t.ok((await naming(other)).length > 3, 'the scan finds who is there')

  const scope = partitionScope(homePartition(visitorId, PARTITIONS))
  const place = ['index', `ws_default/live/old`] as const
  await withOps(dataDir, ({ kv }) => kv.commit([{ scope, put: [{ key: place, value: [2, other, visitorId] }] }]))
  t.equal((await naming(visitorId)).length, 1)
  const env = { FINGERPOST_PURGE_EVERY_SECONDS: '1' }
  server = await startServer({ dataDir, env, keys, port })
  client = clientOf(server)
  await eventually(
    () => naming(visitorId),
    (names) => names.length === 0,
  )
  t.equal(await server.stop(), 0)
  t.same(await naming(visitorId), [], 'a place that was left goes')
  const [entry] = await withOps(dataDir, ({ kv }) => kv.get(scope, [place]))
  t.same(must(entry).value, [1, other])
})
