// Objects of another workspace or environment are as unknown as any that never was: every endpoint with an id, every id.

import t from 'tap'
import { type Endpoint, endpointsOf } from '../../src/api/reference/openapi.ts'
import { SCOPES } from '../../src/domain/workspace.ts'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { fetchDescription } from '../helpers/described.ts'
import { cleanUp, historyOpen } from '../helpers/server.ts'
import { openTenant, removeAlerts } from '../helpers/tenant.ts'
import { askDescribed, bodyOf, fill, paramsOf, UNKNOWN_IDS } from './endpoints.ts'

const tenant = await openTenant()
const { server } = tenant
t.teardown(async () => {
  await removeAlerts(tenant)
  await cleanUp()
})
const found = await fetchDescription(server.url)
if (found === null) throw new Error('the server describes nothing')
await historyOpen(server)
const description = found
const endpoints = [...endpointsOf(description.document)].filter(({ path }) => path.startsWith('/v1/'))
const withIds = endpoints.filter((endpoint) => paramsOf(endpoint).length > 0)
type Ids = Readonly<Record<string, string>>

const send = (method: string, path: string, key: string, body?: unknown) =>
  askDescribed(server.url, description, { method, path, key, ...(body === undefined ? {} : { body }) })

async function made(method: string, path: string, key: string, body: unknown): Promise<Record<string, string>> {
  const got = await send(method, path, key, body)
  if (got.status >= 300) throw new Error(`${method} ${path}: ${got.text}`)
  return JSON.parse(got.text)
}

const has = (name: string) => endpoints.some(({ method, path }) => `${method} ${path}` === name)
const exampleOf = (name: string) => {
  const endpoint = endpoints.find(({ method, path }) => `${method} ${path}` === name)
  return endpoint === undefined ? undefined : bodyOf(endpoint.operation)
}

/** One object of every kind that paths name, by the name of its parameter. */
async function objectsOf(key: string, mark: string): Promise<Ids> {
  const visit = async (): Promise<Record<string, string>> => {
    const body = { ...browserBody(), linkedId: mark, userAgent: CHROME, ip: '203.0.113.77' }
    return made('POST', '/v1/identify', key, body)
  }
  const { requestId = '', visitorId = '' } = await visit()
  await visit()
  const rule = { name: mark, conditions: CONDITIONS, action: { verdict: 'challenge' }, status: 'monitor' }
  const ids: Record<string, string> = {
    requestId,
    visitorId,
    ruleId: (await made('POST', '/v1/rules', key, rule)).id ?? '',
    keyId: (await made('POST', '/v1/keys', key, { kind: 'secret', scopes: ['events:read'] })).id ?? '',
    listId: (await made('POST', '/v1/lists', key, { name: `list-${mark}`, type: 'visitor' })).id ?? '',
  }
  for (const [name, create] of [
    ['webhookId', 'POST /v1/webhooks'],
    ['alertId', 'POST /v1/alerts'],
  ] as const) {
    if (has(create)) ids[name] = (await made('POST', create.slice(5), key, exampleOf(create))).id ?? ''
  }
  if (has('GET /v1/erasures/{erasureId}')) {
    const gone = await made('POST', '/v1/identify', key, { components: { userAgent: { value: `${mark} 1.0` } } })
    const path = `/v1/visitors/${gone.visitorId}`
    await eventually(
      () => send('GET', path, key),
      ({ status }) => status === 200,
    )
    ids.erasureId = (await made('DELETE', path, key, undefined)).erasureId ?? ''
  }
  if (has('GET /v1/webhooks/{webhookId}/deliveries/{deliveryId}')) {
    // Whatever comes of it: the test leaves a delivery behind.
    await send('POST', `/v1/webhooks/${ids.webhookId}/test`, key, {})
    const { data } = JSON.parse((await send('GET', `/v1/webhooks/${ids.webhookId}/deliveries`, key)).text)
    ids.deliveryId = data[0].deliveryId
  }
  return ids
}

const CONDITIONS = { operator: 'AND', rules: [{ field: 'signals.vpn', operator: 'equals', value: true }] }

