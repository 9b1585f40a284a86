// Requests to try a proxy with: sound ones, ones that could be read in two ways, and ones for private paths.

/** A request with these extra header lines; `Host` is there already. */
export const request = (line, headers = [], body = '') =>
  `${[line, 'Host: localhost', ...headers].join('\r\n')}\r\n\r\n${body}`

/** What a client may send to a proxy: name, bytes, the statuses its first answer may have, and whether a request may be passed
 * on, made anew. `key` is a secret key. */
export function makeCases(key) {
  const body = '{"linkedId":"check"}'
  const head = [`Authorization: Bearer ${key}`, 'Content-Type: application/json', 'User-Agent: check']
  const identify = (headers, text) => request('POST /v1/identify HTTP/1.1', [...head, ...headers], text)
  const counted = (text) => identify([`Content-Length: ${text.length}`], text)
  const smuggled = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const get = (path, headers) => request(`GET ${path} HTTP/1.1`, headers)
  const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  const many = (count) => Array.from({ length: count }, (_, i) => `X-Amz-${i}: ${i}`)
  const noise = ['Cookie: a=b', ...many(60)].join('\r\n')
  return [
    ['an identification', counted(body), [200], true],
    ['one in chunks', identify(['Transfer-Encoding: chunked'], chunked), [200], true],
    [
      'one with a forged address',
      counted(body).replace('User-Agent', 'X-Forwarded-For: 203.0.113.9\r\nUser-Agent'),
      [200],
      true,
    ],
    ['one with cookies and sixty headers', counted(body).replace('User-Agent', `${noise}\r\nUser-Agent`), [200], true],
    ['a body over the limit', counted(`{"linkedId":"${'x'.repeat(70_000)}"}`), [413], false],
    ['two lengths', identify(['Content-Length: 0', `Content-Length: ${smuggled.length}`], smuggled), [400], false],
    ['two equal lengths', identify(['Content-Length: 0', 'Content-Length: 0']), [400], true],
    ['a list of lengths', identify(['Content-Length: 0, 0']), [400], false],
    ['an empty length', identify(['Content-Length:'], smuggled), [400, 411], true],
    ['a signed length', identify(['Content-Length: +2'], '{}'), [400], false],
    ['a length with letters', identify(['Content-Length: 2a'], '{}'), [400], false],
    [
      'length and chunks',
      identify(['Content-Length: 5', 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`),
      [400],
      true,
    ],
    ['an unknown coding', identify(['Transfer-Encoding: xchunked'], `0\r\n\r\n${smuggled}`), [400, 501], false],
    ['two codings', identify(['Transfer-Encoding: gzip, chunked'], `0\r\n\r\n${smuggled}`), [400, 501], false],
    [
      'a second coding',
      identify(['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], chunked),
      [400, 501],
      false,
    ],
    ['a bad chunk size', identify(['Transfer-Encoding: chunked'], 'zz\r\n'), [400], true],
    ['two hosts', get('/v1/meta', ['Host: other']), [400], false],
    ['a length hidden behind a line feed', get('/v1/meta', ['X-A: a\nContent-Length: 0']), [400, 401], true],
    ['a space before the colon', identify([`Content-Length : ${smuggled.length}`], smuggled), [400, 411], false],
    ['a folded line', get('/v1/meta', ['X-A: a', ' Transfer-Encoding: chunked']), [400, 401], true],
    ['a NUL in a header', get('/v1/meta', ['User-Agent: a\0b']), [400], false],
    ['control characters in a header', get('/v1/meta', ['User-Agent: a\x01\x7fb']), [400, 401], true],
    ['bytes above 127 in a header', get('/v1/meta', ['User-Agent: \xe9\xff']), [400, 401], true],
    ['bytes above 127 in the path', get('/v1/\xe9\xff', []), [400, 404], true],
    ['a control character in the path', get('/v1/a\x01b', []), [400, 404], true],
    ['an unknown method', request('SPAM /v1/meta HTTP/1.1'), [405], false],
    ['a lower-case method', request('get /v1/meta HTTP/1.1'), [400, 405], false],
    ['CONNECT', 'CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n', [400, 405], false],
    ['TRACE', request('TRACE /v1/meta HTTP/1.1'), [405], false],
    ['an asterisk', request('OPTIONS * HTTP/1.1'), [200, 400, 404], false],
    ['an absolute address', request('GET http://localhost/v1/meta HTTP/1.1', head), [200], true],
    ['HTTP/1.0', request('GET /v1/meta HTTP/1.0', head), [200], true],
    ['a header of 5 KB', get('/v1/meta', [`X-A: ${'a'.repeat(5_000)}`]), [400, 401, 431], true],
    ['a long user agent', get('/v1/meta', [`User-Agent: ${'a'.repeat(3_500)}`]), [400, 401, 431], true],
    ['a hundred headers', get('/v1/meta', many(100)), [401], true],
    ['two in one segment', counted(body) + counted(body), [200], true],
    ['/metrics', get('/metrics'), [404], false],
    ['/readyz', get('/readyz'), [404], false],
    ['/admin/v1', get('/admin/v1/workspaces', head), [404], false],
    ['/v1/../metrics', get('/v1/../metrics'), [400, 404], false],
    ['/v1/%2e%2e/metrics', get('/v1/%2e%2e/metrics'), [400, 404], false],
    ['/%6detrics', get('/%6detrics'), [404], false],
    ['//metrics', get('//metrics'), [404], false],
    ['the SDK', get('/sdk.js', ['Accept-Encoding: gzip']), [200], true],
    ['an identification after all that', counted(body), [200], true],
  ]
}
