// GET /v1/events/{id}/identity against a real server: what a recognition rested on, for each way there is to be recognised.

import t from 'tap'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, identify, get, send, admin } = await openTenant()
const { keys } = server
const key = keys.testSecret

let devices = 0
const newDevice = () => {
  const n = ++devices
  const device = browserBody(`ANGLE (NVIDIA, NVIDIA GeForce GTX ${1_000 + n} Direct3D11 vs_5_0 ps_5_0, D3D11)`)
  Object.assign(device.components, { audio: { value: 300 + n }, fonts: { value: [`Font ${n}`, 'Arial', 'Calibri'] } })
  return { ...device, userAgent: CHROME, mock: { ip: `198.51.${n}.7` } }
}
type Device = ReturnType<typeof newDevice>

async function visit(device: Device, more: object = {}) {
  const { status, body } = await identify({ ...device, ...more }, { key })
  t.equal(status, 200)
  return body as { requestId: string; visitorId: string; storageToken: string; confidence: number; identity: object }
}
const explanationOf = (requestId: string) => get(`/v1/events/${requestId}/identity`, key)

const unit = shapes.number(0, 1, 4)
const state = shapes.oneOf('agrees', 'alternates', 'differs', 'unknown')
const ATTRIBUTES = ['gpu', 'model', 'screen', 'devicePixelRatio', 'cores', 'memory', 'canvas', 'audio', 'fonts']
const shape = shapes.object({
  requestId: shapes.matching(shapes.REQUEST_ID),
  visitorId: shapes.matching(shapes.VISITOR_ID),
  visitorFound: shapes.bool,
  method: shapes.oneOf('token', 'exact', 'linked', 'new'),
  confidence: unit,
  anonymitySet: shapes.integer(1),
  compared: shapes.integer(),
  candidates: shapes.listOf(
    shapes.object({ visitorId: shapes.orNull(shapes.matching(shapes.VISITOR_ID)), score: unit }),
  ),
  comparedWith: shapes.orNull(shapes.matching(shapes.VISITOR_ID)),
  agreement: shapes.orNull((value, path) =>
    Object.entries(value as object).flatMap(([name, one]) => state(one, `${path}.${name}`)),
  ),
  browserVersion: shapes.orNull(shapes.oneOf('same', 'newer', 'older', 'unknown')),
  network: shapes.orNull(shapes.oneOf('address', 'network', 'other', 'unknown')),
  tokenGeneration: shapes.object({ presented: shapes.orNull(shapes.integer(1)), issued: shapes.integer(1) }),
  evidence: shapes.listOf(shapes.text),
})

t.test('a stranger was compared with nobody', async (t) => {
  const event = await visit(newDevice())
  const { status, body } = await explanationOf(event.requestId)
  t.equal(status, 200)
  t.same(shape(body), [])
  t.match(body, {
    requestId: event.requestId,
    visitorId: event.visitorId,
    visitorFound: false,
    method: 'new',
    confidence: event.confidence,
    candidates: [],
    comparedWith: null,
    agreement: null,
    tokenGeneration: { presented: null, issued: 1 },
  })
})

t.test('a token decides, and the comparison says whether the looks agree with it', async (t) => {
  const device = newDevice()
  const first = await visit(device)
  const changed = structuredClone(device)
  Object.assign(changed.components, { audio: { value: 1 } })
  const event = await visit(changed, { storageToken: first.storageToken })
  const { body } = await explanationOf(event.requestId)
  t.same(shape(body), [])
  t.match(body, {
    visitorId: first.visitorId,
    visitorFound: true,
    method: 'token',
    comparedWith: first.visitorId,
    candidates: [{ visitorId: first.visitorId, score: event.confidence }],
    agreement: { gpu: 'agrees', fonts: 'agrees', audio: 'differs', model: 'unknown' },
    network: 'address',
    browserVersion: 'same',
    tokenGeneration: { presented: 1, issued: 1 },
  })
  for (const name of ATTRIBUTES) t.ok(name in body.agreement, name)
})

