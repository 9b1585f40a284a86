import t from 'tap'
import type { HttpResponse } from '../../src/http/message.ts'
import { openTestServer, talk } from '../helpers/http.ts'
import { overDrivers } from '../helpers/http-drivers.ts'

const SIGN = 'X-Open-To'

overDrivers(
  t,
  'headers of a route are on every answer it gives, refusals by the server included, and on no other',
  async (t, { driver, open }) => {
    const http = await open({ inFlightMax: 2 })
    t.teardown(http.close)
    const responseHeaders = [[SIGN, 'all']] as const
    const ok: HttpResponse = { status: 200, headers: [['X-Own', '1']], body: '{}' }
    http.route('OPTIONS', '/open', () => ({ status: 204 }), { responseHeaders })
    http.route('POST', '/open', () => ok, { responseHeaders, bodyBytesMax: 10, deadlineMs: 150 })
    http.route('GET', '/open/fails', () => Promise.reject(new Error('no')), { responseHeaders })
    http.route('GET', '/open/hangs', () => new Promise<HttpResponse>(() => {}), { responseHeaders, deadlineMs: 100 })
    http.route('POST', '/closed', () => ok)

    const head = (line: string, more = '') => `${line} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
    const cases: [name: string, message: string, outcome: string, signed: boolean][] = [
      ['an answer', `${head('POST /open', 'Content-Length: 2\r\n')}{}`, '200', true],
      ['no content', head('OPTIONS /open'), '204', true],
      ['another method', head('GET /open'), '405', true],
      ['a body that is too long', `${head('POST /open', 'Content-Length: 11\r\n')}12345678901`, '413 closed', true],
      ['a POST without a length', head('POST /open'), '200 closed', true],
      [
        'an ambiguous length',
        `${head('POST /open', 'Content-Length: 1\r\nContent-Length: 2\r\n')}1`,
        '400 closed',
        true,
      ],
      ['a body that does not come', head('POST /open', 'Content-Length: 5\r\n'), '503 closed', true],
      ['a handler that fails', head('GET /open/fails'), '500', true],
      ['a handler that never answers', head('GET /open/hangs'), '503', true],
      ['HEAD', head('HEAD /open/fails'), '500', true],
      ['another route', `${head('POST /closed', 'Content-Length: 2\r\n')}{}`, '200', false],
      ['CONNECT', head('CONNECT /open'), '400 closed', true],
      ['no route', head('GET /nothing'), '404', false],
    ]
    const chunked = head('POST /open', 'Transfer-Encoding: chunked\r\n')
    // What the native driver closes on in silence.
    const ofParser: typeof cases = [
      ['a header that is none', head('POST /open', 'x(a: 1\r\n'), '400 closed', true],
      ['an absolute target, a header that is none', head('POST http://x/open?a=1', 'x(a: 1\r\n'), '400 closed', true],
      ['a bare line feed', 'POST /open HTTP/1.1\r\nHost: x\nx: 1\r\n\r\n', '400 closed', true],
      ['no host', 'POST /open HTTP/1.1\r\n\r\n', '400 closed', true],
      ['a head that is too long', head('POST /open', `x: ${'y'.repeat(40_000)}\r\n`), '431 closed', true],
      ['a chunk extension', `${chunked}2;a=b\r\n{}\r\n0\r\n\r\n`, '400 closed', true],
      ['a chunk that is none', `${chunked}x\r\n`, '400 closed', true],
      ['behind an answer', `${head('GET /nothing')}${head('POST /open', 'x(a: 1\r\n')}`, '404 400 closed', true],
      ['of another route', head('POST /closed', 'x(a: 1\r\n'), '400 closed', false],
      ['of no route', head('POST /nothing', 'x(a: 1\r\n'), '400 closed', false],
      ['no version', 'POST /open\r\n\r\n', '400 closed', true],
      ['no request', '{"POST": "/open"}\r\n\r\n', '400 closed', false],
    ]
    for (const [name, message, outcome, signed] of driver === 'node' ? [...cases, ...ofParser] : cases) {
      const middle = message.indexOf('/') + 2
      // Whichever way a head was cut.
      const line = talk(
        http.port,
        ...(name.length % 2 === 0 ? [message] : [message.slice(0, middle), message.slice(middle)]),
      )
      t.equal(await line.until(outcome), outcome, name)
      t.equal(line.text().split(SIGN).length - 1, signed ? 1 : 0, `${name}: ${signed ? 'once' : 'absent'}`)
      line.socket.destroy()
    }
    t.same(http.errors, [])
  },
)

t.test('a route with headers that would break answers is refused when it is added', async (t) => {
  const http = await openTestServer()
  t.teardown(http.close)
  for (const header of [
    ['X-Bad', 'a\r\nSet-Cookie: b'],
    ['X Bad', 'a'],
    ['Content-Length', '1'],
  ] as const) {
    t.throws(() => http.route('GET', '/x', () => ({ status: 204 }), { responseHeaders: [header] }), header[0])
  }
})
