// DELETE /v1/visitors/{id} against a real server: from the answer on nothing of the visitor is shown, and its token does not
// bring it back. `faults/events-survive.test.ts` has the same of a kill -9.

import t from 'tap'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, ...client } = await openTenant()
const { keys } = server
const key = keys.secret
const listed = async (visitorId: string): Promise<number> =>
  (await client.get(`/v1/events?visitorId=${visitorId}`, key)).body.data.length

let made = 0
async function visit(storageToken: string | null = null, gpu = `GPU ${++made}`) {
  const device = browserBody(gpu)
  Object.assign(device.components, { audio: { value: 200 + made }, fonts: { value: [gpu] } })
  const { status, body } = await client.identify({ ...device, storageToken, userAgent: CHROME }, { key })
  t.equal(status, 200)
  return body as { requestId: string; visitorId: string; visitorFound: boolean; storageToken: string }
}

/** A visitor is there to be erased when its state is stored, within a second of its event. */
async function erase(visitorId: string) {
  await eventually(
    () => client.get(`/v1/visitors/${visitorId}`, key),
    ({ status }) => status === 200,
  )
  return remove(visitorId)
}
const remove = (visitorId: string) => client.send('DELETE', `/v1/visitors/${visitorId}`, { key })

t.test('from the answer on no read shows anything of the visitor', async (t) => {
  const first = await visit()
  const second = await visit(first.storageToken, `GPU ${made}`)
  const other = await visit()
  t.equal(second.visitorId, first.visitorId)
  t.equal(
    await eventually(
      () => listed(first.visitorId),
      (count) => count === 2,
    ),
    2,
  )
  const late = await visit(second.storageToken, `GPU ${made}`)

  const { status, body } = await erase(first.visitorId)
  t.equal(status, 200)
  t.match(body, { deleted: true, visitorId: first.visitorId, erasureId: /^era_/ })
  for (const { requestId } of [first, second, late]) {
    t.equal((await client.get(`/v1/events/${requestId}`, key)).status, 404, 'its events are gone')
  }
  t.equal(await listed(first.visitorId), 0, 'the list is empty at once')
  t.equal((await client.get(`/v1/visitors/${first.visitorId}`, key)).status, 404)
  t.equal((await remove(first.visitorId)).status, 404, 'it cannot be erased again')
  t.equal((await client.get(`/v1/events/${other.requestId}`, key)).status, 200, 'others are untouched')
})

t.test('neither its token nor its device brings an erased visitor back', async (t) => {
  const first = await visit()
  const { storageToken } = await visit(first.storageToken, `GPU ${made}`)
  await erase(first.visitorId)
  const again = await visit(storageToken, `GPU ${made}`)
  t.equal(again.visitorFound, false)
  t.not(again.visitorId, first.visitorId)
  const next = await visit(storageToken, `GPU ${made}`)
  t.not(next.visitorId, first.visitorId)
  t.equal(
    (await visit(again.storageToken, `GPU ${made}`)).visitorId,
    again.visitorId,
    'the new one is a visitor like any',
  )
})

t.test('only a key with the scope erases, and only a visitor of its own environment', async (t) => {
  const { visitorId } = await visit()
  t.equal((await client.send('DELETE', `/v1/visitors/${visitorId}`, { key: keys.public })).status, 403)
  t.equal((await client.send('DELETE', `/v1/visitors/${visitorId}`, { key: keys.testSecret })).status, 404)
  t.equal((await remove('pv_00000000000000000000')).status, 404)
  t.equal((await erase(visitorId)).status, 200)
})