t.test('a device without its token is found by its looks, and gets a token of the next generation', async (t) => {
  const device = newDevice()
  const first = await visit(device)
  const event = await visit(device)
  t.equal(event.visitorId, first.visitorId)
  const { body } = await explanationOf(event.requestId)
  t.same(shape(body), [])
  t.match(body, {
    method: 'exact',
    visitorFound: true,
    comparedWith: first.visitorId,
    confidence: event.confidence,
    agreement: { gpu: 'agrees', audio: 'agrees' },
    tokenGeneration: { presented: null, issued: 2 },
  })
  t.match(body.candidates[0], { visitorId: first.visitorId })
  t.ok(body.candidates[0].score >= event.confidence)
})

t.test('a forged token is evidence, and names nobody', async (t) => {
  const event = await visit(newDevice(), { storageToken: `st_${'A'.repeat(64)}` })
  const { body } = await explanationOf(event.requestId)
  t.same(shape(body), [])
  t.match(body, { method: 'new', evidence: ['token_forged'], tokenGeneration: { presented: null } })
})

t.test('the explanation is the same from the log and from ClickHouse', async (t) => {
  const device = newDevice()
  await visit(device)
  const event = await visit(device)
  const early = await explanationOf(event.requestId)
  await eventually(
    () => get(`/v1/events?visitorId=${event.visitorId}`, key),
    ({ body }) => body.data.length === 2,
  )
  t.same((await explanationOf(event.requestId)).body, early.body)
})

t.test('a candidate that was erased since has no name any more', async (t) => {
  const device = newDevice()
  const first = await visit(device)
  const other = structuredClone(device)
  Object.assign(other.components, {
    fonts: { value: ['Other'] },
    audio: { value: 2 },
    canvas: { value: { winding: true, geometry: 'other', text: 'other', stable: true } },
    screenResolution: { value: [1_234, 777] },
    hardwareConcurrency: { value: 32 },
  })
  const event = await visit(other)
  t.not(event.visitorId, first.visitorId)
  const before = await explanationOf(event.requestId)
  t.equal(before.body.candidates[0]?.visitorId, first.visitorId, 'it was weighed and rejected')
  await eventually(
    () => get(`/v1/visitors/${first.visitorId}`, key),
    ({ status }) => status === 200,
  )
  t.equal((await send('DELETE', `/v1/visitors/${first.visitorId}`, { key })).status, 200)
  const after = await explanationOf(event.requestId)
  t.same(shape(after.body), [])
  t.notMatch(after.text, first.visitorId)
  t.equal(after.body.candidates[0].visitorId, null)
  t.equal((await explanationOf(first.requestId)).status, 404, 'an erased visitor has no events to explain')
})

t.test('who may ask, and for what', async (t) => {
  const { requestId } = await visit(newDevice())
  const restricted = async (scope: string): Promise<string> =>
    (
      await admin('POST', `/workspaces/${server.workspace}/keys`, {
        kind: 'secret',
        environment: 'test',
        scopes: [scope],
      })
    ).body.key
  const path = `/v1/events/${requestId}/identity`
  const cases: [string, string, string | null, number, string | null][] = [
    ['a key with the scope', path, await restricted('events:read'), 200, null],
    ['a key of another scope', path, await restricted('visitors:read'), 403, 'insufficient_permissions'],
    ['a public key', path, keys.testPublic, 403, 'insufficient_permissions'],
    ['no key', path, null, 401, 'invalid_api_key'],
    ['a key of another environment', path, keys.secret, 404, 'not_found'],
    ['an unknown event', '/v1/events/req_01JZZZZZZZZZZZZZZZZZZZZZZZ/identity', key, 404, 'not_found'],
    ['no event at all', '/v1/events/x/identity', key, 404, 'not_found'],
    ['an unknown parameter', `${path}?x=1`, key, 400, 'validation_error'],
  ]
  for (const [what, path, withKey, status, code] of cases) {
    const answer = await send('GET', path, { key: withKey })
    t.equal(answer.status, status, what)
    if (code !== null) {
      t.same(shapes.errorFaults(status, answer.body), [], what)
      t.equal(answer.body.error.code, code, what)
    }
  }
  t.equal((await send('POST', path, { key, body: {} })).status, 405)
})
