import t from 'tap'
import type { HttpResponse } from '../../src/http/message.ts'
import { openConnections } from '../helpers/connections.ts'
import { bodyOf, exchange, pause, talk } from '../helpers/http.ts'
import { overDrivers } from '../helpers/http-drivers.ts'

const get = (path: string, ...headers: string[]) =>
  `GET ${path} HTTP/1.1\r\n${['Host: a', ...headers].join('\r\n')}\r\n\r\n`
const post = (path: string, body: string, ...headers: string[]) =>
  `POST ${path} HTTP/1.1\r\n${['Host: a', `Content-Length: ${body.length}`, ...headers].join('\r\n')}\r\n\r\n${body}`

overDrivers(t, 'a handler sees the request as it was sent', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  server.route(
    'POST',
    '/v1/:kind/things/:id',
    (request) => {
      const { method, path, query, params } = request
      const address = request.remoteAddress()
      const body = Buffer.from(request.body).toString()
      const kept = [
        request.header('x-one'),
        request.header('cookie'),
        request.header('x-two'),
        request.header('x-none'),
      ]
      return { status: 200, body: JSON.stringify({ method, path, query, params, address, body, kept }) }
    },
    { headers: ['X-One', 'cookie', 'x-none'] },
  )
  server.route('GET', '/all', (request) => ({ status: 200, body: JSON.stringify(request.headers()) }), {
    headers: 'all',
  })
  const { text } = await exchange(
    server.port,
    '200',
    post('/v1/a%20b/things/c?d=%2f&e', 'hello', 'X-One: 1', 'x-two: 2', 'X-ONE: 3', 'Cookie: a=1', 'Cookie: b=2'),
  )
  t.same(JSON.parse(bodyOf(text())), {
    method: 'POST',
    path: '/v1/a%20b/things/c',
    query: 'd=%2f&e',
    params: { kind: 'a%20b', id: 'c' },
    address: '127.0.0.1',
    body: 'hello',
    kept: ['1, 3', 'a=1; b=2', '', ''],
  })
  const all = await exchange(server.port, '200', get('/all', 'X-A: 1', 'x-a: 2'))
  t.same(JSON.parse(bodyOf(all.text())), [
    ['host', 'a'],
    ['x-a', '1'],
    ['x-a', '2'],
  ])
})

overDrivers(t, 'a body survives the callback it came in, in one piece or many', async (t, { open, driver }) => {
  const server = await open()
  t.teardown(server.close)
  server.route(
    'POST',
    '/later',
    async (request) => {
      await pause(20)
      return { status: 200, body: request.body }
    },
    { bodyBytesMax: 300_000 },
  )
  const small = 'x'.repeat(999)
  t.equal(bodyOf((await exchange(server.port, '200', post('/later', small))).text()), small)
  const large = Array.from({ length: 30_000 }, (_, i) => `${i}`.padStart(8)).join('')
  const conversation = talk(server.port, post('/later', large))
  for (let i = 0; i < 3_000 && bodyOf(conversation.text()).length < large.length; i++) await pause(10)
  conversation.socket.destroy()
  t.ok(bodyOf(conversation.text()) === large, 'the large body came back')
  const borrowed = await open()
  t.teardown(borrowed.close)
  let lent: Uint8Array | null = null
  const parse = (body: Uint8Array): string => {
    lent = body
    return Buffer.from(body).toString()
  }
  borrowed.route('POST', '/', (request) => ({ status: 200, body: parse(request.body) }), { borrowBody: true })
  t.equal(bodyOf((await exchange(borrowed.port, '200', post('/', 'abc'))).text()), 'abc')
  // That of Node.js is a copy of its own.
  t.equal((lent as Uint8Array | null)?.length, driver === 'uws' ? 0 : 3, 'a borrowed body is given back')
  const late = {
    borrowBody: true,
    before: async () => {
      await pause(20)
      return null
    },
  }
  borrowed.route('POST', '/gate', (request) => ({ status: 200, body: parse(request.body) }), late)
  t.equal(
    bodyOf((await exchange(borrowed.port, '200', post('/gate', 'abc'))).text()),
    'abc',
    'it is kept for a late gate',
  )
})

