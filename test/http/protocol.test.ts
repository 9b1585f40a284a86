import t, { type Test } from 'tap'
import type { Driver } from '../../src/http/server.ts'
import { sized } from '../helpers/depth.ts'
import {
  DRIVERS,
  exchange,
  inParallel,
  openForwardedServer,
  openTestServer,
  pause,
  type Talk,
  type TestServer,
  talk,
} from '../helpers/http.ts'
import { type ProtocolCase, quickCases, slowCases } from './protocol-cases.ts'
import { NODE_OUTCOMES } from './protocol-node.ts'

const VALID = 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello'
const RESETS = sized({ quick: 40, usual: 100, long: 200 })
/** The server's own idle time is about 12 s. */
const SILENCE_MS = 60_000
/** Or only that nothing was answered until all else was. */
const WAITS_FOR_END = sized({ quick: false, usual: true, long: true })

/** Who answers: the thread that has the socket, or another one. */
const SERVERS = { 'its own': openTestServer, 'passed on': openForwardedServer }

async function openEcho(
  open: typeof openTestServer,
  driver: Driver,
): Promise<{ server: TestServer; smuggled: () => number }> {
  let smuggled = 0
  const server = await open({ driver })
  server.route('GET', '/ok', () => ({ status: 200, body: '{}' }))
  server.route('POST', '/echo', (request) => ({ status: 200, body: request.body }), { bodyBytesMax: 64 })
  server.route('GET', '/thing/:id', (request) => ({ status: 200, body: request.params.id ?? '' }))
  server.route('PUT', '/thing/:id', () => ({ status: 200 }))
  server.route('PATCH', '/thing/:id', () => ({ status: 200 }))
  server.route('DELETE', '/thing/:id', () => ({ status: 200 }))
  server.route('GET', '/files/*', (request) => ({ status: 200, body: request.params['*'] ?? '' }))
  server.route('POST', '/smuggled', () => {
    smuggled++
    return { status: 200 }
  })
  return { server, smuggled: () => smuggled }
}

function eachServer(
  title: string,
  check: (t: Test, open: typeof openTestServer, driver: Driver) => Promise<void>,
): void {
  for (const driver of DRIVERS)
    for (const [who, open] of Object.entries(SERVERS))
      t.test(`${title}: ${driver}, ${who}`, (t) => check(t, open, driver))
}

eachServer('every form of a message has its one outcome, and the server goes on', async (t, open, driver) => {
  const { server, smuggled } = await openEcho(open, driver)
  t.teardown(server.close)
  const names = new Set([...quickCases, ...slowCases].map(({ name }) => name))
  t.equal(names.size, quickCases.length + slowCases.length, 'names are distinct')
  t.ok(names.size >= 120, `${names.size} cases`)

  let finish = () => {}
  const othersDone = new Promise<void>((resolve) => {
    finish = resolve
  })
  const soFar = async ({ outcome }: Talk) => {
    await othersDone
    return outcome()
  }
  const wantedOf = ({ name, expect, expectLater }: ProtocolCase): string => {
    const ofNode = driver === 'node' ? NODE_OUTCOMES.get(name) : undefined
    if (ofNode !== undefined) return ofNode
    return driver === 'uws' && open !== openTestServer ? (expectLater ?? expect) : expect
  }
  const slow = slowCases.map(async (one) => {
    const { name, send } = one
    const expect = wantedOf(one)
    const conversation = talk(server.port, ...send)
    const got = WAITS_FOR_END ? await conversation.until(expect, SILENCE_MS) : await soFar(conversation)
    conversation.socket.destroy()
    const wanted = expect.split('|')
    const isRight = WAITS_FOR_END ? wanted.includes(got) : wanted.some((one) => one.startsWith(got))
    t.ok(isRight, `${name}: ${expect}`, { got })
  })
  await inParallel(quickCases, 8, async (one) => {
    const { name, send } = one
    const expect = wantedOf(one)
    const { outcome } = await exchange(server.port, expect, ...send)
    const got = outcome()
    t.ok(expect.split('|').includes(got), `${name}: ${expect}`, { got })
    t.equal(smuggled(), 0, `${name}: nothing smuggled`)
    const after = await exchange(server.port, '200', VALID)
    t.ok(after.text().endsWith('hello'), `${name}: a valid request is served`)
  })
  finish()
  await Promise.all(slow)
  t.equal(smuggled(), 0)
  for (let i = 0; i < 1_000 && server.inFlight() > 0; i++) await pause(20)
  t.equal(server.inFlight(), 0)
  t.same(server.errors, [])
  t.ok((await exchange(server.port, '200', VALID)).text().endsWith('hello'))
})

eachServer('a request cut in two anywhere is one request', async (t, open, driver) => {
  const { server } = await openEcho(open, driver)
  t.teardown(server.close)
  const step = sized({ quick: 3, usual: 1, long: 1 })
  const offsets = Array.from({ length: VALID.length - 1 }, (_, i) => i + 1).filter((offset) => offset % step === 0)
  await inParallel(offsets, 16, async (offset) => {
    const { text, outcome } = await exchange(server.port, '200', VALID.slice(0, offset), VALID.slice(offset))
    t.ok(outcome() === '200' && text().endsWith('hello'), `cut at ${offset}`)
  })
  t.equal(server.observed.length, offsets.length)
})

eachServer('a client that resets in the middle of a body leaves nothing behind', async (t, open, driver) => {
  const { server } = await openEcho(open, driver)
  t.teardown(server.close)
  let connected = 0
  await inParallel(Array.from({ length: RESETS }), 20, async () => {
    const { socket } = talk(server.port, VALID.slice(0, -2))
    await new Promise((resolve) => socket.once('connect', resolve))
    connected++
    // What the server has not read yet a reset takes back.
    for (let i = 0; i < 1_000 && server.inFlight() + server.observed.length < connected; i++) await pause(5)
    socket.resetAndDestroy()
  })
  for (let i = 0; i < 1_000 && server.observed.length < RESETS; i++) await pause(20)
  t.equal(server.observed.filter(({ status }) => status === 499).length, RESETS)
  t.equal(server.inFlight(), 0)
  t.equal((await exchange(server.port, '200', VALID)).outcome(), '200')
})
