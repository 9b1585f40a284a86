// The proxy breaks exactly what its mode says: tests of faults mean nothing when the fault does not happen.
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, connect as dial, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { pause, until } from '../helpers/processes.ts'
import { openProxy } from '../helpers/proxy.ts'

/** A server that answers every line with `re:<line>`; `heard` is all it was sent. */
async function openEcho(t: Test) {
  const sockets = new Set<Socket>()
  const heard: Buffer[] = []
  let errors = 0
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {
      errors += 1
    })
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (bytes) => {
      heard.push(bytes)
      for (const line of bytes.toString().split('\n').slice(0, -1)) socket.write(`re:${line}\n`)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const proxy = await openProxy({ target: { port } })
  t.teardown(async () => {
    await proxy.close()
    for (const socket of sockets) socket.destroy()
    server.close()
  })

  async function open() {
    const socket = dial({ port: proxy.port, host: '127.0.0.1', noDelay: true })
    let got = ''
    let closedBy: string | null = null
    let wasReset = false
    socket.on('data', (bytes) => {
      got += bytes
    })
    socket.on('error', (error) => {
      wasReset = (error as NodeJS.ErrnoException).code === 'ECONNRESET'
    })
    socket.on('close', () => {
      closedBy = wasReset ? 'reset' : 'end'
    })
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    return {
      send: (text: string) => socket.write(text),
      got: () => got,
      closedBy: () => closedBy,
      gets: (text: string, msMax = 60_000) => until(`the answer ${text}`, msMax, () => got === text),
      closes: () => until('the end of the connection', 60_000, () => closedBy !== null),
    }
  }
  return { proxy, open, heard: () => Buffer.concat(heard).toString(), sockets, errors: () => errors }
}

t.test('pass forwards both ways, counts, and closes with either end', async (t) => {
  const { proxy, open, sockets } = await openEcho(t)
  const client = await open()
  client.send('a\n')
  await client.gets('re:a\n')
  client.send('b\n')
  await client.gets('re:a\nre:b\n')
  t.match(proxy.counters, { connections: 1, requests: 2, cut: 0, bytesToServer: 4, bytesToClient: 10 })
  for (const socket of sockets) socket.end()
  await client.closes()
  t.equal(client.closedBy(), 'end')
  await until('the other end', 60_000, () => sockets.size === 0)
})

t.test('refuse ends existing connections and new ones at once', async (t) => {
  const { proxy, open } = await openEcho(t)
  const client = await open()
  client.send('a\n')
  await client.gets('re:a\n')
  proxy.mode({ kind: 'refuse' })
  await client.closes()
  t.equal(client.closedBy(), 'reset')
  const socket = dial({ port: proxy.port, host: '127.0.0.1' })
  const [error] = await once(socket, 'error')
  t.equal(error.code, 'ECONNRESET')
  proxy.mode({ kind: 'pass' })
  const later = await open()
  later.send('b\n')
  await later.gets('re:b\n')
})

t.test('a blackhole keeps every connection open and silent, and healing delivers what was sent', async (t) => {
  const { proxy, open, heard } = await openEcho(t)
  const before = await open()
  before.send('a\n')
  await before.gets('re:a\n')
  proxy.mode({ kind: 'blackhole' })
  const after = await open()
  before.send('b\n')
  after.send('c\n')
  await pause(150)
  t.equal(heard(), 'a\n')
  t.same([before.closedBy(), after.closedBy()], [null, null])
  proxy.mode({ kind: 'pass' })
  await before.gets('re:a\nre:b\n')
  await after.gets('re:c\n')
})

t.test('a blackhole of one direction lets the other through', async (t) => {
  const { proxy, open, heard } = await openEcho(t)
  const client = await open()
  proxy.mode({ kind: 'blackhole', direction: 'toClient' })
  client.send('a\n')
  await until('the request', 60_000, () => heard() === 'a\n')
  await pause(100)
  t.equal(client.got(), '')
  proxy.mode({ kind: 'blackhole', direction: 'toServer' })
  await client.gets('re:a\n')
  client.send('b\n')
  await pause(100)
  t.equal(heard(), 'a\n')
})