overDrivers(t, 'every way to fail is one 500 on a connection that goes on', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  const boom = () => {
    throw new Error('boom')
  }
  server.route('GET', '/sync', boom)
  server.route('POST', '/sync', boom)
  server.route('GET', '/async', async () => boom())
  server.route('GET', '/late', async () => {
    await pause(10)
    return boom()
  })
  server.route('GET', '/string', () => Promise.reject('boom'))
  server.route('GET', '/handed', (_, answer) => void setTimeout(() => answer(new Error('boom')), 5) as undefined)
  server.route('GET', '/nothing', async () => undefined as unknown as HttpResponse)
  server.route('GET', '/status', () => ({ status: 99 }))
  server.route('GET', '/split', () => ({ status: 200, headers: [['X-A', 'a\r\nSet-Cookie: b=c']] }))
  server.route('GET', '/high', () => ({ status: 200, headers: [['X-A', 'caf\u00e9']] }))
  server.route('GET', '/name', () => ({ status: 200, headers: [['X A', 'b']] }))
  server.route('GET', '/type', () => ({ status: 200, body: '', contentType: 'a\nb: c' }))
  server.route('GET', '/before', () => ({ status: 200 }), { before: boom })
  server.route('GET', '/before-later', () => ({ status: 200 }), { before: async () => boom() })
  server.route('GET', '/ok', () => ({ status: 200 }))
  const paths = [
    'sync',
    'async',
    'late',
    'string',
    'handed',
    'nothing',
    'status',
    'split',
    'high',
    'name',
    'type',
    'before',
  ]
  for (const request of [...paths, 'before-later'].map((path) => get(`/${path}`)).concat(post('/sync', 'abc'))) {
    const conversation = talk(server.port, request)
    t.equal(await conversation.until('500'), '500', request.slice(0, 16))
    t.notMatch(conversation.text(), /Set-Cookie|X-A/)
    conversation.socket.write(get('/ok'))
    t.equal(await conversation.until('500 200'), '500 200')
    conversation.socket.destroy()
  }
  t.equal(server.inFlight(), 0)
})

overDrivers(t, 'a presenter or an observer that fails does not take the server with it', async (t, { open }) => {
  const boom = () => {
    throw new Error('boom')
  }
  const server = await open({ present: boom, observe: boom, responseHeaders: boom })
  t.teardown(server.close)
  server.route('GET', '/', boom)
  t.equal((await exchange(server.port, '500', get('/'))).outcome(), '500')
  t.equal((await exchange(server.port, '500', get('/unknown'))).outcome(), '500')
  t.ok(server.errors.length >= 4)
})

overDrivers(t, 'the first answer counts, and one given to nobody is harmless', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  const gone: boolean[] = []
  server.route('GET', '/twice', (_, answer) => {
    answer({ status: 201 })
    answer({ status: 202 })
    return { status: 204 }
  })
  let arrived = false
  server.route('GET', '/gone', async (request) => {
    arrived = true
    for (let i = 0; i < 1_000 && !request.aborted(); i++) await pause(10)
    gone.push(request.aborted())
    return { status: 200, body: request.remoteAddress() }
  })
  t.equal((await exchange(server.port, '201', get('/twice'))).outcome(), '201')
  t.same(server.warnings, ['a second answer was ignored', 'a second answer was ignored'])
  const conversation = talk(server.port, get('/gone'))
  for (let i = 0; i < 1_000 && !arrived; i++) await pause(10)
  conversation.socket.resetAndDestroy()
  for (let i = 0; i < 1_500 && gone.length === 0; i++) await pause(10)
  await pause(20)
  t.same(gone, [true])
  t.same(server.observed.at(-1), { pattern: '/gone', method: 'GET', status: 499 })
  t.equal(server.inFlight(), 0)
  t.equal(server.errors.length, 0)
})

