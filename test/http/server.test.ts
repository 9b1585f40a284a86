import t from 'tap'
import { addressOfBytes } from '../../src/http/address.ts'
import { PortBusy } from '../../src/http/errors.ts'
import { exchange, pause, type TestServer, talk, talkFrom } from '../helpers/http.ts'
import { overDrivers } from '../helpers/http-drivers.ts'

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const SLOW = 'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n'

/** Resolves when so many requests are under way. */
async function begun({ inFlight }: TestServer, count: number): Promise<void> {
  for (let i = 0; i < 1_000 && inFlight() < count; i++) await pause(10)
}

overDrivers(t, 'a port belongs to one server', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  const second = open({ port: server.port })
  const error = await second.then(
    () => null,
    (reason: unknown) => reason,
  )
  t.ok(error instanceof PortBusy && error.host === '127.0.0.1' && error.port === server.port)
  t.match(String(error), `127.0.0.1:${server.port}`)
})

overDrivers(t, 'a stopping server finishes what it began and takes nothing new', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  server.route('GET', '/slow', async () => {
    await released
    return { status: 200 }
  })
  server.route('GET', '/', () => ({ status: 200 }))
  const idle = talk(server.port, GET)
  await idle.until('200')
  const slow = talk(server.port, SLOW)
  await begun(server, 1)
  server.stopListening()
  const drained = server.drain(60_000)
  idle.socket.write(GET)
  t.equal(await idle.until('200 200 closed'), '200 200 closed', 'an idle connection ends with its next answer')
  release()
  await drained
  t.equal(await slow.until('200 closed'), '200 closed')
  t.equal(server.inFlight(), 0)
  t.equal((await exchange(server.port, 'closed', GET)).outcome(), 'closed', 'no new connection')
})

overDrivers(t, 'draining ends at its deadline and closing drops the rest', async (t, { open }) => {
  const server = await open()
  server.route('GET', '/slow', () => new Promise<never>(() => {}))
  const slow = talk(server.port, SLOW)
  await begun(server, 1)
  server.stopListening()
  const startedMs = performance.now()
  await server.drain(100)
  t.ok(performance.now() - startedMs < 10_000)
  t.equal(server.inFlight(), 1)
  server.close()
  t.equal(await slow.until('closed'), 'closed')
  t.equal(server.inFlight(), 0)
})

overDrivers(t, 'more requests at once than allowed are refused, and served when there is room', async (t, { open }) => {
  const server = await open({ inFlightMax: 2 })
  t.teardown(server.close)
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  server.route('GET', '/slow', async () => {
    await released
    return { status: 200 }
  })
  const served = [talk(server.port, SLOW), talk(server.port, SLOW)]
  await begun(server, 2)
  const refused = await exchange(server.port, '503 closed', SLOW)
  t.equal(refused.outcome(), '503 closed')
  t.match(refused.text(), /Retry-After: 1/)
  t.equal(server.observed.at(-1)?.pattern, '(overload)')
  release()
  for (const conversation of served) t.equal(await conversation.until('200'), '200')
  t.equal((await exchange(server.port, '200', SLOW)).outcome(), '200')
  for (const conversation of served) conversation.socket.destroy()
})

overDrivers(
  t,
  'one host cannot keep the others out, however many requests it leaves half sent',
  async (t, { open }) => {
    const hostOf = (address: string) => (address === '127.0.0.9' ? null : address)
    const server = await open({ perHost: { max: 3, hostOf } })
    t.teardown(server.close)
    server.route('GET', '/', () => ({ status: 200 }))
    server.route('POST', '/', () => ({ status: 200 }))
    const half = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab'
    const from = (address: string, text: string) => talkFrom(address, server.port, text)
    const halves = Array.from({ length: 3 }, () => from('127.0.0.2', half))
    await begun(server, 3)
    const refused = from('127.0.0.2', GET)
    t.equal(await refused.until('503 closed'), '503 closed')
    t.match(refused.text(), /Retry-After: 1/)
    for (const other of ['127.0.0.1', '127.0.0.9']) t.equal(await from(other, GET).until('200'), '200', other)
    const exempt = Array.from({ length: 5 }, () => from('127.0.0.9', half))
    await begun(server, 8)
    t.equal(server.inFlight(), 8)
    halves[0]?.socket.destroy()
    for (let i = 0; i < 1_000 && server.inFlight() > 7; i++) await pause(10)
    const again = from('127.0.0.2', GET)
    t.equal(await again.until('200'), '200', 'a place that is given back')
    for (const { socket } of [...halves, ...exempt, again, refused]) socket.destroy()
  },
)

overDrivers(t, 'no answer says which server made it', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  server.route('GET', '/', () => ({ status: 200, body: '{}' }))
  const { text } = await exchange(server.port, '200', GET)
  t.notMatch(text(), /uwebsockets|server:/i)
})

overDrivers(t, 'headers above the limit are refused', async (t, { open }) => {
  const server = await open({ headersBytesMax: 100 })
  t.teardown(server.close)
  server.route('GET', '/', () => ({ status: 200 }))
  const padded = (length: number) => GET.replace('\r\n\r\n', `\r\nx: ${'y'.repeat(length)}\r\n\r\n`)
  t.equal((await exchange(server.port, '200', padded(94))).outcome(), '200')
  t.equal((await exchange(server.port, '431 closed', padded(95))).outcome(), '431 closed')
})

t.test('addresses have one text each', (t) => {
  const v6 = (...groups: number[]) =>
    addressOfBytes(Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 255])))
  t.equal(addressOfBytes(Uint8Array.from([192, 0, 2, 255])), '192.0.2.255')
  t.equal(v6(0, 0, 0, 0, 0, 0xffff, 0xc000, 0x02ff), '192.0.2.255')
  t.equal(v6(0, 0, 0, 0, 0, 0, 0, 1), '::1')
  t.equal(v6(0, 0, 0, 0, 0, 0, 0, 0), '::')
  t.equal(v6(0x2001, 0xdb8, 0, 0, 1, 0, 0, 1), '2001:db8::1:0:0:1')
  t.equal(v6(0x2001, 0xdb8, 0, 1, 1, 1, 1, 1), '2001:db8:0:1:1:1:1:1')
  t.equal(v6(0xfe80, 0, 0, 0, 0, 0, 0, 0), 'fe80::')
  t.equal(v6(0, 0, 1, 0, 0, 0, 1, 0xabcd), '0:0:1::1:abcd')
  t.equal(addressOfBytes(new Uint8Array(0)), '')
  t.end()
})