const operator = async (path: string, body: unknown) => {
  const answer = await fetch(`${server.url}/admin/v1${path}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${server.operatorToken}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return (await answer.json()) as { id: string; key: string }
}
const workspace = await operator('/workspaces', { name: 'Other' })
/** A key with every scope. */
const keyIn = async (id: string, environment: 'live' | 'test') =>
  (await operator(`/workspaces/${id}/keys`, { kind: 'secret', environment, scopes: SCOPES })).key
const otherKey = await keyIn(workspace.id, 'live')
const testKey = await keyIn(server.workspace, 'test')
const mine = await keyIn(server.workspace, 'live')
const own = await objectsOf(mine, 'mine')
const OTHERS = [
  { where: 'another workspace', key: otherKey, theirs: await objectsOf(otherKey, 'theirs') },
  {
    where: 'another environment',
    key: testKey,
    theirs: await objectsOf(testKey, 'test'),
  },
]

t.test('every kind of id in a path has an object here', async (t) => {
  const missing = [...new Set(withIds.flatMap(paramsOf))].filter((name) => own[name] === undefined)
  t.same(missing, [], 'say in objectsOf of this file how one is made')
})

/** Takes ids or a visitor, and goes on where an id names nothing. */
const COUNTING = '/v1/events/labels'

for (const { where, key, theirs } of OTHERS) {
  t.test(`ids in paths, asked from ${where}`, async (t) => {
    const wrong: string[] = []
    let asked = 0
    for (const endpoint of withIds) {
      const params = paramsOf(endpoint)
      // The last id is foreign; those before it are foreign as well, or the caller's own.
      for (const [name = '', before] of [
        [params.at(-1), own],
        [params.at(-1), theirs],
        [params[0], own],
      ] as const) {
        const ids = idsFor(name).map((id) => ({ ...before, [name]: id }))
        wrong.push(...(await unlikeUnknown(endpoint, key, ids, { ...before, [name]: UNKNOWN_IDS[name] ?? '' })))
        asked += ids.length
        if (params.length === 1) break
      }
    }
    t.same(wrong, [], 'each is answered as an id that never was')
    t.ok(asked >= withIds.length)
  })

  t.test(`ids in queries, asked from ${where}`, async (t) => {
    for (const { method, path, operation } of endpoints) {
      for (const { name, in: place } of operation.parameters ?? []) {
        const id = own[name]
        if (place !== 'query' || id === undefined) continue
        const to = (value: string) => `${fill(path, theirs)}?${name}=${value}`
        const foreign = await send(method, to(id), key)
        const unknown = await send(method, to(UNKNOWN_IDS[name] ?? ''), key)
        t.same([foreign.status, foreign.text], [unknown.status, unknown.text], `${method} ${path} by ${name}`)
      }
    }
    const audit = async (id: string) => (await send('GET', `/v1/audit?resource=rule&id=${id}`, key)).text
    t.equal(await audit(own.ruleId ?? ''), await audit(UNKNOWN_IDS.ruleId ?? ''), 'the audit log by rule')
  })

  t.test(`ids in bodies, asked from ${where}`, async (t) => {
    for (const { method, path, operation } of endpoints) {
      const schema = operation.requestBody?.content['application/json']?.schema
      for (const [name, member] of Object.entries(schema?.properties ?? {})) {
        const isList = /Ids$/.test(name)
        const kind = isList ? name.slice(0, -1) : name
        const id = own[kind]
        if (id === undefined) continue
        const example = (bodyOf(operation) ?? {}) as Record<string, unknown>
        const body = (value: string) => ({
          ...without(path === COUNTING ? { label: 'fraud' } : example, name),
          [name]: member.type === 'array' ? [value] : value,
        })
        const foreign = await send(method, fill(path, theirs), key, body(id))
        const unknown = await send(method, fill(path, theirs), key, body(UNKNOWN_IDS[kind] ?? ''))
        t.same([foreign.status, foreign.text], [unknown.status, unknown.text], `${method} ${path} with ${name}`)
        if (path === COUNTING && name === 'requestIds') {
          t.match(JSON.parse(foreign.text), { labelled: 0, notFound: 1 }, `${method} ${path} counts it as unknown`)
        } else t.ok(foreign.status >= 400, `${method} ${path} with ${name} is refused`)
      }
    }
  })

  t.test(`cursors, used from ${where}`, async (t) => {
    const { nextCursor } = JSON.parse((await send('GET', '/v1/events?limit=1', mine)).text)
    t.type(nextCursor, 'string')
    const got = await send('GET', `/v1/events?limit=1&cursor=${nextCursor}`, key)
    t.match(got, { status: 400, field: 'cursor' })
  })
}

/** A trial takes an event or a stored one, conditions or a rule. */
const ALTERNATIVES: Readonly<Record<string, readonly string[]>> = { requestId: ['event'], ruleId: ['conditions'] }
const without = (body: Record<string, unknown>, name: string) =>
  Object.fromEntries(Object.entries(body).filter(([other]) => !(ALTERNATIVES[name] ?? []).includes(other)))

/** The object of that kind, and such of other kinds: one of them in turn, or all. */
const OTHER_KINDS_MAX = sized({ quick: 0, usual: 1, long: Number.POSITIVE_INFINITY })
let turn = 0
function idsFor(name: string): string[] {
  const others = [...new Set(Object.values(own))].filter((id) => id !== own[name])
  turn += 1
  const inTurn = new Set([...others.slice(turn % others.length), ...others])
  return [own[name] ?? '', ...[...inTurn].slice(0, OTHER_KINDS_MAX)]
}

/** Every way in which `ids` are not answered as unknown ones. */
async function unlikeUnknown(endpoint: Endpoint, key: string, ids: readonly Ids[], unknown: Ids): Promise<string[]> {
  const { method, path, operation } = endpoint
  const body = operation.requestBody === undefined ? undefined : (bodyOf(operation) ?? {})
  const expected = await send(method, fill(path, unknown), key, body)
  const wrong = expected.status === 404 ? [] : [`${method} ${fill(path, unknown)}: ${expected.status}`]
  for (const one of ids) {
    const got = await send(method, fill(path, one), key, body)
    // A key of the other environment of the same workspace is told apart, and refused.
    if (path === '/v1/keys/{keyId}' && key === testKey && got.code === 'insufficient_permissions') continue
    if (got.status === 404 && got.text === expected.text) continue
    wrong.push(`${method} ${fill(path, one)}: ${got.status} ${got.text}, not ${expected.status} ${expected.text}`)
  }
  return wrong
}

t.test('nothing of it has touched the objects', async (t) => {
  for (const endpoint of withIds) {
    if (endpoint.method !== 'GET' || endpoint.path.includes('monitor')) continue
    t.equal((await send('GET', fill(endpoint.path, own), mine)).status, 200, endpoint.path)
  }
})
