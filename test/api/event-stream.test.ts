// GET /v1/events/stream: whoever watches sees each event of the environment that meets the filters, whole, once it is decided; what
// comes beyond fifty in a second is counted, and the stream ends with the right to it.

import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { openFingerpost } from '../../src/client/client.ts'
import { eventually } from '../helpers/client.ts'
import { deviceOf } from '../helpers/devices.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, identify, get, send, admin } = await openTenant()
const { keys, url } = server
const key = keys.testSecret

// biome-ignore lint/suspicious/noExplicitAny: the whole Event, as it came
type Event = any

interface Watched {
  readonly status: number
  readonly events: Event[]
  /** Counts of `skipped`. */
  readonly skipped: number[]
  /** That the service ended it. */
  readonly isOver: () => boolean
  leave(): void
}

/** Resolves when events are told. */
async function watch(query = '', as: string = key): Promise<Watched> {
  const leaving = new AbortController()
  const headers = { Authorization: `Bearer ${as}` }
  const response = await fetch(`${url}/v1/events/stream${query}`, { headers, signal: leaving.signal })
  const events: Event[] = []
  const skipped: number[] = []
  let isOver = false
  let isListening = false
  async function read(): Promise<void> {
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true })
      const messages = text.split('\n\n')
      text = messages.pop() ?? ''
      for (const message of messages) {
        const [, name, data = ''] = /^(?:id: .*\n)?event: (\w+)\ndata: (.*)$/.exec(message) ?? []
        if (name === 'listening') isListening = true
        if (name === 'event') events.push(JSON.parse(data))
        if (name === 'skipped') skipped.push(JSON.parse(data).count)
      }
    }
    isOver = true
  }
  if (response.status === 200) {
    read().catch(() => undefined)
    await eventually(
      async () => isListening,
      (is) => is,
    )
  } else await response.text()
  return { status: response.status, events, skipped, isOver: () => isOver, leave: () => leaving.abort() }
}

let made = 0
async function visit(more: object = {}, as: string = key): Promise<Event> {
  made += 1
  const { mock, ...device } = deviceOf(1 + (made % 200))
  const { status, body } = await identify({ ...device, ip: mock.ip, ...more }, { key: as })
  if (status !== 200) throw new Error(`identify answered ${status}`)
  const { storageToken: _, ...event } = body
  return event
}
const some = (watched: Watched, count: number) =>
  eventually(
    async () => watched.events,
    (events) => events.length >= count,
  )

t.test('each event is told whole, as it is read by its id, in its environment and nowhere else', async (t) => {
  const [mine, live] = [await watch(), await watch('', keys.secret)]
  const visits = [await visit({ linkedId: 'ann', email: 'ann@shop.example' }), await visit(), await visit()]
  const events = await some(mine, 3)
  t.same(new Set(events.map((event: Event) => event.requestId)), new Set(visits.map(({ requestId }) => requestId)))
  for (const event of events) {
    t.same(shapes.event(event), [])
    t.ok(isDeepStrictEqual(event, (await get(`/v1/events/${event.requestId}`, key)).body))
  }
  t.same(live.events, [])
  const other = await visit({}, keys.secret)
  t.same(
    (await some(live, 1)).map(({ requestId }: Event) => requestId),
    [other.requestId],
  )
  t.equal(mine.events.length, 3)
  mine.leave()
  live.leave()
})

