// The route table, the OpenAPI document and the reference say the same, and what they say holds.

import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { serveHealth } from '../../src/api/health.ts'
import { openApiDocument } from '../../src/api/reference/document.ts'
import { endpointsOf, type MediaType, type OpenApiDocument, responseOf } from '../../src/api/reference/openapi.ts'
import { OUTSIDE_ROWS } from '../../src/api/reference/outside.ts'
import { serveReference } from '../../src/api/reference/serve.ts'
import { VERIFY_SNIPPETS } from '../../src/api/reference/snippets.ts'
import { docsOf, ERRORS, type ErrorCode } from '../../src/domain/errors.ts'
import { openCompiler } from '../helpers/described.ts'
import { plainText, readPages } from '../helpers/pages.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server } = await openTenant()
const fetchText = async (path: string) => (await fetch(server.url + path)).text()
const document: OpenApiDocument = JSON.parse(await fetchText('/openapi.json'))
const endpoints = [...endpointsOf(document)]
const named = endpoints.map(({ method, path }) => `${method} ${path}`).sort()
const SOURCES = fileURLToPath(new URL('../../../src', import.meta.url))

/** Every file of the server's source with its text. */
const sources = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => [name.replaceAll('\\', '/'), readFileSync(join(SOURCES, name), 'utf8')] as const)

t.test('the document is one of OpenAPI 3.1, and its schemas are JSON Schema 2020-12', async (t) => {
  const official = JSON.parse(readFileSync(new URL('./oas-3.1.schema.json', import.meta.url), 'utf8'))
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  const check = ajv.compile(official)
  t.ok(check(document), JSON.stringify(check.errors?.slice(0, 3)))
  t.notOk(check({ ...document, paths: { 'no-slash': {} } }), 'the check can fail')
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    t.ok(ajv.validateSchema(schema), `${name}: ${ajv.errorsText()}`)
  }
  // The server compiles them without asking.
  for (const { method, path, operation } of endpoints) {
    const bodies = [operation.requestBody, ...Object.values(operation.responses)]
    const contents = bodies.flatMap((body) =>
      Object.values((body as { content?: Record<string, MediaType> })?.content ?? {}),
    )
    const faulty = [...contents, ...(operation.parameters ?? [])].filter(({ schema }) => !ajv.validateSchema(schema))
    t.same(faulty, [], `${method} ${path}`)
  }
})

t.test('the ids of operations are names that generators of code take', async (t) => {
  const told = Object.values(document.webhooks).map(({ post }) => post)
  const ids = [...endpoints.map(({ operation }) => operation), ...told].map(({ operationId }) => operationId)
  t.same(
    ids.filter((id) => !/^[A-Za-z0-9_.-]+$/.test(id)),
    [],
  )
  t.equal(new Set(ids).size, ids.length)
})

t.test('every endpoint is described', async (t) => {
  const bare = endpoints.filter(({ operation }) => operation['x-undescribed'])
  const undescribed = bare.map(
    ({ method, path }) => `${method} ${path}: write a RouteDoc in src/api/answers and name it as \`doc\` in its row`,
  )
  t.same(undescribed, [], 'every row has its doc')
  const silent = endpoints.flatMap(({ method, path, operation }) =>
    (operation.parameters ?? [])
      .filter(({ description }) => description === undefined)
      .map(({ name }) => `${method} ${path}: name ${name} in \`members\` of its doc, or in PATH_PARAMETERS`),
  )
  t.same(silent, [], 'every parameter has a sentence')
  const groups = new Set(document.tags.filter(({ description }) => description !== '').map(({ name }) => name))
  const strays = endpoints.filter(({ operation }) => !operation.tags.every((tag) => groups.has(tag)))
  t.same(
    strays.map(({ path }) => `${path}: name its group in TAGS`),
    [],
    'every group has a sentence',
  )
})

t.test('the methods that the server has at a path are those of the document', async (t) => {
  for (const [path, item] of Object.entries(document.paths)) {
    const methods = Object.keys(item).map((method) => method.toUpperCase())
    const other = ['PATCH', 'PUT', 'POST', 'DELETE', 'GET'].find((method) => !methods.includes(method)) ?? 'PATCH'
    const answer = await fetch(server.url + path.replaceAll(/[{}]/g, ''), { method: other })
    await answer.arrayBuffer()
    t.equal(answer.status, 405, `${other} ${path}`)
    const allowed = (answer.headers.get('allow') ?? '').split(', ').filter((one) => one !== 'HEAD' && one !== 'OPTIONS')
    t.same(allowed.sort(), methods.sort(), path)
  }
})

