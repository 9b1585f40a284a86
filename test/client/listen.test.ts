// Listening with the client for Node against a whole server: what is heard, over lost connections, and what ends it.

import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import t from 'tap'
import { type FingerpostError, type HeardEvent, type IdentifyRequest, openFingerpost } from '../../src/client/client.ts'
import { browserBody, CHROME, eventually } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)
const { server } = await openTenant()
const { keys, port } = server

/** Passes everything on to the server until it is told to cut. */
async function openProxy() {
  const sockets = new Set<Socket>()
  const proxy = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const cut = () => {
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(() => {
    cut()
    proxy.close()
  })
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, cut, sockets }
}

/** The service tells only once it has heard that somebody listens: visits go on until something is heard. */
function visiting() {
  const fingerpost = openFingerpost({ baseUrl: server.url, key: keys.testSecret })
  let visit = 0
  const timer = setInterval(() => {
    const body = { ...browserBody(`GPU ${++visit}`), userAgent: CHROME, ip: '203.0.113.9' } as IdentifyRequest
    // One that a busy machine decides later is heard of later.
    fingerpost.identify(body).catch((error: FingerpostError) => {
      if (error.code !== 'pending') t.fail(`a visit failed: ${error}`)
    })
  }, 200)
  return () => clearInterval(timer)
}

t.test('what happens is heard, also after the connection was lost, and leaving the loop ends it', async (t) => {
  const proxy = await openProxy()
  const fingerpost = openFingerpost({ baseUrl: proxy.url, key: keys.testSecret })
  const stopVisiting = visiting()
  t.teardown(stopVisiting)
  let connections = 0
  const losses: FingerpostError[] = []
  const heard: HeardEvent[] = []
  const listening = {
    onConnected: () => void connections++,
    onLost: (reason: FingerpostError) => void losses.push(reason),
  }
  for await (const event of fingerpost.webhooks.listen(listening)) {
    if (event.type !== 'identification.complete') continue
    heard.push(event)
    if (heard.length === 1) proxy.cut()
    if (connections === 2) break
  }
  stopVisiting()
  t.match(losses[0], { status: 0, code: 'no_answer' })
  t.ok(heard.length >= 2, 'heard on both connections')
  for (const { eventId, body, plain } of heard) {
    t.match(JSON.parse(body ?? ''), { eventId, eventType: 'identification.complete', data: { requestId: /^req_/ } })
    t.match(JSON.parse(plain?.body ?? ''), { event: 'identification', data: { requestId: /^req_/ } })
  }
  const left = await eventually(
    async () => proxy.sockets.size,
    (count) => count === 0,
  )
  t.equal(left, 0, 'no connection stays')
})

t.test('a refusal ends it with its reason, a signal without one', async (t) => {
  for (const [key, status] of [
    [keys.secret, 403],
    ['sk_test_nobody', 401],
  ] as const) {
    const listening = openFingerpost({ baseUrl: server.url, key }).webhooks.listen()
    await t.rejects(listening.next(), { name: 'FingerpostError', status })
  }
  const stopping = new AbortController()
  const listening = openFingerpost({ baseUrl: server.url, key: keys.testSecret }).webhooks.listen({
    signal: stopping.signal,
    onConnected: () => stopping.abort(),
  })
  t.same(await listening.next(), { done: true, value: undefined })
  const nowhere = openFingerpost({ baseUrl: 'http://127.0.0.1:1', key: keys.testSecret, sleep: async () => {} })
  const leaving = new AbortController()
  const codes: string[] = []
  const onLost = ({ code }: FingerpostError) => {
    if (codes.push(code) === 3) leaving.abort()
  }
  t.same(await nowhere.webhooks.listen({ signal: leaving.signal, onLost }).next(), { done: true, value: undefined })
  t.same(codes, ['no_answer', 'no_answer', 'no_answer'], 'tried again until it is told to end')
})