t.test('filters are those of the list', async (t) => {
  const watched = await watch('?linkedId=wanted&tag.action=login&ip=198.0.0.0/8&confidenceMin=0')
  const wanted = await visit({ linkedId: 'wanted', tag: { action: 'login' } })
  await visit({ linkedId: 'wanted', tag: { action: 'logout' } })
  await visit({ linkedId: 'other', tag: { action: 'login' } })
  await visit({ linkedId: 'wanted', tag: { action: 'login' }, ip: '203.0.113.1' })
  const last = await visit({ linkedId: 'wanted', tag: { action: 'login', more: 1 } })
  const events = await some(watched, 2)
  t.same(new Set(events.map(({ requestId }: Event) => requestId)), new Set([wanted.requestId, last.requestId]))
  watched.leave()
  const ofVisitor = await watch(`?visitorId=${last.visitorId}`)
  await visit()
  const { storageToken } = (await identify({ ...deviceOf(201) }, { key })).body
  const mine = (await identify({ ...deviceOf(201), storageToken }, { key })).body
  const its = await watch(`?visitorId=${mine.visitorId}`)
  await identify({ ...deviceOf(201), storageToken }, { key })
  t.equal((await some(its, 1))[0].visitorId, mine.visitorId)
  t.same(ofVisitor.events, [])
  ofVisitor.leave()
  its.leave()
  for (const [query, field] of [
    ['?limit=5', 'limit'],
    ['?fields=full', 'fields'],
    ['?ip=x', 'ip'],
    ['?verdict=no', 'verdict'],
  ]) {
    t.match(await get(`/v1/events/stream${query}`, key), { status: 400, body: { error: { field } } })
  }
})

t.test('of many in a second fifty are told and the others are counted', async (t) => {
  const watched = await watch('?linkedId=flood')
  const MANY = 150
  await Promise.all(Array.from({ length: MANY }, () => visit({ linkedId: 'flood' })))
  const count = async () => watched.events.length + watched.skipped.reduce((sum, one) => sum + one, 0)
  t.equal(await eventually(count, (all) => all === MANY), MANY)
  t.ok(watched.events.length >= 50, 'as many as may be')
  watched.leave()
})

t.test('the client watches as an iterator', async (t) => {
  const fingerpost = openFingerpost({ baseUrl: url, key })
  const ending = new AbortController()
  const connected = new Promise<void>((resolve) => {
    void (async () => {
      const watching = fingerpost.events.watch({ linkedId: 'read' }, { signal: ending.signal, onConnected: resolve })
      for await (const event of watching) heard.push(event.requestId)
    })()
  })
  const heard: string[] = []
  await connected
  const { requestId } = await eventually(
    () => visit({ linkedId: 'read' }),
    () => heard.length > 0,
  )
  t.type(requestId, 'string')
  ending.abort()
})

t.test('a workspace below Pro sees no scores and may not ask for them', async (t) => {
  const plan = (name: string) => admin('PATCH', `/workspaces/${server.workspace}`, { plan: name })
  await plan('starter')
  t.equal((await get('/v1/events/stream?suspectMin=5', key)).body.error.code, 'plan_required')
  const watched = await watch()
  await visit()
  t.same(shapes.eventWithoutScores((await some(watched, 1))[0]), [])
  watched.leave()
  await plan('enterprise')
})

t.test('a stream ends when its key is revoked', async (t) => {
  const path = `/workspaces/${server.workspace}/keys`
  const reader = (await admin('POST', path, { kind: 'secret', environment: 'test', scopes: ['events:read'] })).body
  const watched = await watch('', reader.key)
  await visit()
  await some(watched, 1)
  t.notOk(watched.isOver())
  await admin('DELETE', `${path}/${reader.id}`)
  t.ok(
    await eventually(
      async () => watched.isOver(),
      (is) => is,
    ),
  )
})

t.test('a workspace that watches as often as it may keeps no other from watching', async (t) => {
  const crowd = await openTenant()
  const all = await Promise.all(Array.from({ length: 10 }, () => watch('', crowd.server.keys.testSecret)))
  t.same(new Set(all.map(({ status }) => status)), new Set([200]))
  t.equal((await watch('', crowd.server.keys.testSecret)).status, 503)
  const own = await watch()
  t.equal(own.status, 200, 'others are not kept from it')
  own.leave()
  for (const one of all) one.leave()
  const again = async () => (await watch('', crowd.server.keys.testSecret)).status
  t.equal(await eventually(again, (status) => status === 200), 200)
  t.equal((await send('DELETE', '/v1/events/stream', { key })).status, 405)
})
