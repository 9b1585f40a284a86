// Attempts at receivers of every bad kind: each ends in time, under the right name, and takes nothing from the next one.

import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { openAddressGuard } from '../../src/dispatcher/guard.ts'
import { openPoster } from '../../src/dispatcher/post.ts'
import { parseCidr } from '../../src/domain/ip.ts'
import { type Cancel, openCancel } from '../../src/lib/cancel.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { must } from '../../src/lib/must.ts'
import { answer, type Behave, connectionsRest, makeAuthority, openReceiver } from '../helpers/receiver.ts'

const authority = makeAuthority(t)
const leaf = authority.leaf('DNS:hook.example')
const DEADLINE_MS = 4_000
/** Where the deadline is not what is tested. */
const PATIENT_MS = 60_000
const BODY = Buffer.from('{"a":1}')

function open(t: Test, deadlineMs = PATIENT_MS, extraCa = authority.ca) {
  const guard = openAddressGuard([must(parseCidr('127.0.0.0/8'))], async (host) =>
    host === 'gone.example' ? [] : ['127.0.0.1'],
  )
  const poster = openPoster({ guard, clock: systemClock, extraCa, deadlineMs })
  t.teardown(() => poster.close())
  return async (port: number, host = 'hook.example', cancel: Cancel = openCancel()) => {
    return poster.post(new URL(`https://${host}:${port}/x?y=1`), { 'X-One': '1' }, BODY, cancel)
  }
}

/** A server below TLS. */
async function rawServer(t: Test, serve: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    serve(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

t.test('the status line decides, and only a 2xx is a success', async (t) => {
  const post = open(t)
  const receiver = await openReceiver(t, leaf)
  for (const [status, error] of [
    [200, null],
    [204, null],
    [301, 'http_status'],
    [400, 'http_status'],
    [410, 'http_status'],
    [503, 'http_status'],
  ] as const) {
    receiver.behave = (_, response) => response.writeHead(status, { Location: 'https://169.254.169.254/' }).end('x')
    t.match(await post(receiver.port), { statusCode: status, error }, String(status))
  }
  t.equal(receiver.hits.length, 6, 'no redirect was followed')
  t.match(receiver.hits[0], { body: '{"a":1}', headers: { 'x-one': '1', 'content-length': '7' } })
})

t.test('what hangs or drips ends with the total deadline; a slow or endless answer after a 2xx is cut', async (t) => {
  const post = open(t, DEADLINE_MS)
  const patient = open(t)
  const drip: Behave = (_, response) => {
    const timer = setInterval(() => response.writeProcessing(), 100)
    response.on('close', () => clearInterval(timer))
  }
  const dribble: Behave = (_, response) => {
    response.writeHead(200)
    const timer = setInterval(() => response.write('x'), 100)
    response.on('close', () => clearInterval(timer))
  }
  const flood: Behave = (_, response) => void response.writeHead(200).end(Buffer.alloc(10_000_000))
  const cases = [
    ['hanging', () => {}, { statusCode: null, error: 'timeout' }],
    ['102 dripping', drip, { statusCode: null, error: 'timeout' }],
    ['body dribbling', dribble, { statusCode: 200, error: null }],
    ['10 MB', flood, { statusCode: 200, error: null }],
  ] as const
  const each = cases.map(async ([name, behave, expected]) => {
    const receiver = await openReceiver(t, leaf)
    receiver.behave = behave
    t.match(await post(receiver.port), expected, name)
    receiver.behave = answer(200)
    t.match(await patient(receiver.port), { error: null }, `after ${name}`)
  })
  const silent = await rawServer(t, () => {})
  t.match(await post(silent), { statusCode: null, error: 'timeout' }, 'a server that never speaks TLS')
  await Promise.all(each)
})

t.test('each failure has its own name', async (t) => {
  const post = open(t)
  const strict = open(t, PATIENT_MS, '')
  const receiver = await openReceiver(t, leaf)
  receiver.behave = (request) => request.socket.destroy()
  t.match((await post(receiver.port))?.error, /^(?:closed_before_response|connect_reset)$/)
  t.equal((await strict(receiver.port))?.error, 'tls_untrusted', 'a certificate of nobody we know')
  t.equal((await post(receiver.port, 'other.example'))?.error, 'tls_name_mismatch')
  t.equal((await post(receiver.port, 'gone.example'))?.error, 'dns')
  t.equal((await post(1))?.error, 'connect_refused')
  const garbage = await rawServer(t, (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
  t.equal((await post(garbage))?.error, 'tls_handshake')
  const cutting = await rawServer(t, (socket) => socket.once('data', () => socket.resetAndDestroy()))
  t.equal((await post(cutting))?.error, 'tls_handshake')
})

t.test('a connection the receiver had closed before is no failure, and one that is cut each time is', async (t) => {
  const post = open(t)
  const receiver = await openReceiver(t, leaf)
  t.equal((await post(receiver.port))?.error, null)
  await connectionsRest()
  let cuts = 1
  receiver.behave = (request, response, body) => {
    if (cuts-- > 0) request.socket.destroy()
    else answer(200)(request, response, body)
  }
  t.match(await post(receiver.port), { statusCode: 200, error: null })
  await connectionsRest()
  cuts = 10
  t.match(await post(receiver.port), { statusCode: null })
  t.equal(receiver.hits.length, 5, 'one more within the attempt, not more')
})

t.test('an attempt that nobody wants any more ends at once', async (t) => {
  const post = open(t)
  const receiver = await openReceiver(t, leaf)
  receiver.behave = () => {}
  const leaving = openCancel()
  setTimeout(leaving.cancel, 200)
  t.equal(await post(receiver.port, 'hook.example', leaving), null)
})
