// What may arrive on a socket, byte for byte, and what becomes of it. `expect` lists the statuses answered, in order, and
// then 'closed' when the server closes the connection; 'closed' means no byte, and the end within the server's own time.

export interface ProtocolCase {
  readonly name: string
  /** Segments, sent 30 ms apart; latin1. */
  readonly send: readonly string[]
  readonly expect: string
  /** What is expected where the answer comes in a later turn: the server closes on who does not wait for it. */
  readonly expectLater?: string
}

const SMUGGLED = 'POST /smuggled HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n'

/** A request with these extra header lines, `Host` included by itself. */
function request(line: string, headers: readonly string[] = [], body = ''): string {
  return `${[`${line} HTTP/1.1`, 'Host: a', ...headers].join('\r\n')}\r\n\r\n${body}`
}

function post(headers: readonly string[], body = ''): string {
  return request('POST /echo', headers, body)
}

const pipelined = (name: string, send: string, expect: string): ProtocolCase => ({
  ...one(name, send, expect),
  expectLater: 'closed',
})

const one = (name: string, send: string, expect: string): ProtocolCase => ({ name, send: [send], expect })

const plain: ProtocolCase[] = [
  one('a GET', request('GET /ok'), '200'),
  one('a GET with a query', request('GET /ok?a=1&b=%20'), '200'),
  one('a GET with an empty query', request('GET /ok?'), '200'),
  one('a GET with Content-Length 0', request('GET /ok', ['Content-Length: 0']), '200'),
  one('a GET with a body', request('GET /ok', ['Content-Length: 3'], 'abc'), '200'),
  one('a POST', post(['Content-Length: 3'], 'abc'), '200'),
  one('a POST with an empty body', post(['Content-Length: 0']), '200'),
  one('a POST with leading zeros in its length', post(['Content-Length: 003'], 'abc'), '200'),
  one('spaces around a length', post(['Content-Length:   3  '], 'abc'), '200'),
  one('no space after the colon', post(['Content-Length:3'], 'abc'), '200'),
  one('header names in any case', post(['cONTENT-lENGTH: 3'], 'abc'), '200'),
  pipelined('two HEADs and a GET', request('HEAD /ok') + request('HEAD /nothing') + request('GET /ok'), '200 404 200'),
  one('a DELETE without a length', request('DELETE /thing/1'), '200'),
  one('a PUT', request('PUT /thing/1', ['Content-Length: 1'], 'x'), '200'),
  one('a path parameter', request('GET /thing/abc'), '200'),
  one('an encoded path parameter', request('GET /thing/a%2fb'), '200'),
  one('an empty path parameter', request('GET /thing/'), '404'),
  one('a wildcard', request('GET /files/a/b'), '200'),
  one('an empty wildcard', request('GET /files/'), '200'),
  one('a wildcard without its slash', request('GET /files'), '404'),
  one('an unknown path', request('GET /nothing'), '404'),
  one('the root', request('GET /'), '404'),
  one('a trailing slash', request('GET /ok/'), '404'),
  one('a double slash', request('GET //ok'), '404'),
  one('dots in a path', request('GET /x/../ok'), '404'),
  one('an encoded letter in a path', request('GET /%6fk'), '404'),
  one('a NUL, encoded, in a path', request('GET /ok%00'), '404'),
  one('bytes above 127 in a path', request('GET /\xe9'), '404'),
  one('an unknown path with a body', request('POST /nothing', ['Content-Length: 3'], 'abc'), '404'),
  one('an unknown path without a length', request('POST /nothing'), '404 closed'),
  one('a long path', request(`GET /${'a'.repeat(2_000)}`), '404'),
  one('five small headers', request('GET /ok', ['a: 1', 'b: 2', 'c: 3', 'd: 4', 'e: 5']), '200'),
  one(
    'forty headers',
    request(
      'GET /ok',
      Array.from({ length: 40 }, (_, i) => `x-${i}: ${i}`),
    ),
    '200',
  ),
  one('an empty header value', request('GET /ok', ['x-a:']), '200'),
  one('a repeated harmless header', request('GET /ok', ['x-a: 1', 'x-a: 2']), '200'),
  one('one Authorization', request('GET /ok', ['Authorization: Bearer x']), '200'),
  one('an upgrade nobody offers', request('GET /ok', ['Connection: Upgrade', 'Upgrade: h2c']), '200'),
  one('a question for permission to send', post(['Content-Length: 3', 'Expect: 100-continue'], 'abc'), '100 200'),
  one('a client that closes', request('GET /ok', ['Connection: close']), '200 closed'),
  pipelined('two requests in one segment', request('GET /ok') + request('GET /ok'), '200 200'),
  pipelined('three posts in one segment', post(['Content-Length: 1'], 'x').repeat(3), '200 200 200'),
]

