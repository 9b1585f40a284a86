// Listening to a test environment, and the command that posts what it hears to a receiver without TLS or a public address.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { verifyWebhook } from '../../src/domain/webhook-signature.ts'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)
const { server, identify } = await openTenant()
const { keys, url: service } = server

t.test('only a key of the test environment may listen', async (t) => {
  const of = async (key: string) =>
    (await fetch(`${service}/v1/webhooks/listen`, { headers: { Authorization: `Bearer ${key}` } })).status
  t.equal(await of(keys.secret), 403)
  t.equal(await of(keys.testPublic), 403)
  t.equal(await of('sk_test_nobody'), 401)
})

t.test('a workspace that listens as often as it may keeps no other from listening', async (t) => {
  const crowd = (await openTenant()).server
  const left = new AbortController()
  const listen = async (key: string) => {
    const headers = { Authorization: `Bearer ${key}` }
    return (await fetch(`${service}/v1/webhooks/listen`, { headers, signal: left.signal })).status
  }
  for (let i = 0; i < 10; i++) t.equal(await listen(crowd.keys.testSecret), 200)
  t.equal(await listen(crowd.keys.testSecret), 503)
  t.equal(await listen(keys.testSecret), 200)
  left.abort()
  await eventually(
    async () => {
      const again = new AbortController()
      const headers = { Authorization: `Bearer ${crowd.keys.testSecret}` }
      const { status } = await fetch(`${service}/v1/webhooks/listen`, { headers, signal: again.signal })
      again.abort()
      return status
    },
    (status) => status === 200,
  )
})

t.test('what happens in the test environment arrives, signed, at the address to forward to', async (t) => {
  const hits: { readonly headers: IncomingHttpHeaders; readonly body: string }[] = []
  const receiver = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      hits.push({ headers: request.headers, body })
      response.end()
    })
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  t.teardown(() => receiver.close())
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
  const main = fileURLToPath(new URL('../../server/main.js', import.meta.url))
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const args = ['webhooks', 'listen', '--forward', url, '--secret', secret]
  const command = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, FINGERPOST_URL: service, FINGERPOST_TEST_SECRET_KEY: keys.testSecret },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => command.kill())
  let said = ''
  command.stdout.on('data', (chunk) => {
    said += chunk
  })
  await eventually(
    async () => said,
    (text) => text.includes('listening'),
  )
  await identify({ ...browserBody('A live GPU'), userAgent: CHROME })
  let visit = 0
  // The first may come before whoever tells has heard that somebody listens.
  await eventually(
    async () => {
      await identify({ ...browserBody(`GPU ${++visit}`), userAgent: CHROME }, { key: keys.testSecret })
      return hits.length
    },
    (count) => count > 0,
  )
  const types = await eventually(
    async () => new Set(hits.map(({ headers }) => headers['x-service-event'])),
    (some) => some.has('identification.complete') && some.size > 1,
  )
  t.ok(types.has('identification.complete') && types.size > 1, [...types].join())
  for (const { headers, body } of hits) {
    t.ok(verifyWebhook(body, headers, secret))
    const { eventId, idempotencyKey, data } = JSON.parse(body)
    t.equal(headers['x-service-delivery'], eventId)
    t.equal(idempotencyKey, eventId.replace('evt_', 'ik_'))
    t.ok(data.requestId)
  }
  await eventually(
    async () => said,
    (text) => /identification\.complete evt_\w{26}: 200 in \d+ ms/.test(text),
  )
  command.kill('SIGINT')
  const [code] = await once(command, 'exit')
  t.equal(code, 0)
})
