// Requests that a thread passes on are answered as if it had answered them itself: byte for byte, whatever the form of the answer, and
// with a client that leaves or does not read.

import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { HttpStream } from '../../src/http/stream.ts'
import { inParallel, type openTestServer, pause, type TestServer, talk } from '../helpers/http.ts'
import { overDrivers } from '../helpers/http-drivers.ts'
import { until } from '../helpers/processes.ts'

const eventually = (holds: () => boolean) => until('what the test waits for', 30_000, holds)

const BODY_BYTES_MAX = 100_000
const STREAM_CHUNK = 'x'.repeat(20_000)

const request = (line: string, headers: readonly string[] = [], body = ''): string =>
  `${[`${line} HTTP/1.1`, 'Host: a', ...headers].join('\r\n')}\r\n\r\n${body}`

const post = (path: string, body: string, headers: readonly string[] = []): string =>
  request(`POST ${path}`, [`Content-Length: ${body.length}`, ...headers], body)

function chunkedPost(path: string, chunks: readonly string[]): string[] {
  const pieces = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  return [request(`POST ${path}`, ['Transfer-Encoding: chunked']), ...pieces, '0\r\n\r\n']
}

interface Opened {
  readonly server: TestServer
  readonly seen: { readonly aborts: string[]; made: number; readonly streams: HttpStream[] }
}

async function openRoutes(t: Test, open: typeof openTestServer): Promise<Opened> {
  const seen: Opened['seen'] = { aborts: [], made: 0, streams: [] }
  const server = await open({ responseHeaders: () => [['X-Common', 'yes']] })
  t.teardown(server.close)
  server.route('GET', '/json', () => ({ status: 200, body: '{"a":"ü"}' }))
  server.route('GET', '/late', async () => {
    await sleep(5)
    return { status: 201, body: '{}', headers: [['X-Late', 'yes']] }
  })
  server.route('GET', '/bytes', () => ({
    status: 200,
    body: Buffer.from('xxbytesxx').subarray(2, 7),
    contentType: 'a/b',
  }))
  server.route('GET', '/none', () => ({ status: 204 }))
  server.route('GET', '/empty', () => ({ status: 200, body: '' }))
  server.route('GET', '/unchanged', () => ({ status: 304, headers: [['ETag', '"1"']] }))
  server.route('GET', '/fails', () => {
    throw new Error('failed')
  })
  server.route('GET', '/large', () => ({ status: 200, body: 'y'.repeat(3_000_000), contentType: 'text/plain' }))
  server.route('GET', '/parts', () => ({ status: 200, contentType: 'text/plain', body: 'head ', parts: parts(5) }))
  server.route('GET', '/broken-parts', () => ({
    status: 200,
    contentType: 'text/plain',
    body: 'head ',
    parts: broken(),
  }))
  server.route('GET', '/many-parts', () => ({ status: 200, contentType: 'text/plain', body: 'h', parts: parts(3_000) }))
  server.route('GET', '/stream', () => ({
    status: 200,
    contentType: 'text/event-stream',
    stream: (stream) => {
      seen.streams.push(stream)
      stream.whenClosed(() => seen.aborts.push('stream'))
    },
  }))
  server.route('GET', '/never', async (x) => {
    await new Promise<void>((resolve) => {
      x.whenAborted(resolve)
    })
    seen.aborts.push('never')
    return { status: 200 }
  })
  const told = (bytes: Uint8Array) => `${bytes.length} ${Buffer.from(bytes).toString('latin1').slice(-5)}`
  server.route('POST', '/echo', async (x) => ({ status: 200, body: told(x.body) }), { bodyBytesMax: BODY_BYTES_MAX })
  server.route('PUT', '/echo', (x) => ({ status: 200, body: x.query }))
  server.route('POST', '/before', () => ({ status: 200 }), { before: () => ({ status: 401, body: '{"no":1}' }) })
  server.route('GET', '/headers', (x) => ({ status: 200, body: `${x.header('x-told')} ${x.remoteAddress()}` }), {
    headers: ['x-told'],
  })

  async function* parts(count: number): AsyncGenerator<string, void> {
    for (let n = 0; n < count; n++) {
      seen.made = n + 1
      yield count > 100 ? STREAM_CHUNK : `part ${n} `
    }
  }
  async function* broken(): AsyncGenerator<string, void> {
    yield 'one '
    throw new Error('no more')
  }
  return { server, seen }
}

