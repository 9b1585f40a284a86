// The packages that are published: what is in them, that they install into empty projects, and that they work there against a server.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { runProgram } from '../helpers/child.ts'
import { browserBody, CHROME } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import {
  contentsOf,
  installedFiles,
  MEGABYTE,
  makeProject,
  packAll,
  tarballBytes,
  tarballOf,
} from '../helpers/packed.ts'
import { cleanUp, historyOpen, startServer } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'
import { root } from './deploy.ts'

t.teardown(cleanUp)

/** Projects install the packages. */
const INSTALLS = sized({ quick: false, usual: true, long: true })
/** The registry is asked, and everything the server needs is installed. */
const WHOLE = sized({ usual: false, long: true })
const TSC = join(root, 'node_modules/typescript/bin/tsc')

packAll()
const { server } = await openTenant()

const USED_IN_NODE = `
import { openFingerpost, FingerpostError } from '@fingerpost/node'
import { judge } from '@fingerpost/node/judge'
import { guarded, webhookRoute } from '@fingerpost/node/next'
import { guard } from '@fingerpost/node/express'
import { verifyWebhook } from '@fingerpost/node/webhooks'
const { SERVICE, KEY, BODY } = process.env
const fingerpost = openFingerpost({ baseUrl: SERVICE, key: KEY })
const { requestId, visitorId } = await fingerpost.identify(JSON.parse(BODY))
const judgement = await judge(requestId, { fingerpost })
const headers = { 'x-fingerpost-request-id': requestId }
const route = guarded({ fingerpost }, (_request, event) => Response.json({ visitorId: event?.visitorId }))
const answer = await (await route(new Request('http://shop.example/buy', { headers }))).json()
const refused = await route(new Request('http://shop.example/buy'))
const locals = {}
await guard({ fingerpost })({ headers }, { locals }, () => {})
let code = null
try {
  await openFingerpost({ baseUrl: SERVICE, key: 'sk_test_wrong' }).visitors.get(visitorId)
} catch (error) {
  code = error instanceof FingerpostError ? error.code : String(error)
}
const post = webhookRoute({ secret: 's', onEvent() {} })
const unsigned = await post(new Request('http://shop.example/hook', { method: 'POST', body: '{}' }))
const genuine = await verifyWebhook('{"a":1}', {
  'x-service-timestamp': '1700000000',
  'x-service-signature': 'sha256=5f546eef70c9127caf7facd578ef04d95f9e33625fb033341afc26bcfa798657',
}, 'whsec_dGVzdA==', { now: 1700000000000 })
console.log(JSON.stringify({
  passes: judgement.passes, same: [answer.visitorId, locals.fingerpost.visitorId].every((id) => id === visitorId),
  refused: refused.status, code, unsigned: unsigned.status, genuine,
}))
`
const WORKED = { passes: true, same: true, refused: 403, code: 'invalid_api_key', unsigned: 401, genuine: true }
const env = {
  SERVICE: server.url,
  KEY: server.keys.testSecret,
  BODY: JSON.stringify({ ...browserBody(), userAgent: CHROME, ip: '203.0.113.9' }),
}

const USED_IN_PAGE = `
import { FingerpostError, load, type IdentifyResult, type PendingResult } from '@fingerpost/browser'
import { useFingerpost } from '@fingerpost/browser/react'
const client = load({ publicKey: 'pk_test_x', endpoint: 'https://id.shop.example' })
export const visit: Promise<IdentifyResult | PendingResult> = client.get({ linkedId: 'user_42', tag: { action: 'login' } })
export const codeOf = (error: unknown): string | null => (error instanceof FingerpostError ? error.code : null)
export function useVisitor(): string | null {
  const { data } = useFingerpost({ publicKey: 'pk_test_x', immediate: false })
  return data !== null && 'visitorId' in data ? data.visitorId : null
}
`
const USED_IN_TYPES = `
import { openFingerpost, type Event, type FingerpostError } from '@fingerpost/node'
import { guard, webhookReceiver } from '@fingerpost/node/express'
import { guarded, webhookRoute } from '@fingerpost/node/next'
const fingerpost = openFingerpost({ baseUrl: 'https://id.shop.example', key: 'sk_live_x' })
export const POST = webhookRoute({ secret: 's', onEvent: ({ type, eventId, body }) => console.log(type, eventId, body) })
export const buy = guarded({ fingerpost }, (request: Request, event: Event | null) => new Response(event?.visitorId))
export const middleware = [webhookReceiver({ secret: 's', onEvent: () => undefined }), guard({ fingerpost })]
export async function verdictOf(requestId: string): Promise<'allow' | 'challenge' | 'block' | null> {
  return (await fingerpost.events.get(requestId)).verdict
}
export const fieldOf = (error: FingerpostError): string | undefined => error.field
// @ts-expect-error: a verdict that there is not
export const none = async (id: string) => (await fingerpost.events.get(id)).verdict === 'maybe'
`

