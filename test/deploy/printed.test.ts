// Everything that README, deploy/README and /docs print to be pasted works as it stands: each block runs against a real server, or
// is named here with the reason why it cannot, and is then at least read.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Script } from 'node:vm'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { signBody } from '../../src/domain/webhook-signature.ts'
import { SCOPES } from '../../src/domain/workspace.ts'
import { welcomeText } from '../../src/ops/welcome.ts'
import { browserBody, CHROME } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'
import { read, root } from './deploy.ts'
import {
  asFunction,
  asModule,
  type Block,
  blocksOf,
  blocksOfPage,
  curlHome,
  removeModules,
  run,
  shell,
} from './printed.ts'

t.teardown(cleanUp)
t.teardown(removeModules)
const { server, identify } = await openTenant()
const { keys, url } = server

/** Blocks that cannot run here, by what they begin with. */
const NOT_RUN: readonly (readonly [begins: string, reason: string])[] = [
  ['npm ci && npm start', 'npm ci replaces the packages that this very run uses'],
  ['npm ci && npm test', 'npm ci replaces the packages that this very run uses'],
  ['<script src=', 'needs a browser: test/browser runs the SDK'],
  ['export FINGERPOST_IP_TOR_URL', 'fetches lists from the internet'],
  ['func verify(', 'there is no Go here'],
  ['package receiver', 'there is no Go here'],
  ['FINGERPOST_DEPLOYMENT_MODE=cluster', 'needs NATS, Redis and ClickHouse: test/cluster runs the roles'],
  ['docker compose -f deploy/compose.single.yml', 'there is no container engine here'],
  ['cp deploy/.env.example', 'there is no container engine here'],
]
/** Commands that go on until they are stopped, with what they print when they work. */
const ENDLESS: readonly (readonly [begins: string, says: string])[] = [['npx fingerpost webhooks listen', 'listening']]

const env = {
  FINGERPOST_URL: url,
  FINGERPOST_TEST_SECRET_KEY: keys.testSecret,
  FINGERPOST_SECRET_KEY: keys.secret,
  FINGERPOST_OPERATOR_TOKEN: server.operatorToken,
  CURL_HOME: curlHome(),
}
const SECRET = 'whsec_dGVzdA=='
const BODY = '{"a":1}'
const nowSeconds = () => Math.floor(Date.now() / 1_000)
const signature = (seconds: number) => signBody(SECRET, seconds, Buffer.from(BODY))

const reasonOf = ({ code }: Block) => NOT_RUN.find(([begins]) => code.startsWith(begins))?.[1]
const firstLine = ({ code }: Block) => code.slice(0, code.indexOf('\n')).slice(0, 70)

/** What holds of a block that does not run. */
async function look(t: Test, { language, code }: Block): Promise<void> {
  if (language === 'sh') t.equal((await run('bash', ['-n', '-c', code], {})).said, '', 'bash can read it')
  if (language === 'html') {
    for (const [, script = ''] of code.matchAll(/<script>([\s\S]*?)<\/script>/g)) t.ok(new Script(script))
  }
  if (language === 'go') {
    for (const [open, close] of ['()', '{}'].map((pair) => [...pair] as [string, string])) {
      t.equal(code.split(open).length, code.split(close).length, `as many ${open} as ${close}`)
    }
  }
  const set = [...code.matchAll(/\b(FINGERPOST_\w+)='?([^\s']*)/g)].map(
    ([, name = '', value = '']) => [name, value] as const,
  )
  t.ok(readConfig(Object.fromEntries(set)), 'its settings are accepted')
  for (const [path] of code.matchAll(/\bdeploy\/[\w./-]+\w/g)) {
    t.ok(existsSync(join(root, path)) || path === 'deploy/.env', `${path} exists`)
  }
  for (const [, script = ''] of code.matchAll(/npm (?!ci)(?:run )?(\S+)/g)) t.ok(script in scripts, `npm ${script}`)
}
const { scripts } = JSON.parse(read('package.json'))

async function readMap(t: Test, { code }: Block, folder: string): Promise<void> {
  for (const line of code.trimEnd().split('\n')) {
    for (const name of line.split(/ {2,}/)[0]?.split(' ') ?? []) {
      t.ok(existsSync(join(root, folder, name)), `${name} exists`)
    }
  }
}