t.test('no row of the route table is missing in the document', async (t) => {
  const rows = sources
    .filter(([name]) => name.startsWith('api/'))
    .flatMap(([, text]) => [...text.matchAll(/^\s+path: '(\/(?:v1|admin)\/[^']*)'/gm)].map(([, path = '']) => path))
  t.ok(rows.length > 20, 'rows were found')
  const paths = new Set(Object.keys(document.paths))
  const missing = rows.filter((path) => !paths.has(path.replaceAll(/:(\w+)/g, '{$1}')))
  t.same(missing, [])
})

t.test('what is served outside of the route table is named as such', async (t) => {
  const served: string[] = []
  const http = { route: (method: string, path: string) => void served.push(`${method} ${path}`) }
  serveHealth(http, { checks: () => ({}), info: () => ({}), metrics: async () => '', metricsContentType: '' })
  serveReference(http, { rows: [], version: '0', dir: '' })
  const identify = ['POST /v1/identify', 'POST /v1/identify/forget']
  const pages = 'GET /docs/*'
  t.ok(served.includes(pages), 'pages for people below the start page are files, which test/api/docs.test.ts reads')
  const described = served.filter((one) => one !== pages)
  t.same([...described, ...identify].sort(), OUTSIDE_ROWS.map(({ method, path }) => `${method} ${path}`).sort())
  const callers = sources.filter(([, text]) => /\bhttp\.route\(/.test(text)).map(([name]) => name)
  t.same(
    callers.sort(),
    [
      'api/api.ts',
      'api/console/pages.ts',
      'api/health.ts',
      'api/reference/serve.ts',
      'api/static.ts',
      'ingress/identify.ts',
    ],
    'a new place that serves something belongs into OUTSIDE_ROWS, or is for files only',
  )
})

t.test('the reference and the Postman collection have exactly the endpoints of the document', async (t) => {
  const pages = (await readPages(server.url)).filter(({ path }) => !path.startsWith('/docs/guides/'))
  const whole = pages.map(({ html }) => html).join('')
  const shown = pages.flatMap(({ html }) =>
    [...html.matchAll(/<p class="route"><span class="method (\w+)">\w+<\/span> <code>(.*?)<\/code>/g)].map(
      ([, method = '', path = '']) => `${method.toUpperCase()} ${plainText(path)}`,
    ),
  )
  t.same(shown.sort(), named)
  for (const code of Object.keys(ERRORS)) t.match(whole, `id="error-${code.replaceAll('_', '-')}"`)
  for (const type of Object.keys(document.webhooks)) t.match(whole, `<code>${type}</code></a></h2>`)
  for (const name of Object.keys(document.components.schemas)) t.match(whole, `id="schema-${name}"`)

  const collection = JSON.parse(await fetchText('/postman.json'))
  const requests = collection.item.flatMap(
    (folder: { item: { request: { method: string; url: { path: string[] } } }[] }) =>
      folder.item.map(
        ({ request }) => `${request.method} /${request.url.path.join('/').replaceAll(/:(\w+)/g, '{$1}')}`,
      ),
  )
  t.same(requests.sort(), named)
})

t.test('the link of every error leads to its place in the reference', async (t) => {
  const page = await fetchText('/docs/errors')
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const [path, place] = docsOf(code).split('#')
    t.equal(path, '/docs/errors')
    t.ok(page.includes(`id="${place}"`), code)
  }
})

t.test('every example has the shape it is an example of', async (t) => {
  const answers = openCompiler(document, 'answers')
  const requests = openCompiler(document, 'requests')
  const holds = (name: string, media: MediaType | undefined, compile: typeof answers) => {
    if (media?.example === undefined) return
    const check = compile(media.schema)
    t.ok(check(media.example), `${name}: ${JSON.stringify(check.errors?.slice(0, 3))}`)
  }
  for (const { method, path, operation } of endpoints) {
    holds(`body of ${method} ${path}`, operation.requestBody?.content['application/json'], requests)
    for (const [status, of] of Object.entries(operation.responses)) {
      const { content = {} } = responseOf(document, of)
      const media = content['application/json']
      holds(`${method} ${path} ${status}`, media, answers)
      if (media !== undefined && Object.keys(media.examples ?? {}).length === 0 && !/\.json$/.test(path)) {
        t.not(media.example, undefined, `${method} ${path} ${status} has an example`)
      }
      for (const { value } of Object.values(media?.examples ?? {})) {
        t.ok(answers(media?.schema ?? {})(value), `refusals of ${method} ${path}`)
      }
    }
  }
  for (const [type, { post }] of Object.entries(document.webhooks)) {
    holds(type, post.requestBody?.content['application/json'], answers)
  }
})

t.test('two endpoints of one id, or two schemas of one name, make no document', async (t) => {
  const [row] = OUTSIDE_ROWS
  if (row === undefined) throw new Error('no rows')
  t.throws(() => openApiDocument([row, { ...row, path: '/v1/again' }], '0'), /two endpoints are called/)
})

t.test('the snippets of the reference tell genuine deliveries from others', async (t) => {
  const folder = temporaryFolder()
  const code = (language: string) => VERIFY_SNIPPETS.find((one) => one.language === language)?.code ?? ''
  const secret = 'whsec_c2VjcmV0IG9mIHRoZSB0ZXN0'
  const body = '{"eventType":"visitor.new","data":{"name":"ü"}}'
  const now = String(Math.floor(Date.now() / 1_000))
  const sign = (timestamp: string) =>
    `sha256=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`
  const module = join(folder, 'verify.mjs')
  writeFileSync(module, code('Node'))
  writeFileSync(join(folder, 'body.json'), body)
  const { isGenuine } = await import(pathToFileURL(module).href)
  const inNode = (timestamp: string, signature: string): boolean =>
    isGenuine(secret, { 'x-service-timestamp': timestamp, 'x-service-signature': signature }, body)
  const inShell = (timestamp: string, signature: string): boolean => {
    const env = { PATH: process.env.PATH, SECRET: secret, TIMESTAMP: timestamp, SIGNATURE: signature }
    try {
      execFileSync('sh', ['-c', code('Shell')], { cwd: folder, env })
      return true
    } catch {
      return false
    }
  }
  for (const verify of [inNode, inShell]) {
    t.equal(verify(now, sign(now)), true)
    t.equal(
      verify(
        now,
        sign(now).replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      ),
      false,
    )
    t.equal(verify(String(Number(now) - 301), sign(String(Number(now) - 301))), false, 'too old')
    t.equal(verify(String(Number(now) + 5), sign(now)), false, 'another time')
    t.equal(verify(now, ''), false)
  }
})
