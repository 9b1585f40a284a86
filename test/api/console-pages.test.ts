// The console as it is served: every address of its client is a page, its policy lets nothing else in, and where a port is set apart
// for it nobody finds it elsewhere.

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { CONSOLE_PAGES } from '../../src/api/console/pages.ts'
import { freePort } from '../helpers/port.ts'
import { cleanUp, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)
const root = fileURLToPath(new URL('../../..', import.meta.url))
const built = `${root}build/console`
const adminPort = await freePort()
const [together, apart] = await Promise.all([
  startServer(),
  startServer({ env: { FINGERPOST_HTTP_ADMIN_PORT: String(adminPort) } }),
])
const get = (url: string, headers: Readonly<Record<string, string>> = {}) => fetch(url, { headers, redirect: 'manual' })
const paths = CONSOLE_PAGES.map((path) => `/console${path.replace(':id', 'req_01KAJ6Q3ZV8M4T9XW2C5E7G1HN')}`)

t.test('every page of the client is an address of the server, and the other way round', (t) => {
  const registry = readFileSync(`${root}src/console/pages.ts`, 'utf8')
  const client = [...registry.matchAll(/path: '([^']+)'/g)].map(([, path]) => path)
  const ways = ['', '/setup', '/join', '/reset', '/sign-in', '/oidc']
  t.same([...CONSOLE_PAGES].sort(), [...client, ...ways].sort())
  t.end()
})

t.test('at each of them is the one document, which is never kept', async (t) => {
  const document = readFileSync(`${built}/index.html`, 'utf8')
  for (const path of paths) {
    const answer = await get(together.url + path)
    t.equal(answer.status, 200, path)
    t.equal(answer.headers.get('cache-control'), 'no-store')
    t.equal(await answer.text(), document)
  }
  for (const path of ['/console/nothing', '/console/events/a/b', '/console/assets/nothing.js', '/console/index.html']) {
    t.equal((await get(together.url + path)).status, 404, path)
  }
})

t.test('its policy takes no script, style, frame, form or markup but its own', async (t) => {
  const { headers } = await get(`${together.url}/console/`)
  const policy = headers.get('content-security-policy') ?? ''
  for (const part of [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "frame-ancestors 'none'",
    "form-action 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ]) {
    t.ok(policy.split('; ').includes(part), part)
  }
  t.notMatch(policy, /unsafe|https?:|\*/)
  t.equal(headers.get('x-frame-options'), 'DENY')
  t.equal(headers.get('x-content-type-options'), 'nosniff')
  t.equal(headers.get('referrer-policy'), 'no-referrer')
})

t.test('what it loads is compressed, keeps its name for ever, and is all of the build', async (t) => {
  for (const name of readdirSync(`${built}/assets`)) {
    const answer = await get(`${together.url}/console/assets/${name}`, { 'Accept-Encoding': 'gzip' })
    t.equal(answer.status, 200, name)
    t.match(answer.headers.get('cache-control'), /immutable/)
    t.match(name, /-[\w-]{8,}\.(js|css)$/, 'its name changes with what is in it')
    t.equal(await answer.text(), readFileSync(`${built}/assets/${name}`, 'utf8'))
  }
})

t.test('the first load is at most 80 KB, and nothing in it is fetched from elsewhere', (t) => {
  const document = readFileSync(`${built}/index.html`, 'utf8')
  const first = [...document.matchAll(/(?:src|href)="\/console\/(assets\/[^"]+)"/g)].map(([, name]) => name ?? '')
  t.ok(first.length >= 2)
  // What the overview reads at once comes with it.
  const page = readdirSync(`${built}/assets`).filter((name) =>
    /^(overview|page|table|copy|verdicts-plot|bars)-/.test(name),
  )
  const bytes = [...first, ...page.map((name) => `assets/${name}`), 'index.html']
    .map((name) => gzipSync(readFileSync(`${built}/${name}`)).length)
    .reduce((sum, length) => sum + length, 0)
  t.ok(bytes <= 80_000, `${bytes} bytes`)
  for (const name of readdirSync(`${built}/assets`)) {
    const urls =
      readFileSync(`${built}/assets/${name}`, 'utf8').match(/https?:\/\/(?!www\.w3\.org\/)[\w.-]+\.\w+/g) ?? []
    t.same(
      urls.filter((url) => !url.endsWith('.example')),
      [],
      name,
    )
  }
  t.end()
})

t.test('the address of the contract leads to it', async (t) => {
  for (const path of ['/dashboard', '/dashboard/']) {
    const answer = await get(together.url + path)
    t.equal(answer.status, 302)
    t.equal(answer.headers.get('location'), '/console/')
  }
})

t.test('with a port of its own it is there and nowhere else', async (t) => {
  for (const path of ['/console/', '/console/api/state', '/dashboard']) {
    t.equal((await get(apart.url + path)).status, 404, path)
  }
  t.equal((await get(`http://127.0.0.1:${adminPort}/console/`)).status, 200)
  t.equal((await get(`http://127.0.0.1:${adminPort}/console/api/state`)).status, 200)
})