const methods: ProtocolCase[] = [
  ...['PUT', 'PATCH', 'POST'].map((method) =>
    one(`${method} on a path for GET`, request(`${method} /ok`, ['Content-Length: 0']), '405'),
  ),
  ...['DELETE', 'OPTIONS', 'TRACE'].map((method) =>
    one(`${method} on a path for GET`, request(`${method} /ok`), '405'),
  ),
  one('GET on a path for POST', request('GET /echo'), '405'),
  one('a wrong method without a length', request('POST /ok'), '405 closed'),
  one('a wrong method with a body', request('POST /ok', ['Content-Length: 3'], 'abc'), '405'),
  one('a method nobody knows', request('BREW /ok'), 'closed'),
  one('a lower-case method', request('get /ok'), 'closed'),
  one('CONNECT to a path', request('CONNECT /ok'), '400 closed'),
]

const lengths: ProtocolCase[] = [
  one('a POST without a length', post([]), '200 closed'),
  one('a PUT without a length', request('PUT /thing/1'), '200 closed'),
  one('a PATCH without a length', request('PATCH /thing/1'), '200 closed'),
  one('a POST without a length, and a body', post([], 'abc'), '200 closed|closed'),
  one('a body at the limit', post(['Content-Length: 64'], 'x'.repeat(64)), '200'),
  one('a body below the limit', post(['Content-Length: 63'], 'x'.repeat(63)), '200'),
  one('a body above the limit', post(['Content-Length: 65'], 'x'.repeat(65)), '413 closed'),
  one('a length far above the limit, no body yet', post(['Content-Length: 10000000']), '413 closed'),
  one('a length above the limit, no body yet', post(['Content-Length: 65']), '413 closed'),
  one('a length above 2^30', post(['Content-Length: 1073741824']), 'closed'),
  one('a length above 64 bits', post(['Content-Length: 99999999999999999999']), 'closed'),
  ...['-1', '+2', '2abc', '0x2', '2, 2', '1 1', '1.0', 'abc', '"2"', '1e1'].map((value) =>
    one(`Content-Length: ${value}`, post([`Content-Length: ${value}`], 'ab'), 'closed'),
  ),
]

