// HTTP over TLS, by each driver: every form of a message has the outcome it has without, answers of any length arrive whole, and who
// speaks no TLS harms nobody.

import { mkdtempSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t, { type Test } from 'tap'
import type { Tls } from '../../src/http/port.ts'
import { sized } from '../helpers/depth.ts'
import { bodyOf, exchange, inParallel, pause, talk } from '../helpers/http.ts'
import { overDrivers } from '../helpers/http-drivers.ts'
import { authorityIn } from '../helpers/receiver.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'
import { quickCases } from './protocol-cases.ts'
import { NODE_OUTCOMES } from './protocol-node.ts'

t.teardown(cleanUp)

const folder = mkdtempSync(join(temporaryFolder(), 'tls-'))
const authority = authorityIn(folder)
const EACH = sized({ quick: 4, usual: 1, long: 1 })

function madeTls(): Tls {
  const { key, cert } = authority.leaf('DNS:localhost,IP:127.0.0.1')
  const tls = { certFile: join(folder, 'server.pem'), keyFile: join(folder, 'server.key') }
  writeFileSync(tls.certFile, cert)
  writeFileSync(tls.keyFile, key)
  return tls
}
const tls = madeTls()

/** A port that takes plain bytes and passes them on over TLS, as raw sockets of the tests need it. */
async function plainFront(t: Test, port: number): Promise<number> {
  const front = createServer({ allowHalfOpen: true }, (plain) => {
    const secure = connect({ port, host: '127.0.0.1', ca: authority.ca, servername: 'localhost' })
    plain.setNoDelay(true)
    secure.on('data', (bytes) => plain.write(bytes))
    plain.on('data', (bytes) => secure.write(bytes))
    for (const [one, other] of [
      [plain, secure],
      [secure, plain],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.end())
      one.on('end', () => other.end())
    }
  })
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void front.close())
  return (front.address() as AddressInfo).port
}

overDrivers(t, 'every form of a message has the outcome that it has without TLS', async (t, { driver, open }) => {
  const server = await open({ tls })
  t.teardown(server.close)
  let smuggled = 0
  server.route('GET', '/ok', () => ({ status: 200, body: '{}' }))
  server.route('POST', '/echo', (request) => ({ status: 200, body: request.body }), { bodyBytesMax: 64 })
  server.route('GET', '/thing/:id', () => ({ status: 200 }))
  server.route('PUT', '/thing/:id', () => ({ status: 200 }))
  server.route('PATCH', '/thing/:id', () => ({ status: 200 }))
  server.route('DELETE', '/thing/:id', () => ({ status: 200 }))
  server.route('GET', '/files/*', () => ({ status: 200 }))
  server.route('POST', '/smuggled', () => {
    smuggled++
    return { status: 200 }
  })
  const port = await plainFront(t, server.port)
  const cases = quickCases.filter((_, i) => i % EACH === 0)
  await inParallel(cases, 8, async ({ name, send, expect }) => {
    const wanted = (driver === 'node' ? NODE_OUTCOMES.get(name) : undefined) ?? expect
    const got = (await exchange(port, wanted, ...send)).outcome()
    t.ok(wanted.split('|').includes(got), `${name}: ${wanted}`, { got })
  })
  t.equal(smuggled, 0)
  t.same(server.errors, [])
})

overDrivers(t, 'long answers, parts and streams arrive whole and at once', async (t, { open }) => {
  const server = await open({ tls })
  t.teardown(server.close)
  const long = 'x'.repeat(3_000_000)
  const ends: (() => void)[] = []
  server.route('GET', '/long', () => ({ status: 200, body: long }))
  server.route('GET', '/parts', () => {
    async function* parts() {
      for (let i = 0; i < 300; i++) yield long.slice(0, 10_000)
    }
    return { status: 200, body: 'from here:', parts: parts() }
  })
  server.route('GET', '/stream', () => ({
    status: 200,
    stream(stream) {
      stream.write('first')
      ends.push(() => stream.write('second') && stream.end())
    },
  }))
  const port = await plainFront(t, server.port)
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
  const whole = talk(port, get('/long'))
  for (let i = 0; i < 3_000 && bodyOf(whole.text()).length < long.length; i++) await pause(10)
  t.equal(bodyOf(whole.text()).length, long.length)
  const inParts = talk(port, get('/parts'))
  for (let i = 0; i < 3_000 && !inParts.text().endsWith('\r\n0\r\n\r\n'); i++) await pause(10)
  t.equal(inParts.text().split('x').length - 1, long.length)
  const streamed = talk(port, get('/stream'))
  for (let i = 0; i < 3_000 && !streamed.text().includes('first'); i++) await pause(10)
  t.match(streamed.text(), 'first', 'what is written arrives before the end')
  t.notMatch(streamed.text(), 'second')
  for (const end of ends) end()
  for (let i = 0; i < 3_000 && !streamed.text().endsWith('\r\n0\r\n\r\n'); i++) await pause(10)
  t.match(streamed.text(), 'second')
  for (const { socket } of [whole, inParts, streamed]) socket.destroy()
  t.same(server.errors, [])
})

overDrivers(t, 'who speaks no TLS is left, and others are served', async (t, { open }) => {
  const server = await open({ tls })
  t.teardown(server.close)
  server.route('GET', '/', () => ({ status: 200 }))
  const plain = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
  const spoken = talk(server.port, plain)
  t.notMatch(await spoken.until('closed'), '200')
  spoken.socket.destroy()
  const silent = talk(server.port)
  t.equal((await exchange(await plainFront(t, server.port), '200', plain)).outcome(), '200')
  silent.socket.destroy()
  t.same(server.observed, [{ pattern: '/', method: 'GET', status: 200 }])
})
