// The documentation as it is served: every page reached by links, small, under a strict policy, with links that lead somewhere, and a
// search that names places that there are.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
import { ERRORS } from '../../src/domain/errors.ts'
import { anchorsOf, linksOf, plainText, readPages } from '../helpers/pages.ts'
import { until } from '../helpers/processes.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const PAGE_BYTES_MAX = 200_000
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const GUIDES = readdirSync(join(ROOT, 'src/docs/guides')).filter((name) => name !== 'README.md')
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const { server } = await openTenant()
const pages = await readPages(server.url)
const pageAt = new Map(pages.map((page) => [page.path, page]))
type Entry = readonly [kind: string, title: string, detail: string, address: string, names: string]
const fetchJson = async (path: string) => JSON.parse(await (await fetch(server.url + path)).text())
const index: readonly Entry[] = await fetchJson('/docs/search.json')

t.test('from the start page links lead to every guide and every resource', async (t) => {
  for (const name of GUIDES) t.ok(pageAt.has(`/docs/guides/${name.replace(/\.md$/, '')}`), name)
  t.ok(pageAt.has('/docs/guides/contract'))
  const { tags } = await fetchJson('/openapi.json')
  t.ok(tags.length > 10)
  for (const { name } of tags) t.ok(pageAt.has(`/docs/api/${name}`), name)
  for (const name of ['api', 'errors', 'webhook-events', 'rule-fields', 'schemas'])
    t.ok(pageAt.has(`/docs/${name}`), name)
})

t.test('each page is HTML of at most 200 KB under a policy that allows our own files alone', async (t) => {
  for (const { path, response, html } of pages) {
    t.equal(response.status, 200, path)
    t.equal(response.headers.get('content-type'), 'text/html; charset=utf-8', path)
    t.equal(response.headers.get('content-security-policy'), POLICY, path)
    t.equal(response.headers.get('x-content-type-options'), 'nosniff', path)
    const bytes = Buffer.byteLength(html)
    t.ok(bytes <= PAGE_BYTES_MAX, `${path}: ${bytes} bytes`)
    t.notMatch(
      html,
      /<(?:style|iframe|img)\b|<[a-z][^>]*\s(?:style|on\w+)=/i,
      `${path} has nothing that the policy refuses`,
    )
    const loaded = [...html.matchAll(/<(?:script|link)\b[^>]*(?:src|href)="([^"]+)"/g)].map(([, from]) => from)
    t.same(loaded, ['/docs/icon.svg', '/docs/docs.css', '/docs/docs.js'], path)
    t.notMatch(html, /<script[^>]*>[^<]/, 'no script stands in the page')
    t.equal(html.match(/<h1>/g)?.length, 1, `${path} has one title`)
  }
})

/** What is wrong with a link; null where it leads to something. */
function wrongWith(href: string, from: string): string | null {
  const to = new URL(href, server.url + from)
  if (to.origin !== server.url) return to.protocol === 'https:' ? null : href
  if (/^\/(docs\/(docs\.css|icon\.svg)|openapi\.json|postman\.json)$/.test(to.pathname)) return null
  const page = pageAt.get(to.pathname)
  if (page?.response.status !== 200) return href
  return to.hash === '' || anchorsOf(page.html).has(decodeURIComponent(to.hash.slice(1))) ? null : href
}

t.test('every link of every page leads somewhere, its anchor too', async (t) => {
  for (const { path, html } of pages) {
    const dead = linksOf(html).filter((href) => wrongWith(href, path) !== null)
    t.same(dead, [], path)
    const ids = [...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id)
    t.equal(new Set(ids).size, ids.length, `${path}: no anchor twice`)
  }
})