const CASES: Readonly<Record<string, readonly [send: readonly string[], outcome: string]>> = {
  'an answer at once': [[request('GET /json')], '200'],
  'an answer later': [[request('GET /late')], '201'],
  'an answer of bytes': [[request('GET /bytes')], '200'],
  'no content': [[request('GET /none')], '204'],
  'an empty body': [[request('GET /empty')], '200'],
  'not modified': [[request('GET /unchanged')], '304'],
  'a handler that fails': [[request('GET /fails')], '500'],
  'a large answer': [[request('GET /large')], '200'],
  'HEAD of an answer at once': [[request('HEAD /json')], '200'],
  'HEAD of what comes late': [[request('HEAD /late')], '201'],
  'HEAD of bytes': [[request('HEAD /bytes')], '200'],
  'HEAD of nothing': [[request('HEAD /none')], '204'],
  'HEAD of a large answer': [[request('HEAD /large')], '200'],
  'HEAD of parts': [[request('HEAD /parts')], '200'],
  'HEAD of a stream': [[request('HEAD /stream')], '200'],
  'HEAD with Connection: close': [[request('HEAD /json', ['Connection: close'])], '200 closed'],
  parts: [[request('GET /parts')], '200'],
  'no such path': [[request('GET /nowhere')], '404'],
  'no such path with a body': [[post('/nowhere', 'abc')], '404'],
  'another method': [[request('DELETE /json')], '405'],
  'another method with a body': [[post('/json', 'abc')], '405'],
  'an unknown method': [[request('BREW /json')], 'closed'],
  'a body': [[post('/echo', 'hello')], '200'],
  'an empty body of a POST': [[post('/echo', '')], '200'],
  'a body in pieces': [[post('/echo', 'hello').slice(0, -3), 'l', 'lo'], '200'],
  'a body at its limit': [[post('/echo', 'z'.repeat(BODY_BYTES_MAX))], '200'],
  'a body above its limit': [[post('/echo', 'z'.repeat(BODY_BYTES_MAX + 1))], '413 closed'],
  'a chunked body': [chunkedPost('/echo', ['he', 'llo']), '200 closed'],
  'a chunked body at its limit': [chunkedPost('/echo', ['z'.repeat(BODY_BYTES_MAX - 1), 'a']), '200 closed'],
  'a chunked body above its limit': [chunkedPost('/echo', ['z'.repeat(BODY_BYTES_MAX), 'a']), '413 closed'],
  'a query': [[request('PUT /echo?a=1&b=%20&c', ['Content-Length: 1'], 'x')], '200'],
  'a refusal ahead of the body': [[post('/before', 'abc')], '401'],
  'headers and an address': [[request('GET /headers', ['X-Told: told'])], '200'],
  'keep-alive': [[request('GET /json'), request('GET /late'), post('/echo', 'again')], '200 201 200'],
  'a request ahead of the answer to the one before': [[request('GET /late') + request('GET /json')], 'closed'],
  'Connection: close': [[request('GET /json', ['Connection: close'])], '200 closed'],
}

/** Node.js tells us of what it cannot read, and lets a request wait for the answer to the one before. */
const OF_NODE: Readonly<Record<string, string>> = {
  'an unknown method': '400 closed',
  'a request ahead of the answer to the one before': '201 200',
}

interface Answered {
  readonly outcome: string
  /** Without what differs from one answer to the next. */
  readonly text: string
}

/** Where each piece has an answer of its own, it is a request, and the next one waits for that answer. */
async function ask(port: number, expected: string, send: readonly string[]): Promise<Answered> {
  const answers = expected.split(' ').filter((one) => one !== 'closed')
  const isInTurn = answers.length === send.length
  const conversation = talk(port, ...(isInTurn ? send.slice(0, 1) : send))
  for (let i = 1; isInTurn && i < send.length; i++) {
    await conversation.until(answers.slice(0, i).join(' '))
    conversation.socket.write(send[i] as string, 'latin1')
  }
  await conversation.until(expected)
  let bytes = -1
  while (bytes !== conversation.text().length) {
    bytes = conversation.text().length
    await pause(60)
  }
  const answered = {
    outcome: conversation.outcome(),
    text: conversation.text().replace(/\r\nDate: [^\r]+/gi, ''),
  }
  conversation.socket.destroy()
  return answered
}