overDrivers(t, 'the deadline answers for handlers, gates and bodies that take too long', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  const never = () => new Promise<never>(() => {})
  const options = { deadlineMs: 150 }
  let late = 0
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  server.route('GET', '/never', never, options)
  server.route('GET', '/forgets', () => undefined, options)
  server.route('GET', '/gate', () => ({ status: 200 }), { ...options, before: never })
  server.route('POST', '/body', () => ({ status: 200 }), options)
  server.route(
    'GET',
    '/late',
    async () => {
      await released
      late++
      return { status: 200 }
    },
    options,
  )
  server.route('GET', '/ok', () => ({ status: 200 }))
  for (const path of ['never', 'forgets', 'gate', 'late']) {
    const conversation = talk(server.port, get(`/${path}`))
    t.equal(await conversation.until('503'), '503', path)
    t.match(conversation.text(), /\r\nRetry-After: 1\r\n/)
    conversation.socket.write(get('/ok'))
    t.equal(await conversation.until('503 200'), '503 200', 'the connection goes on')
    conversation.socket.destroy()
  }
  t.equal((await exchange(server.port, '503 closed', post('/body', 'abc').slice(0, -1))).outcome(), '503 closed')
  const drip = talk(server.port, post('/body', 'x'.repeat(50)).slice(0, -50), ...'x'.repeat(20))
  t.equal(await drip.until('503 closed'), '503 closed', 'one byte at a time')
  release()
  for (let i = 0; i < 1_000 && late === 0; i++) await pause(10)
  t.equal(late, 1)
  t.equal(server.inFlight(), 0)
  t.same(server.warnings, [])
})

overDrivers(
  t,
  'a second request behind an unanswered one is never executed twice nor out of order',
  async (t, { open, driver }) => {
    const server = await open()
    t.teardown(server.close)
    let runs = 0
    let atOnce = 0
    let atOnceMax = 0
    server.route('GET', '/slow', async () => {
      runs++
      atOnce++
      atOnceMax = Math.max(atOnceMax, atOnce)
      await pause(50)
      atOnce--
      return { status: 200 }
    })
    // The native server cuts off who does not wait, node:http lets the second wait.
    const wanted = driver === 'uws' ? 'closed' : '200 200'
    const { outcome } = await exchange(server.port, wanted, get('/slow') + get('/slow'))
    t.equal(outcome(), wanted)
    t.equal(runs, driver === 'uws' ? 1 : 2)
    t.equal(atOnceMax, 1)
  },
)

overDrivers(t, 'refusals from the headers come before the body, in the order of the contract', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  let runs = 0
  const run = (): HttpResponse => {
    runs++
    return { status: 200 }
  }
  const limit = { bodyBytesMax: 10, headers: ['authorization'] }
  const allowed = (header: string) => (header === 'Bearer a' ? null : { status: 401 })
  server.route('POST', '/now', run, { ...limit, before: (request) => allowed(request.header('authorization')) })
  server.route('POST', '/soon', run, {
    ...limit,
    before: async (request) => {
      await pause(30)
      return allowed(request.header('authorization'))
    },
  })
  for (const path of ['/now', '/soon']) {
    const long = 'x'.repeat(11)
    const outcomes: [string, string][] = [
      [post(path, 'abc'), '401'],
      [post(path, 'abc', 'Authorization: Bearer a'), '200'],
      [post(path, long, 'Authorization: Bearer a'), '413 closed'],
      [post(path, long), '401 closed'],
      [post(path, 'abc').slice(0, -1), '401 closed'],
      [post(path, 'x'.repeat(2_000_000)), '401 closed'],
    ]
    for (const [request, wanted] of outcomes) t.equal((await exchange(server.port, wanted, request)).outcome(), wanted)
  }
  t.equal(runs, 2)
  const kept = talk(
    server.port,
    post('/now', 'abc').slice(0, -3),
    'ab',
    'c',
    post('/now', 'abc', 'Authorization: Bearer a'),
  )
  t.equal(await kept.until('401 200'), '401 200', 'a refused body is read to its end and the connection goes on')
  kept.socket.destroy()
})