/** `given` are the names that the text around a block says something about. */
async function runScript(t: Test, { code }: Block, requestId: string): Promise<void> {
  Object.assign(process.env, env)
  if (code.includes('verifyWebhook(')) {
    process.env.WEBHOOK_SECRET = SECRET
    const answers: number[] = []
    const response = { writeHead: (status: number) => ({ end: () => answers.push(status) }) }
    const receive = await asFunction(code, ['rawBody', 'request', 'response'])
    const stamp = nowSeconds()
    const headers = { 'x-service-timestamp': String(stamp), 'x-service-signature': signature(stamp) }
    await receive(Buffer.from(BODY), { headers }, response)
    await receive(Buffer.from(BODY), { headers: {} }, response)
    t.same(answers, [401])
  } else if (code.includes('export function isGenuine')) {
    const { isGenuine } = await asModule(code)
    const stamp = nowSeconds()
    const headers = { 'x-service-timestamp': String(stamp), 'x-service-signature': signature(stamp) }
    t.equal(isGenuine?.(SECRET, headers, Buffer.from(BODY)), true)
    t.equal(isGenuine?.(SECRET, {}, Buffer.from(BODY)), false)
    t.throws(() => isGenuine?.('', headers, Buffer.from(BODY)))
  } else if (code.includes('.listen()')) {
    const { openFingerpost } = await import('../../src/client/client.ts')
    const fingerpost = openFingerpost({ baseUrl: url, key: keys.testSecret })
    let hear: (type: string) => void = () => undefined
    const heard = new Promise<string>((resolve) => {
      hear = resolve
    })
    const listen = await asFunction(code.replace('console.log(', 'return hear('), ['fingerpost', 'hear'])
    const over = listen(fingerpost, hear)
    let visit = 0
    const timer = setInterval(
      () => void identify({ ...browserBody(`GPU ${++visit}`), userAgent: CHROME }, { key: keys.testSecret }),
      200,
    )
    t.ok(await heard)
    clearInterval(timer)
    await over
  } else {
    await (await asFunction(code, ['requestId']))(requestId)
    t.pass('it ran')
  }
}

async function runPython(t: Test, { code }: Block): Promise<void> {
  const stamp = nowSeconds()
  const name = code.includes('def verify') ? 'verify' : 'is_genuine'
  const call = (headers: string, secret: string) =>
    name === 'verify'
      ? `verify(${JSON.stringify(BODY)}.encode(), ${headers}, "${secret}")`
      : `is_genuine("${secret}", ${headers}, ${JSON.stringify(BODY)}.encode())`
  const signed = (text: string) => `{"X-Service-Timestamp": "${stamp}", "X-Service-Signature": "${text}"}`
  const checks = [
    `assert ${call(signed(signature(stamp)), SECRET)} is True`,
    `assert ${call(signed('sha256=0'), SECRET)} is False`,
    `assert ${call(`{"X-Service-Timestamp": "${stamp}"}`, SECRET)} is False`,
    `assert ${call(`{"X-Service-Timestamp": "²"}`, SECRET)} is False`,
    `assert ${call('{}', SECRET)} is False`,
    `try:\n    ${call(signed(signBody('', stamp, Buffer.from(BODY))), '')}\n    raise SystemExit("an empty secret is accepted")\nexcept ValueError: pass`,
  ]
  t.same(await run('python3', ['-c', `${code}\n${checks.join('\n')}`], {}), { code: 0, said: '' })
}

async function runShell(t: Test, block: Block): Promise<void> {
  const { code } = block
  const says = ENDLESS.find(([begins]) => code.startsWith(begins))?.[1]
  if (says !== undefined) {
    t.match((await shell(code, env, says)).said, says)
    return
  }
  const stamp = nowSeconds()
  const signed = { SECRET, TIMESTAMP: String(stamp), RAW_BODY: BODY, SIGNATURE: signature(stamp) }
  if (!code.includes('openssl')) t.notMatch(code, /20\d\d-\d\d-\d\d/, 'it names no moment that will be long ago')
  const ran = code.includes('body.json')
    ? await shell(`cd "$CURL_HOME"; printf %s "$RAW_BODY" > body.json\n${code}`, { ...env, ...signed })
    : await shell(code, { ...env, ...signed })
  t.equal(ran.code, 0, ran.said)
  if (code.includes('"$RAW_BODY"')) t.match(ran.said, signature(stamp).slice('sha256='.length))
  if (code.includes('body.json')) {
    const empty = await shell(code, { ...env, ...signed, SECRET: '' })
    t.not(empty.code, 0, 'an empty secret is refused')
  }
}

async function requestIdIn(key: string): Promise<string> {
  const { status, body } = await identify({ ...browserBody('A GPU'), userAgent: CHROME }, { key })
  if (status !== 200) throw new Error(`identify answers ${status}`)
  return body.requestId
}
const [liveId, testId] = [await requestIdIn(keys.secret), await requestIdIn(keys.testSecret)]

async function tryBlock(t: Test, block: Block, folder = '.'): Promise<void> {
  const { language, code } = block
  if (reasonOf(block) !== undefined) await look(t, block)
  else if (language === 'sh') await runShell(t, block)
  else if (language === 'js') await runScript(t, block, code.includes('TEST_SECRET_KEY') ? testId : liveId)
  else if (language === 'python') await runPython(t, block)
  else if (language === 'json') t.not(JSON.parse(code), undefined)
  else if (language === '') await readMap(t, block, folder)
  else t.fail(`nobody runs ${language}, and no reason is given`)
}

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
  const said = welcomeText({ listensOn: url, url, keys: shown, setupLink: null, demoLink: null })
  const from = said.indexOf('  export ')
  t.not(from, -1)
  const { code, said: answer } = await shell(said.slice(from), { CURL_HOME: env.CURL_HOME })
  t.equal(code, 0, answer)
  t.match(answer, /"requestId":"req_/)
})

const page = blocksOfPage(await (await fetch(`${url}/docs`)).text())

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
    const { said } = await shell(
      code,
      code.includes('/v1/keys') ? { ...env, FINGERPOST_TEST_SECRET_KEY: await keyOfKeys() } : env,
    )
    const status = Number(/\n(\d{3})\n$/.exec(said)?.[1] ?? 0)
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