overDrivers(
  t,
  'what is passed on is answered byte for byte as it is without',
  async (t, { driver, open, openForwarded }) => {
    const [own, passedOn] = await Promise.all([openRoutes(t, open), openRoutes(t, openForwarded)])
    await inParallel(Object.entries(CASES), 8, async ([name, [send, ofNative]]) => {
      const expected = (driver === 'node' ? OF_NODE[name] : undefined) ?? ofNative
      const [direct, forwarded] = await Promise.all([
        ask(own.server.port, expected, send),
        ask(passedOn.server.port, expected, send),
      ])
      t.equal(direct.outcome, expected, name)
      const isSame = direct.text === forwarded.text && direct.outcome === forwarded.outcome
      t.ok(isSame, `${name}: the same`, { direct: direct.text.slice(-400), forwarded: forwarded.text.slice(-400) })
    })
    const told = ({ server }: Opened) => server.observed.map((one) => JSON.stringify(one)).sort()
    t.same(told(passedOn), told(own), 'and observed alike')
    t.same(passedOn.server.errors, own.server.errors)
    t.equal(passedOn.server.inFlight(), 0)
  },
)

overDrivers(t, 'a client that leaves is told to whoever answers it', async (t, { openForwarded }) => {
  const { server, seen } = await openRoutes(t, openForwarded)
  for (const path of ['/never', '/stream', '/many-parts']) {
    const { socket } = talk(server.port, request(`GET ${path}`))
    socket.pause()
    await eventually(() => (path === '/stream' ? seen.streams.length > 0 : server.inFlight() > 0))
    socket.destroy()
    await eventually(() => server.inFlight() === 0)
  }
  await eventually(() => seen.aborts.length === 2)
  t.same(seen.aborts.sort(), ['never', 'stream'])
  t.equal(seen.streams[0]?.write('more'), false)
  const { socket } = talk(server.port, post('/echo', 'hello').slice(0, -2))
  await eventually(() => server.inFlight() === 1)
  socket.destroy()
  await eventually(() => server.inFlight() === 0)
  t.equal(server.observed.at(-1)?.status, 499)
})

overDrivers(t, 'parts are made as fast as the client takes them', async (t, { openForwarded }) => {
  const { server, seen } = await openRoutes(t, openForwarded)
  const { socket } = talk(server.port, request('GET /many-parts'))
  socket.pause()
  await eventually(() => seen.made > 0)
  let before = 0
  while (before !== seen.made) {
    before = seen.made
    await pause(150)
  }
  t.ok(seen.made < 1_000, `${seen.made} of 3000 parts were made for a client that takes none`)
  let bytes = 0
  socket.removeAllListeners('data')
  socket.on('data', (chunk) => (bytes += chunk.length))
  socket.resume()
  await eventually(() => bytes > 3_000 * STREAM_CHUNK.length)
  t.equal(seen.made, 3_000)
  socket.destroy()
  await eventually(() => server.inFlight() === 0)
})

overDrivers(t, 'an answer that breaks off does not end as if it were whole', async (t, { openForwarded }) => {
  const { server } = await openRoutes(t, openForwarded)
  const broken = talk(server.port, request('GET /broken-parts'))
  await eventually(broken.closed)
  t.notOk(broken.text().endsWith('0\r\n\r\n'))
  t.equal(server.errors.length, 1)
})

overDrivers(
  t,
  'a stream reaches its client at once, and one that does not keep up is cut off',
  async (t, { openForwarded }) => {
    const { server, seen } = await openRoutes(t, openForwarded)
    const reader = talk(server.port, request('GET /stream'))
    await eventually(() => seen.streams.length === 1)
    for (const text of ['one', 'two', 'three']) {
      t.ok(seen.streams[0]?.write(text))
      await eventually(() => reader.text().includes(text))
    }
    seen.streams[0]?.end()
    t.equal(await reader.until('200'), '200')
    t.ok(reader.text().endsWith('0\r\n\r\n'), 'it ends as a whole')
    reader.socket.destroy()

    const idle = talk(server.port, request('GET /stream'))
    idle.socket.pause()
    await eventually(() => seen.streams.length === 2)
    let written = 0
    while (written < 5_000 && seen.streams[1]?.write(STREAM_CHUNK) === true) {
      written++
      await pause(0)
    }
    t.ok(written < 2_000, `${written} of 5000 pieces were taken for a client that reads nothing`)
    await eventually(() => seen.aborts.length > 0)
    idle.socket.destroy()
  },
)
