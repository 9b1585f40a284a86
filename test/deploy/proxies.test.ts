// The proxy files against the program behind them: what it reads is passed on, what is private is not.

import t from 'tap'
import { EVIDENCE_HEADERS } from '../../src/domain/identify.ts'
import { filesUnder, read, services } from './deploy.ts'

const nginx = read('deploy/nginx/fingerpost.conf')
const caddy = read('deploy/caddy/Caddyfile')

const variable = (header: string): string => `$http_${header.replaceAll('-', '_')}`

/** Lower-case names of the headers that nginx passes on, with what it puts in them. */
const passed = new Map(
  [...nginx.matchAll(/^ *proxy_set_header (\S+) +(\S+);$/gm)].map(([, name = '', value = '']) => [
    name.toLowerCase(),
    value,
  ]),
)

/** Those whose bytes the client does not choose: nginx writes them, or counts them. */
const WRITTEN = ['host', 'x-forwarded-for', 'connection', 'content-length', 'transfer-encoding', 'cookie']

t.test('nginx passes on every header that the server reads, and bounds them together', async (t) => {
  const readBySource = filesUnder('src')
    .filter((name) => /^src\/(api|ingress)\/.*\.ts$/.test(name))
    .flatMap((name) => [...read(name).matchAll(/\bheader\('([a-z-]+)'\)/g)].map(([, header = '']) => header))
  t.ok(readBySource.includes('if-match'))
  const wanted = new Set([...EVIDENCE_HEADERS, ...readBySource].filter((header) => !WRITTEN.includes(header)))
  for (const header of wanted) t.equal(passed.get(header), variable(header), header)
  const bounded = /^map "([^"]+)" \$fingerpost_head/m.exec(nginx)?.[1] ?? ''
  for (const [header, value] of passed) {
    if (!WRITTEN.includes(header)) t.ok(bounded.split(/(?=\$)/).includes(value), `${header} counts`)
  }
  t.match(nginx, /^ *proxy_pass_request_headers off;$/m)
})

t.test('of a site’s cookies nginx passes on ours alone, and they count', async (t) => {
  t.equal(passed.get('cookie'), '$fingerpost_cookie')
  t.match(nginx, /^ {2}default "\$\{fingerpost_cookie_live\}fp_test=\$cookie_fp_test";$/m)
  t.match(nginx, /^map "[^"]*\$fingerpost_cookie" \$fingerpost_head/m)
  t.notMatch(nginx, /\$http_cookie/)
})

t.test('nginx says itself who the client is, and keeps its own framing', async (t) => {
  t.equal(passed.get('x-forwarded-for'), '$remote_addr')
  t.equal(passed.get('connection'), '""')
  t.match(nginx, /^ *proxy_http_version +1\.1;$/m)
  t.match(nginx, /^ *proxy_request_buffering +on;$/m)
  t.notMatch(nginx, /proxy_next_upstream[^;]*non_idempotent/, 'a POST that was sent is not sent again')
})

t.test('connections to the server end before it ends them', async (t) => {
  for (const file of ['deploy/nginx/upstreams-cluster.conf', 'deploy/nginx/upstreams-single.conf']) {
    for (const [, seconds] of read(file).matchAll(/^ *keepalive_timeout (\d+)s;$/gm)) t.ok(Number(seconds) < 10, file)
    t.same(
      [...read(file).matchAll(/^upstream (\w+)/gm)].map(([, name]) => name),
      ['fingerpost_ingress', 'fingerpost_api'],
    )
  }
})

t.test('only the public paths lead to the server', async (t) => {
  const locations = [...nginx.matchAll(/location (?:= |\^~ )?(\/\S*) \{([^}]*)/g)]
  const proxied = locations.filter(([, , body = '']) => body.includes('proxy_pass')).map(([, path]) => path)
  t.same(proxied, ['/v1/identify', '/v1/identify/forget', '/v1/', '/sdk.js', '/sdk.mjs', '/sdk/', '/demo/'])
  const matched = [...caddy.matchAll(/^\t(?:handle|@sdk path) (\/.*?)(?: \{)?$/gm)].flatMap(([, path = '']) =>
    path.split(' '),
  )
  t.same(matched, ['/v1/identify', '/v1/identify/forget', '/v1/*', '/sdk.js', '/sdk.mjs', '/sdk/*', '/demo/*'])
})

t.test('the upstreams of the cluster are its processes', async (t) => {
  const names = services.map(({ name }) => name)
  for (const text of [read('deploy/nginx/upstreams-cluster.conf'), caddy]) {
    const hosts = [...text.matchAll(/\b([a-z]+(?:-\d)?):8080\b/g)].map(([, host = '']) => host)
    t.same([...new Set(hosts)].sort(), ['api', 'ingress-1', 'ingress-2'])
    for (const host of hosts) t.ok(names.includes(host), host)
  }
})