t.test('reset is an RST at both ends, and new connections work', async (t) => {
  const { proxy, open, errors, sockets } = await openEcho(t)
  const client = await open()
  client.send('a\n')
  await client.gets('re:a\n')
  proxy.reset()
  await client.closes()
  t.equal(client.closedBy(), 'reset')
  await until('the server to see it', 60_000, () => sockets.size === 0)
  t.equal(errors(), 1)
  t.equal(proxy.counters.cut, 1)
  const later = await open()
  later.send('b\n')
  await later.gets('re:b\n')
})

t.test('a delay comes once per direction, in order, and does not throttle', async (t) => {
  const { proxy, open } = await openEcho(t)
  const client = await open()
  proxy.mode({ kind: 'delay', ms: 500 })
  const began = performance.now()
  let expected = ''
  for (let line = 0; line < 100; line += 1) {
    client.send(`${line}\n`)
    expected += `re:${line}\n`
    await pause(2)
  }
  // A hundred times as long as one line would be more than it waits for.
  await client.gets(expected, 60_000)
  const tookMs = performance.now() - began
  t.ok(tookMs >= 1_150, `100 lines within 200 ms took ${tookMs} ms`)
})

t.test('trickle limits the rate and loses nothing', async (t) => {
  const { proxy, open, heard } = await openEcho(t)
  const client = await open()
  proxy.mode({ kind: 'trickle', bytesPerSecond: 2_000 })
  const began = performance.now()
  const line = 'x'.repeat(999)
  client.send(`${line}\n`)
  await until('all bytes', 60_000, () => heard().length === 1_000)
  t.ok(performance.now() - began >= 400)
  proxy.mode({ kind: 'pass' })
  t.equal(heard(), `${line}\n`)
})

t.test('cutAfter lets exactly so many bytes through', async (t) => {
  const toServer = await openEcho(t)
  const first = await toServer.open()
  toServer.proxy.mode({ kind: 'cutAfter', direction: 'toServer', bytes: 5 })
  first.send('0123456789\n')
  await first.closes()
  t.equal(toServer.heard(), '01234')

  const toClient = await openEcho(t)
  const second = await toClient.open()
  toClient.proxy.mode({ kind: 'cutAfter', direction: 'toClient', bytes: 5 })
  second.send('0123456789\n')
  await second.closes()
  t.equal(second.got(), 're:01')
  t.equal(toClient.heard(), '0123456789\n')
})

t.test('cutReply lets the request take effect and no byte of the reply, so many times', async (t) => {
  const { proxy, open, heard } = await openEcho(t)
  const clients = [await open(), await open(), await open()] as const
  for (const client of clients) {
    client.send('-\n')
    await client.gets('re:-\n')
  }
  proxy.mode({ kind: 'cutReply', times: 2 })
  for (const client of clients) {
    client.send('whole request\n')
    await until('an outcome', 60_000, () => client.closedBy() !== null || client.got().length > 5)
  }
  t.same(
    clients.map((client) => client.got()),
    ['re:-\n', 're:-\n', 're:-\nre:whole request\n'],
  )
  t.equal(heard(), '-\n'.repeat(3) + 'whole request\n'.repeat(3))
})

t.test('http answers a seeded share of requests with errors, before or after their effect', async (t) => {
  let served = 0
  const server = createHttpServer((request, response) => {
    request.resume().on('end', () => {
      served += 1
      response.end('fine')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy = await openProxy({ target: { port: (server.address() as { port: number }).port } })
  t.teardown(async () => {
    await proxy.close()
    server.closeAllConnections()
    server.close()
  })
  const post = async () => {
    const response = await fetch(`http://127.0.0.1:${proxy.port}/`, { method: 'POST', body: 'x'.repeat(200_000) })
    return `${response.status} ${await response.text()}`
  }
  const statuses = async (effect: boolean) => {
    proxy.mode({ kind: 'http', status: 503, share: 0.5, seed: 7, effect })
    served = 0
    const seen: string[] = []
    for (let request = 0; request < 20; request += 1) seen.push(await post())
    return seen
  }
  const before = await statuses(false)
  const failed = before.filter((answer) => answer === '503 injected').length
  t.equal(before.filter((answer) => answer === '200 fine').length, 20 - failed)
  t.ok(failed > 3 && failed < 17, `${failed} of 20`)
  t.equal(served, 20 - failed)
  t.same(await statuses(true), before, 'the seed decides which')
  t.equal(served, 20)
  t.equal(proxy.counters.failed, 2 * failed)
})