t.test('the package for Node is small, has nothing of the server, and uses nothing that only Node has', async (t) => {
  const { files } = contentsOf('node')
  t.ok(tarballBytes('node') < 50_000, `${tarballBytes('node')} bytes`)
  t.ok(files.every((file) => /^(client|domain)\/[\w-]+\.(js|d\.ts)$|^(README\.md|LICENSE|package\.json)$/.test(file)))
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    const text = readFileSync(join(root, 'build/packages/node', file), 'utf8')
    t.notMatch(text, /from ['"](?!\.)|import\(|\b(Buffer|process|require)\b/, file)
  }
})

t.test('the package for browsers is the SDK in both forms, its types and the hook', async (t) => {
  const { files } = contentsOf('browser')
  const types = files.filter((file) => file.startsWith('types/'))
  const others = files.filter((file) => !file.startsWith('types/')).sort()
  t.same(others, ['LICENSE', 'README.md', 'package.json', 'react.js', 'sdk.js', 'sdk.mjs'])
  t.ok(types.includes('types/esm.d.ts') && types.includes('types/react.d.ts'))
  for (const form of ['sdk.js', 'sdk.mjs']) {
    t.equal(
      readFileSync(join(root, 'build/packages/browser', form), 'utf8'),
      readFileSync(join(root, 'build/sdk', form), 'utf8'),
    )
  }
})

t.test('the reference of the SDK names every option and every function', async (t) => {
  const reference = readFileSync(join(root, 'build/packages/browser/README.md'), 'utf8')
  const types = readFileSync(join(root, 'src/sdk/types.ts'), 'utf8')
  for (const name of ['LoadOptions', 'GetOptions', 'Client']) {
    const [, body = ''] = new RegExp(`^export type ${name} = \\{\\n([^]*?)^\\}`, 'm').exec(types) ?? []
    const members = [...body.matchAll(/^ {2}(\w+)[?(:]/gm)].map(([, member]) => member)
    t.ok(members.length > 2, name)
    for (const member of members) t.match(reference, new RegExp(`^\\| \`${member}\\b`, 'm'), `${member} of ${name}`)
  }
})

t.test('the package of the server is prebuilt, at most 6 MB, and has neither tests nor benches', async (t) => {
  const { files, bytes } = contentsOf('server')
  t.ok(bytes <= 6 * MEGABYTE, `${bytes} bytes unpacked`)
  t.same(
    files.filter((file) => /(^|\/)(test|bench|src|node_modules)\//.test(file) || file.endsWith('.map')),
    [],
  )
  for (const file of [
    'build/server/main.js',
    'build/server/shard.worker.js',
    'build/sdk/sdk.js',
    'build/docs/guides.json',
    'build/docs/docs.css',
    'build/console/index.html',
    'config/default.json',
  ]) {
    t.ok(files.includes(file), file)
  }
  const manifest = JSON.parse(readFileSync(join(root, 'build/packages/server/package.json'), 'utf8'))
  t.notOk(manifest.private || manifest.devDependencies || manifest.scripts)
  t.equal(manifest.bin.fingerpost, 'build/server/main.js')
  t.ok(manifest.optionalDependencies.chdb)
})

if (INSTALLS) {
  t.test('both small packages install into an empty project without another package, and work there', async (t) => {
    const project = makeProject([tarballOf('browser'), tarballOf('node')])
    const resolve = createRequire(join(project.dir, 'x.js')).resolve
    t.ok(resolve('@fingerpost/browser/sdk.js'))
    t.equal(
      installedFiles(project, '').filter((file) => !file.includes('/@fingerpost/')).length,
      1,
      "npm's own list alone",
    )

    project.write('use.mjs', USED_IN_NODE)
    t.same(JSON.parse(project.run(process.execPath, ['use.mjs'], env)), WORKED)
    project.write('render.mjs', "import * as sdk from '@fingerpost/browser'\nconsole.log(Object.keys(sdk).join())")
    t.match(project.run(process.execPath, ['render.mjs']), /load/, 'a server that renders pages can load the SDK')

    for (const name of ['browser', 'node']) {
      const text = readFileSync(join(root, 'build/packages', name, 'README.md'), 'utf8')
      const imports = [...text.matchAll(/^import \{ (.+) \} from '(@fingerpost\/[\w/]+)'$/gm)]
      t.ok(imports.length > 0, name)
      for (const [, names = '', from = ''] of imports.filter(
        ([, , module]) => module !== '@fingerpost/browser/react',
      )) {
        project.write('shown.mjs', `import * as shown from '${from}'\nconsole.log(Object.keys(shown).join('\\n'))`)
        const exported = project.run(process.execPath, ['shown.mjs']).split('\n')
        for (const shown of names.split(', ')) t.ok(exported.includes(shown), `${shown} of ${from}`)
      }
    }

    project.write('page.ts', USED_IN_PAGE)
    project.write('back.ts', USED_IN_TYPES)
    for (const resolution of [
      ['--module', 'esnext', '--moduleResolution', 'bundler'],
      ['--module', 'nodenext'],
    ]) {
      const options = [
        '--noEmit',
        '--strict',
        '--exactOptionalPropertyTypes',
        '--target',
        'es2022',
        '--lib',
        'es2022,dom',
      ]
      project.run(process.execPath, [TSC, ...options, '--types', '', ...resolution, 'page.ts', 'back.ts'])
    }
    t.pass('TypeScript takes both by either resolution, their declarations checked too')

    project.write('index.html', '<script type="module" src="/page.js"></script>')
    project.write(
      'page.js',
      "import { load } from '@fingerpost/browser'\nglobalThis.client = load({ publicKey: 'pk_test_x' })",
    )
    project.run(process.execPath, [join(root, 'node_modules/vite/bin/vite.js'), 'build', '--logLevel', 'error'])
    const bundled =
      installedFiles({ ...project, dir: project.dir }, '../dist').find((file) => file.endsWith('.js')) ?? ''
    t.match(readFileSync(bundled, 'utf8'), '/v1/identify', 'Vite bundles the SDK')
  })

  t.test("the package's types are those of the API", async (t) => {
    const source = readFileSync(join(root, 'src/client/types.ts'), 'utf8')
    const names = [...source.matchAll(/^export (?:type|interface) (\w+)\b(?!<)/gm)].map(([, name]) => name)
    t.ok(names.length > 50)
    const project = join(root, 'build/packages/.same')
    mkdirSync(project, { recursive: true })
    t.teardown(() => rmSync(project, { recursive: true, force: true }))
    const lines = names.map((name) => `export const ${name}: Same<api.${name}, packed.${name}> = true`)
    const head = [
      "import type * as api from '../../../src/client/types.ts'",
      "import type * as packed from '../node/client/types.d.ts'",
      'type Frozen<T> = T extends readonly (infer I)[] ? readonly Frozen<I>[] : T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T',
      'type Equal<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false',
      'type Same<A, B> = Equal<Frozen<A>, Frozen<B>>',
    ]
    writeFileSync(join(project, 'same.ts'), [...head, ...lines].join('\n'))
    const compilerOptions = {
      noEmit: true,
      rootDir: root,
      exactOptionalPropertyTypes: true,
      allowImportingTsExtensions: true,
    }
    const options = { extends: join(root, 'tsconfig.json'), compilerOptions, include: ['same.ts'], exclude: [] }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(options))
    const { code, said } = await runProgram(process.execPath, [TSC, '-p', project], {})
    t.equal(code, 0, said)
  })
}

if (WHOLE) {
  t.test('Bun runs the package for Node, and esbuild bundles both', async (t) => {
    const online = ['--prefer-offline']
    const project = makeProject(
      [tarballOf('node'), tarballOf('browser'), 'esbuild', 'react', '@oven/bun-linux-x64'],
      online,
    )
    project.write('use.mjs', USED_IN_NODE)
    const bun = join(project.dir, 'node_modules/@oven/bun-linux-x64/bin/bun')
    t.same(JSON.parse(project.run(bun, ['use.mjs'], env)), WORKED)
    project.write('page.ts', USED_IN_PAGE)
    const bundle = (...args: string[]) =>
      project.run(join(project.dir, 'node_modules/.bin/esbuild'), ['--bundle', ...args])
    t.match(bundle('page.ts', '--format=iife'), '/v1/identify')
    t.match(bundle('use.mjs', '--format=esm', '--platform=neutral', '--main-fields=module,main'), '/v1/events/')
  })

  t.test('npx fingerpost start works in an empty folder that has installed the tarball', async (t) => {
    const project = makeProject([tarballOf('server')], ['--prefer-offline', '--ignore-scripts'])
    t.match(project.run('npx', ['--no', '--', 'fingerpost', '--version']), /^fingerpost \d/)
    const server = await startServer({ main: join(project.dir, 'node_modules/fingerpost/build/server/main.js') })
    await historyOpen(server)
    const { openFingerpost } = await import(join(project.dir, 'node_modules/fingerpost/client/client.js'))
    const fingerpost = openFingerpost({ baseUrl: server.url, key: server.keys.testSecret })
    t.ok((await fingerpost.identify(JSON.parse(env.BODY))).visitorId)
    t.equal(await server.stop(), 0)
  })
}