overDrivers(t, 'a client that sends megabytes and then listens gets the refusal, not a reset', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  server.route('POST', '/limited', () => ({ status: 200 }), { bodyBytesMax: 10 })
  server.route('POST', '/guarded', () => ({ status: 200 }), { before: () => ({ status: 401 }) })
  const { overEach, close } = openConnections(server.port, 10, '')
  t.teardown(close)
  const body = 'x'.repeat(5_000_000)
  for (const [path, status] of [['/limited', 413] as const, ['/guarded', 401] as const]) {
    const answers = await overEach('POST', path, { body })
    t.same(new Set(answers.map((answer) => answer.status)), new Set([status]), path)
  }
})

overDrivers(t, 'what before learned reaches the handler', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  server.route('GET', '/', (request) => ({ status: 200, body: String(request.context) }), {
    before: (request) => {
      request.context = 'who'
      return null
    },
  })
  t.equal(bodyOf((await exchange(server.port, '200', get('/'))).text()), 'who')
})

overDrivers(t, 'HEAD has the headers of GET and no body', async (t, { open }) => {
  const server = await open()
  t.teardown(server.close)
  server.route('GET', '/a', () => ({ status: 200, body: 'h\u00e9llo', contentType: 'text/plain' }))
  server.route('GET', '/later', async () => ({ status: 404, body: 'none' }))
  const head = (path: string) => `HEAD ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
  const conversation = talk(server.port, head('/a'), head('/later'), head('/unknown'), get('/a'))
  t.equal(await conversation.until('200 404 404 200'), '200 404 404 200')
  const parts = conversation.text().split('\r\n\r\n')
  t.match(parts[0], /Content-Type: text\/plain\r\n(.*\r\n)*Content-Length: 6/)
  t.match(parts[1], /^HTTP\/1.1 404[\s\S]*Content-Length: 4/)
  t.match(parts[2], /^HTTP\/1.1 404/)
  t.match(parts[3], /^HTTP\/1.1 200/)
  t.equal(parts[4]?.length, 6)
  conversation.socket.destroy()
})

overDrivers(
  t,
  '405 names the methods there are, every answer carries the common headers, 204 has no length',
  async (t, { open }) => {
    let calls = 0
    const server = await open({ responseHeaders: () => [['X-Request-Id', `call_${++calls}`]] })
    t.teardown(server.close)
    server.route('GET', '/a', () => ({ status: 204 }))
    server.route('POST', '/a', () => new Promise<never>(() => {}), { deadlineMs: 50 })
    const text = async (wanted: string, request: string) => (await exchange(server.port, wanted, request)).text()
    t.match(
      await text('405', 'DELETE /a HTTP/1.1\r\nHost: a\r\n\r\n'),
      /Allow: GET, HEAD, POST\r\n(.*\r\n)*X-Request-Id: call_1\r\n/,
    )
    t.match(await text('404', get('/b')), /X-Request-Id: call_2\r\n/)
    t.match(await text('400 closed', get('/a', 'Host: b')), /X-Request-Id: call_3\r\n/)
    t.match(await text('503', post('/a', 'x')), /X-Request-Id: call_4\r\n/)
    const empty = await text('204', get('/a'))
    t.match(empty, /X-Request-Id: call_5\r\n/)
    t.notMatch(empty, /Content-Length/i)
    server.notFound((request) => ({ status: 404, body: request.path }))
    t.equal(bodyOf(await text('404', get('/c'))), '/c')
    t.same(
      server.observed.map(({ pattern, method, status }) => `${pattern} ${method} ${status}`),
      ['/a DELETE 405', '(unknown) GET 404', '(framing) GET 400', '/a POST 503', '/a GET 204', '(unknown) GET 404'],
    )
  },
)