const chunks: ProtocolCase[] = [
  one('a chunked body', post(['Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\n\r\n'), '200 closed'),
  one('two chunks', post(['Transfer-Encoding: chunked'], '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'), '200 closed'),
  one('an empty chunked body', post(['Transfer-Encoding: chunked'], '0\r\n\r\n'), '200 closed'),
  one('Chunked with a capital', post(['Transfer-Encoding: Chunked'], '3\r\nabc\r\n0\r\n\r\n'), '200 closed'),
  one(
    'a chunk size in hex',
    post(['Transfer-Encoding: chunked'], `1F\r\n${'x'.repeat(31)}\r\n0\r\n\r\n`),
    '200 closed',
  ),
  one(
    'chunks at the limit',
    post(['Transfer-Encoding: chunked'], `40\r\n${'x'.repeat(64)}\r\n0\r\n\r\n`),
    '200 closed',
  ),
  one('chunks above it', post(['Transfer-Encoding: chunked'], `41\r\n${'x'.repeat(65)}\r\n0\r\n\r\n`), '413 closed'),
  one(
    'many chunks above it',
    post(['Transfer-Encoding: chunked'], `${'2\r\nab\r\n'.repeat(33)}0\r\n\r\n`),
    '413 closed',
  ),
  one('a chunk size that is none', post(['Transfer-Encoding: chunked'], 'zz\r\nabc\r\n0\r\n\r\n'), 'closed'),
  one('a negative chunk size', post(['Transfer-Encoding: chunked'], '-1\r\nabc\r\n0\r\n\r\n'), 'closed'),
  one('a chunk size above 64 bits', post(['Transfer-Encoding: chunked'], 'fffffffffffffffff\r\nabc'), 'closed'),
  one(
    'two requests with chunks',
    post(['Transfer-Encoding: chunked'], '1\r\nx\r\n0\r\n\r\n').repeat(2),
    '200 closed|closed',
  ),
  {
    name: 'a chunk in pieces',
    send: [post(['Transfer-Encoding: chunked']), '3\r', '\nab', 'c\r\n', '0\r\n', '\r\n'],
    expect: '200 closed',
  },
  one('a trailer', post(['Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\nx-a: 1\r\n\r\n'), '200 closed'),
  one(
    'leading zeros in the size of a chunk',
    post(['Transfer-Encoding: chunked'], '0003\r\nabc\r\n00\r\n\r\n'),
    '200 closed',
  ),
  // The native server does not look at what stands behind a size or a chunk, so nothing behind such a body is read.
  ...[
    ['a chunk extension behind a space', '3 ;a=b\r\nabc\r\n0\r\n\r\n'],
    ['a space behind the size of a chunk', '3 \r\nabc\r\n0\r\n\r\n'],
    ['a chunk without a size', '3\r\nabc\r\n\r\n0\r\n\r\n'],
    ['a bare line feed behind the size of a chunk', '3\nabc\r\n0\r\n\r\n'],
  ].map(([name, body]) => one(name as string, post(['Transfer-Encoding: chunked'], body as string), '200 closed')),
  one('no line end behind a chunk', post(['Transfer-Encoding: chunked'], '3\r\nabcXX0\r\n\r\n'), '200 closed'),
  one(
    'chunks, a request behind them',
    post(['Transfer-Encoding: chunked'], `3\r\nabc\r\n0\r\n\r\n${SMUGGLED}`),
    '200 closed|closed',
  ),
  one(
    'no line end behind a chunk, a request behind it',
    post(['Transfer-Encoding: chunked'], `3\r\nabcXX0\r\n\r\n${SMUGGLED}`),
    '200 closed|closed',
  ),
  {
    name: 'chunks, a request a moment later',
    send: [post(['Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\n\r\n'), SMUGGLED],
    // What comes for a connection that is closed may take the answer with it.
    expect: '200 closed|closed',
  },
]

/** A smuggled request follows each: its handler must never run. Which of the two ends depends on how bytes were cut. */
const framing: ProtocolCase[] = [
  ['two lengths', ['Content-Length: 3', 'Content-Length: 5'], 'abc'],
  ['the same length twice', ['Content-Length: 3', 'Content-Length: 3'], 'abc'],
  ['three lengths', ['Content-Length: 3', 'Content-Length: 3', 'Content-Length: 0'], 'abc'],
  ['an empty length first', ['Content-Length:', 'Content-Length: 3'], 'abc'],
  ['an empty length', ['Content-Length:'], ''],
  ['xchunked', ['Transfer-Encoding: xchunked'], '3\r\nabc\r\n0\r\n\r\n'],
  ['gzip, chunked', ['Transfer-Encoding: gzip, chunked'], '3\r\nabc\r\n0\r\n\r\n'],
  ['chunked, identity', ['Transfer-Encoding: chunked, identity'], '3\r\nabc\r\n0\r\n\r\n'],
  ['identity', ['Transfer-Encoding: identity'], '0\r\n\r\n'],
  ['an empty Transfer-Encoding', ['Transfer-Encoding:'], '0\r\n\r\n'],
  ['two Transfer-Encodings', ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], '0\r\n\r\n'],
  ['chunked twice', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '0\r\n\r\n'],
  ['two hosts', ['Host: b', 'Content-Length: 0'], ''],
  ['the same host twice', ['Host: a', 'Content-Length: 0'], ''],
  ['two Authorizations', ['Authorization: Bearer a', 'Authorization: Bearer b', 'Content-Length: 0'], ''],
].flatMap(([name, headers, body]) => {
  const bad = post(headers as string[], body as string)
  return [
    one(`${name}`, bad, '400 closed'),
    one(`${name}, a request behind it`, bad + SMUGGLED, '400 closed|closed'),
    { name: `${name}, a request a moment later`, send: [bad, SMUGGLED], expect: '400 closed|closed' },
  ]
})

/** The native server shows no header behind one without a name, so that a length behind it is none. */
const hiddenLength = post([': x', `Content-Length: ${SMUGGLED.length}`])
const hiddenLengths: ProtocolCase[] = [
  one('a length behind a header without a name, a request as body', hiddenLength + SMUGGLED, '200 closed|closed'),
  {
    name: 'a length behind a header without a name, a request as body a moment later',
    send: [hiddenLength, SMUGGLED],
    expect: '200 closed|closed',
  },
]

const refusedAndFollowed: ProtocolCase[] = [
  {
    name: 'a HEAD with two lengths, a request a moment later',
    send: [request('HEAD /ok', ['Content-Length: 3', 'Content-Length: 5'], 'abc'), SMUGGLED],
    expect: '400 closed|closed',
  },
  one('length and chunks', post(['Content-Length: 3', 'Transfer-Encoding: chunked'], `0\r\n\r\n${SMUGGLED}`), 'closed'),
  one('chunks and length', post(['Transfer-Encoding: chunked', 'Content-Length: 3'], `0\r\n\r\n${SMUGGLED}`), 'closed'),
  one('no length, a request as body', post([], SMUGGLED), '200 closed|closed'),
  { name: 'no length, a request a moment later', send: [post([]), SMUGGLED], expect: '200 closed|closed' },
  one(
    'a body above the limit that is a request',
    post([`Content-Length: ${SMUGGLED.length + 65}`], SMUGGLED + 'x'.repeat(65)),
    '413 closed',
  ),
]

/** The server ends these at once or after its own idle time; where the headers are in, the route's deadline may be first. */
export const slowCases: readonly ProtocolCase[] = [
  one('HTTP/1.0', 'GET /ok HTTP/1.0\r\nHost: a\r\n\r\n', 'closed'),
  one('HTTP/0.9', 'GET /ok\r\n\r\n', 'closed'),
  one('HTTP/2.0', 'GET /ok HTTP/2.0\r\nHost: a\r\n\r\n', 'closed'),
  one('no version', 'GET /ok \r\nHost: a\r\n\r\n', 'closed'),
  one('no host', 'GET /ok HTTP/1.1\r\n\r\n', 'closed'),
  one('bare line feeds', 'GET /ok HTTP/1.1\nHost: a\n\n', 'closed'),
  one('a folded header', request('GET /ok', ['x-a: 1', ' folded']), 'closed'),
  one('a NUL in a value', request('GET /ok', ['x-a: a\0b']), 'closed'),
  one('a carriage return in a value', request('GET /ok', ['x-a: a\rb']), 'closed'),
  one('a bad character in a name', request('GET /ok', ['x(a: 1']), 'closed'),
  one('a space before the colon', request('GET /ok', ['x-a : 1']), 'closed'),
  one('a header without a colon', request('GET /ok', ['x-a']), 'closed'),
  one('an underscore in a name', request('GET /ok', ['x_a: 1']), 'closed'),
  one('an absolute URI', request('GET http://a/ok'), 'closed'),
  one('OPTIONS *', request('OPTIONS *'), 'closed'),
  one('CONNECT host:port', request('CONNECT a:80'), 'closed'),
  one('the start of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'closed'),
  one('garbage', '\x00\xff\x01\xfe\r\n\r\n', 'closed'),
  one('an empty line only', '\r\n', 'closed'),
  one('a leading empty line', `\r\n${request('GET /ok')}`, 'closed'),
  one(
    'sixty headers',
    request(
      'GET /ok',
      Array.from({ length: 60 }, (_, i) => `x-${i}: ${i}`),
    ),
    'closed',
  ),
  one(
    'twenty thousand headers',
    request(
      'GET /ok',
      Array.from({ length: 20_000 }, (_, i) => `x-${i}: ${i}`),
    ),
    'closed',
  ),
  one('a header of a megabyte', request('GET /ok', [`x-a: ${'x'.repeat(1_000_000)}`]), 'closed'),
  ...[
    ['a chunk extension', '3;a=b\r\nabc\r\n0\r\n\r\n'],
    ['an extension of the second chunk', '3\r\nabc\r\n2;a\r\nde\r\n0\r\n\r\n'],
    ['an extension of the last chunk', '3\r\nabc\r\n0;a="\r\n"\r\n\r\n'],
  ].map(([name, body]) =>
    one(name as string, post(['Transfer-Encoding: chunked'], body as string), '503 closed|closed'),
  ),
  {
    name: 'a chunk extension in pieces',
    send: [
      'POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chun',
      'ked\r',
      '\n',
      '\r',
      '\n3;',
      'a=b\r\nabc\r\n0\r\n\r\n',
    ],
    expect: '503 closed|closed',
  },
  one('a bare line feed in the head', 'GET /ok HTTP/1.1\r\nHost: a\nx-a: 1\r\n\r\n', 'closed'),
  one('a bare line feed at its end', 'GET /ok HTTP/1.1\r\nHost: a\r\n\n', 'closed'),
  one('half a body', post(['Content-Length: 9'], 'abc'), '503 closed|closed'),
  one('half a request line', 'GET /o', 'closed'),
  one('half the headers', 'GET /ok HTTP/1.1\r\nHost: a\r\n', 'closed'),
  one('nothing', '', 'closed'),
]

export const quickCases: readonly ProtocolCase[] = [
  ...plain,
  ...methods,
  ...lengths,
  ...chunks,
  ...framing,
  ...hiddenLengths,
  ...refusedAndFollowed,
]