t.test('the search knows guides, endpoints, errors, fields, and names places that there are', async (t) => {
  t.ok(JSON.stringify(index).length <= PAGE_BYTES_MAX)
  t.same(
    index.filter(([, , , address]) => wrongWith(address, '/docs') !== null),
    [],
  )
  const named = (kind: string) => index.filter(([of]) => of === kind).map(([, title, detail]) => `${detail} ${title}`)
  const { paths } = await fetchJson('/openapi.json')
  const endpoints = Object.values(paths).flatMap((item) => Object.keys(item as object))
  t.equal(named('Endpoint').length, endpoints.length)
  t.equal(named('Error').length, Object.keys(ERRORS).length)
  for (const name of GUIDES) {
    const [, title = ''] = /^# (.+)/.exec(readFileSync(join(ROOT, 'src/docs/guides', name), 'utf8')) ?? []
    t.ok(
      index.some(([kind, said]) => kind === 'Guide' && said === title),
      title,
    )
  }
  for (const field of ['linkedId', 'storageToken', 'FINGERPOST_TRUSTED_PROXIES', 'verifiedOnly'])
    t.ok(
      index.some(([, , , , names]) => names.split(' ').includes(field)),
      field,
    )
  t.ok(index.some(([kind, title]) => kind === 'Rule field' && title === 'signals.bot.detected'))
})

t.test('what was one page is found from its old addresses', async (t) => {
  const { webhooks, components } = await fetchJson('/openapi.json')
  const old = [
    ...Object.keys(ERRORS).map((code) => `error-${code.replaceAll('_', '-')}`),
    ...Object.keys(webhooks).map((type) => `event-${type.replaceAll(/[^a-z]+/g, '-')}`),
    ...Object.keys(components.schemas).map((name) => `schema-${name}`),
    ...['op-identify', 'op-listEvents', 'authentication', 'conventions', 'client', 'claims', 'attribution'],
  ]
  for (const id of old) {
    const [first] = index.filter(([kind, , , address]) => kind !== 'Guide' && address.endsWith(`#${id}`))
    t.ok(first, id)
  }
})

t.test('pages and files are compressed, and not sent to those who have them', async (t) => {
  for (const path of [
    '/docs',
    '/docs/guides/rules',
    '/docs/docs.css',
    '/docs/search.json',
    '/openapi.json',
    '/postman.json',
  ]) {
    const ask = (headers: Record<string, string>) => fetch(server.url + path, { headers })
    const coded = async () => (await ask({ 'Accept-Encoding': 'br' })).headers.get('content-encoding') === 'br'
    await until(`${path} is compressed`, 60_000, coded)
    const answer = await ask({ 'Accept-Encoding': 'br' })
    await answer.arrayBuffer()
    const etag = answer.headers.get('etag') ?? ''
    t.equal(answer.headers.get('vary'), 'Accept-Encoding', path)
    t.equal((await ask({ 'Accept-Encoding': 'br', 'If-None-Match': etag })).status, 304, path)
    t.not(
      (await ask({ 'Accept-Encoding': 'identity' })).headers.get('etag'),
      etag,
      `${path}: another coding is another body`,
    )
  }
})

t.test('a page that there is not is an unknown path', async (t) => {
  t.equal((await fetch(`${server.url}/docs/`)).status, 200, 'a slash behind the start page is one too')
  for (const path of [
    '/docs/nothing',
    '/docs/guides/nothing',
    '/docs/guides/',
    '/docs/..%2fguides.json',
    '/docs/guides.json',
  ]) {
    const answer = await fetch(server.url + path)
    t.equal(answer.status, 404, path)
    t.equal(JSON.parse(await answer.text()).error.code, 'route_not_found', path)
  }
})

t.test('HTML in a guide is shown as text, and a link that nothing is behind fails the build', async (t) => {
  const { render } = await import(pathToFileURL(join(ROOT, '.scripts/build-docs.mjs')).href)
  const make = (markdown: string) => render(`# A <b>title</b>\n\n${markdown}\n`, 'x.md', new Set(['rules']))
  const { html } = make(
    '<script>alert(1)</script>\n\nAnd <img src=x onerror=alert(1)> within, `<i>`.\n\n```html\n<b>\n```',
  )
  t.notMatch(html, /<(script|img|i|b)\b/)
  t.match(plainText(html), '<script>alert(1)</script>')
  t.match(
    make('[Rules](rules.md#order), [the contract](../contract.md), [all](README.md)').html,
    'href="/docs/guides/rules#order"',
  )
  for (const dead of ['[x](nothing.md)', '[x](../../engine/engine.ts)', '[x](javascript:alert(1))', '![x](x.png)'])
    t.throws(() => make(dead), dead)
})
