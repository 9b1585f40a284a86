// Everything that README, deploy/README, the first start and /docs print to be pasted works as it stands: each block runs against a
// real server, or is named in printed-blocks.ts with the reason why it cannot, and is then at least read.

import t from 'tap'
import { SCOPES } from '../../src/domain/workspace.ts'
import { welcomeText } from '../../src/ops/welcome.ts'
import { eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { readPages } from '../helpers/pages.ts'
import { blocksOf, blocksOfPage, removeModules, shell } from '../helpers/printed.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'
import { read } from './deploy.ts'
import { firstLine, openTrier, reasonOf } from './printed-blocks.ts'

t.teardown(cleanUp)
t.teardown(removeModules)
const tenant = await openTenant()
const { keys, url } = tenant.server
const { tryBlock, env } = await openTrier(tenant)

for (const [document, folder] of [
  ['README.md', '.'],
  ['deploy/README.md', 'deploy'],
] as const) {
  for (const block of blocksOf(read(document))) {
    const reason = reasonOf(block)
    const kept = reason === undefined ? 'works' : `can be read (${reason})`
    t.test(`${document}: “${firstLine(block)}” ${kept}`, (t) => tryBlock(t, block, folder))
  }
}

t.test('what the first start prints works as it stands', async (t) => {
  const shown = [{ kind: 'secret', env: 'test', text: keys.testSecret }] as const
  const said = welcomeText({ listensOn: url, url, keys: shown, setupLink: null, demoLink: null, advice: [] })
  const from = said.indexOf('  export ')
  t.not(from, -1)
  const { code, said: answer } = await shell(said.slice(from), { CURL_HOME: env.CURL_HOME })
  t.equal(code, 0, answer)
  t.match(answer, /"requestId":"req_/)
})

// What the guides print is tried of their source, in guides.test.ts.
const page = (await readPages(url))
  .filter(({ path }) => !path.startsWith('/docs/guides/'))
  .flatMap(({ html }) => blocksOfPage(html))

t.test('/docs: everything but the calls works or can be read', async (t) => {
  for (const block of page) if (!block.code.startsWith('curl ')) await tryBlock(t, block)
})

/** The quick run makes every fourth call. */
const CALLS_APART = sized({ quick: 4, usual: 1, long: 1 })

/** A key with every scope, of a workspace of its own: rotating ends the others there. */
async function keyOfKeys(): Promise<string> {
  const { server: own, admin } = await openTenant()
  const body = { kind: 'secret', environment: 'test', scopes: SCOPES }
  return (await admin('POST', `/workspaces/${own.workspace}/keys`, body)).body.key
}

t.test('/docs: every call is understood by the server, even where its ids name nothing here', async (t) => {
  const calls = page.filter(({ code }) => code.startsWith('curl '))
  t.ok(calls.length > 50)
  for (const { code } of calls.filter((_, i) => i % CALLS_APART === 0)) {
    const needs = code.includes('/v1/keys') ? { FINGERPOST_TEST_SECRET_KEY: await keyOfKeys() } : {}
    // A service on a busy machine may ask to be asked again, which every client is to do.
    const { said, status } = await eventually(
      async () => {
        const { said } = await shell(code, { ...env, ...needs })
        return { said, status: Number(/\n(\d{3})\n$/.exec(said)?.[1] ?? 0) }
      },
      ({ status }) => status !== 503,
    )
    const first = code.slice(0, code.indexOf('\n'))
    t.ok((status >= 200 && status < 300) || (status === 404 && /_[0-9A-Za-z]{20}/.test(code)), `${first}: ${said}`)
    t.notMatch(code, /"(?:since|until|from|to)": "20\d\d-/, 'it names no moment that will be long ago')
  }
})

t.test('one spelling of each name to be pasted', async (t) => {
  const texts = [
    read('README.md'),
    read('deploy/README.md'),
    read('deploy/.env.example'),
    ...page.map(({ code }) => code),
  ]
  for (const text of texts)
    t.notMatch(text, /(?<!FINGERPOST_|TEST_|…_)SECRET_KEY|(?<!FINGERPOST_|…_)TEST_SECRET_KEY|\bFINGERPOST_KEY/)
})
