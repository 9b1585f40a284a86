// Spans by the SDK of OpenTelemetry that the settings name: of each stage, in the caller's trace where there is one, and sent at the end.

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { readTraceparent } from '../../src/domain/trace.ts'
import { browserBody, clientOf } from '../helpers/client.ts'
import { until } from '../helpers/processes.ts'
import { answer, makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { cleanUp, launchServer, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(120_000)
t.teardown(cleanUp)

const SDK = fileURLToPath(new URL('../helpers/tracing-sdk.js', import.meta.url))
const ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const TOLD_MS_MAX = 60_000

t.test('stages and deliveries are spans, those of a traced call in its trace', async (t) => {
  const file = join(temporaryFolder(), 'spans')
  const spans = () =>
    (existsSync(file) ? readFileSync(file, 'utf8') : '')
      .split('\n')
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line))
  const named = (name: string) => spans().filter((span) => span.name === `fingerpost.${name}`)
  const authority = makeAuthority(t)
  const receiver = await openReceiver(t, authority.leaf('DNS:localhost'))
  const server = await startServer({
    env: {
      SPANS_FILE: file,
      FINGERPOST_TRACING_SDK: SDK,
      FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
      FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
    },
  })
  const client = clientOf(server)
  const hook = { url: `https://localhost:${receiver.port}/`, events: ['identification.complete'] }
  t.equal((await client.send('POST', '/v1/webhooks', { key: server.keys.secret, body: hook })).status, 201)
  receiver.behave = answer(500)
  const headers = { traceparent: `00-${ID}-${SPAN}-01` }
  t.equal((await client.identify(browserBody(), { headers })).status, 200)
  receiver.behave = answer(500)
  const STAGES = ['accept', 'append', 'decide', 'flush', 'sink', 'webhook']
  await until('every stage', TOLD_MS_MAX, async () => STAGES.every((stage) => named(stage).length > 0))
  t.match(named('accept'), [{ traceId: ID, parent: SPAN }])
  const [delivery] = named('webhook')
  t.match(delivery, { traceId: ID, parent: SPAN, 'http.response.status_code': 500, code: 2 })
  const [hit] = receiver.hits
  t.same(readTraceparent(String(hit?.headers.traceparent)), { id: ID, span: delivery.spanId, flags: '01' })
  t.match(named('decide')[0], { 'fingerpost.events': 1, parent: null })
  for (const stage of ['accept', 'decide', 'sink']) {
    const [{ startTime, endTime }] = named(stage)
    t.ok(startTime <= endTime && Math.abs(endTime - Date.now()) < 100_000, stage)
  }
  t.equal(await server.stop(), 0)
  t.ok(
    spans().some(({ name }) => name === 'shutdown'),
    'what it has not sent it sends at the end',
  )
})

t.test('a module that is not there, or registers nothing, is told of at the start', async (t) => {
  const server = await launchServer({ env: { FINGERPOST_TRACING_SDK: '/no/such/sdk.js' } })
  t.equal(await server.exited, 1)
  t.match(server.logs(), /^fingerpost: tracing\.sdk: \/no\/such\/sdk\.js cannot be loaded/m)
  const idle = join(temporaryFolder(), 'idle.mjs')
  writeFileSync(idle, 'export const nothing = 1\n')
  const other = await launchServer({ env: { FINGERPOST_TRACING_SDK: idle } })
  t.equal(await other.exited, 1)
  t.match(other.logs(), /registers no SDK over @opentelemetry\/api 1\.10 or a later 1\.x/)
})
