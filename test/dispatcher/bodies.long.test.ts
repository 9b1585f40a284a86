// A whole service that tells of an event with more rules than a body holds. The short form, of the body alone, is in
// bodies.test.ts.

import t from 'tap'
import { PAYLOAD_BYTES_MAX } from '../../src/domain/webhook.ts'
import { CHROME, eventually } from '../helpers/client.ts'
import { fetchDescription } from '../helpers/described.ts'
import { openReceiver } from '../helpers/receiver.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

t.test('a body that was too long keeps its ids alone and has its schema', async (t) => {
  const { server, send, identify } = await openTenant()
  const receiver = await openReceiver(t, server.receiverTls)
  const description = await fetchDescription(server.url)
  const key = server.keys.testSecret
  const make = async (path: string, body: object) => {
    const { status, text } = await send('POST', path, { key, body })
    if (status !== 201) t.fail(`${path}: ${text}`)
  }
  await make('/v1/webhooks', { url: `https://localhost:${receiver.port}/long`, events: ['identification.complete'] })
  const rule = {
    action: { verdict: 'allow' },
    conditions: { operator: 'AND', rules: [{ field: 'tag.long', operator: 'equals', value: true }] },
    status: 'live',
  }
  // Each of these characters takes six bytes of JSON.
  const name = '\u0001'.repeat(200)
  const [rules, atOnce] = [Math.ceil(PAYLOAD_BYTES_MAX / JSON.stringify(name).length), 16]
  for (let made = 0; made < rules; made += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, () => make('/v1/rules', { ...rule, name })))
  }
  const event = await identify({ userAgent: CHROME, tag: { long: true } }, { key })
  const { requestId, visitorId, verdict } = event.body
  const [hit] = await eventually(
    async () => receiver.hits,
    (hits) => hits.length > 0,
  )
  const body = hit?.body ?? '{"data":{}}'
  t.same(JSON.parse(body).data, { requestId, visitorId, verdict, truncated: true })
  t.same(description?.deliveryFaults(body), [])
})
