// A caller's trace: what of `traceparent` counts, and that deliveries of what it caused go on with it.

import t from 'tap'
import { openPresent } from '../../src/api/present.ts'
import { packTrace, readTraceparent, traceparentOf } from '../../src/domain/trace.ts'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import { decodeEventsRecord, encodeEventsRecord } from '../../src/events/record.ts'
import { browserBody, clientOf } from '../helpers/client.ts'
import { until } from '../helpers/processes.ts'
import { answer, makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { cleanUp, startServer } from '../helpers/server.ts'

t.setTimeout(120_000)
t.teardown(cleanUp)

const ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const SENT = `00-${ID}-${SPAN}-01`
const TOLD_MS_MAX = 60_000

t.test('only what the recommendation allows counts as a trace', (t) => {
  t.same(readTraceparent(SENT), { id: ID, span: SPAN, flags: '01' })
  t.same(
    readTraceparent(`cc-${ID}-${SPAN}-09-what-is-to-come`),
    { id: ID, span: SPAN, flags: '09' },
    'versions to come',
  )
  for (const odd of [
    '',
    'x',
    SENT.toUpperCase(),
    `ff-${ID}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${ID}-${'0'.repeat(16)}-01`,
    `${SENT}-more`,
    `${SENT}\r\nX-Other: 1`,
    `cc-${ID}-${SPAN}-01-${'x'.repeat(600)}`,
  ]) {
    t.equal(readTraceparent(odd), null, odd.slice(0, 80))
  }
  const packed = packTrace({ id: ID, span: SPAN, flags: '01' })
  t.match(readTraceparent(traceparentOf(packed, 'one')), { id: ID, flags: '01' })
  t.equal(traceparentOf(packed, 'one'), traceparentOf(packed, 'one'))
  t.not(traceparentOf(packed, 'one'), traceparentOf(packed, 'two'), 'each call is a span of its own')
  t.end()
})

t.test('a decision carries the trace of its caller, and one without it is read as before', (t) => {
  const item: DecidedItem = {
    seq: 1,
    requestId: 'req_1',
    workspace: 'ws_1',
    env: 'live',
    visitorId: 'vis_1',
    state: new Uint8Array([1]),
    indexed: [],
    matches: [],
    nonceHash: 0,
    bodyHash: 0,
    acceptedAt: 1,
    keyKind: 'public',
    replyTo: '',
    rowBytes: 2,
  }
  const traced = { ...item, trace: packTrace({ id: ID, span: SPAN, flags: '00' }) }
  const rows = Buffer.from('1\n1\n1\n')
  const items = [item, traced, { ...traced, left: ['a'] }]
  t.same(decodeEventsRecord(encodeEventsRecord({ from: 1, to: 3, items, rows })).items, items)
  t.end()
})

t.test('what is logged of a failure names the call and the trace', (t) => {
  const told: unknown[] = []
  const present = openPresent(
    (_, call) => void told.push(call),
    () => 'call_1',
  )
  const context = { caller: { workspace: { id: 'ws_1' } }, trace: readTraceparent(SENT) }
  present(new Error('nobody foresaw it'), { route: '/v1/rules', context })
  present(new Error('nobody foresaw it'), { route: '/v1/rules', context: undefined })
  t.same(told, [
    { callId: 'call_1', route: '/v1/rules', workspace: 'ws_1', traceId: ID },
    { callId: 'call_1', route: '/v1/rules', workspace: null, traceId: null },
  ])
  t.end()
})

t.test('deliveries of an identification are spans of its caller’s trace, each attempt another one', async (t) => {
  const authority = makeAuthority(t)
  const receiver = await openReceiver(t, authority.leaf('DNS:localhost'))
  const server = await startServer({
    env: {
      FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
      FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
    },
  })
  const client = clientOf(server)
  const hook = { url: `https://localhost:${receiver.port}/`, events: ['identification.complete'] }
  const key = server.keys.secret
  const { status, body: webhook } = await client.send('POST', '/v1/webhooks', { key, body: hook })
  t.equal(status, 201)
  receiver.behave = answer(500)
  for (const traceparent of [SENT, 'nonsense']) {
    t.equal((await client.identify(browserBody(), { headers: { traceparent } })).status, 200)
  }
  t.equal((await client.identify(browserBody())).status, 200)
  const traced = () => receiver.hits.flatMap(({ headers }) => headers.traceparent ?? [])
  await until('the first attempts', TOLD_MS_MAX, async () => receiver.hits.length >= 3 && traced().length >= 1)
  receiver.behave = answer(200)
  const deliveries = `/v1/webhooks/${webhook.id}/deliveries`
  for (const { deliveryId } of (await client.get(deliveries, key)).body.data) {
    t.equal((await client.send('POST', `${deliveries}/${deliveryId}/redeliver`, { key, body: {} })).status, 202)
  }
  await until('another attempt', TOLD_MS_MAX, async () => traced().length >= 2)
  for (const header of traced()) t.match(readTraceparent(String(header)), { id: ID, flags: '01' })
  t.equal(new Set(traced()).size, traced().length)
  t.notOk(traced().includes(SENT), 'the span is ours')
  const of = new Set(
    receiver.hits.filter(({ headers }) => headers.traceparent).map(({ headers }) => headers['webhook-id']),
  )
  t.equal(of.size, 1, 'and what nobody traced has none')
  t.equal(await server.stop(), 0)
})
