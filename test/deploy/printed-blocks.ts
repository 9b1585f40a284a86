// Tries a block of code that a document prints: runs it against a real server, or, where it is named here with the reason why it cannot
// run, reads it and holds it to what can be known of it.

import { existsSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { Script } from 'node:vm'
import { parseSync } from 'rolldown/experimental'
import type { Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { IdentifySchema } from '../../src/domain/identify.ts'
import { NativeSchema } from '../../src/domain/native.ts'
import { signBody } from '../../src/domain/webhook-signature.ts'
import { browserBody, CHROME } from '../helpers/client.ts'
import { asFunction, asModule, type Block, curlHome, run, shell } from '../helpers/printed.ts'
import type { openTenant } from '../helpers/tenant.ts'
import { read, root } from './deploy.ts'

/** Blocks that do not run here, by what they begin with. */
const NOT_RUN: readonly (readonly [begins: string, reason: string])[] = [
  ['npm ci && npm start', 'npm ci replaces the packages that this very run uses'],
  ['npm ci && npm test', 'npm ci replaces the packages that this very run uses'],
  [
    "import { createHmac, timingSafeEqual } from 'node:crypto'\nimport { readFileSync",
    'a server for a page: test/browser/story.test.ts runs both',
  ],
  ['export FINGERPOST_IP_TOR_URL', 'fetches lists from the internet'],
  ['npx fingerpost data update --recommended', 'fetches lists from the internet'],
  ['func verify(', 'there is no Go here'],
  ['package receiver', 'there is no Go here'],
  ['import android.', 'there is no Kotlin here'],
  ['import Foundation', 'there is no Swift here'],
  ['location ^~', 'there is no nginx here'],
  ['shop.example {', 'there is no Caddy here'],
  ['FINGERPOST_DEPLOYMENT_MODE=cluster', 'needs NATS, Redis and ClickHouse: test/cluster runs the roles'],
  ['npx autocannon', 'loads the server of all other tests for seconds'],
  ['docker compose -f deploy/compose.single.yml', 'there is no container engine here'],
  ['cp deploy/.env.example', 'there is no container engine here'],
  ['kubectl', 'there is no Kubernetes here'],
]
/** What needs a browser is read here, and runs in one in test/browser/guides.test.ts and test/browser/story.test.ts. */
const IN_BROWSER = 'needs a browser: test/browser runs it'
const needsBrowser = ({ language, code }: Block): boolean =>
  ['html', 'csp', 'jsx'].includes(language) || code.includes("from '@fingerpost/browser'")

/** Commands that go on until they are stopped, with what they print when they work. */
const ENDLESS: readonly (readonly [begins: string, says: string])[] = [['npx fingerpost webhooks listen', 'listening']]

const SECRET = 'whsec_dGVzdA=='
const BODY = '{"a":1}'
const nowSeconds = () => Math.floor(Date.now() / 1_000)
const signature = (seconds: number) => signBody(SECRET, seconds, Buffer.from(BODY))
const signedNow = () => {
  const stamp = nowSeconds()
  return { 'x-service-timestamp': String(stamp), 'x-service-signature': signature(stamp) }
}

/** Why a block does not run here; undefined where it does. */
export const reasonOf = (block: Block): string | undefined =>
  needsBrowser(block) ? IN_BROWSER : NOT_RUN.find(([begins]) => block.code.startsWith(begins))?.[1]

const { scripts } = JSON.parse(read('package.json'))

function pairs(t: Test, code: string): void {
  for (const [open, close] of ['()', '{}', '[]'].map((pair) => [...pair] as [string, string])) {
    t.equal(code.split(open).length, code.split(close).length, `as many ${open} as ${close}`)
  }
}

/** What is known of a proxy's configuration without the proxy: it nests, and has no directive that the tested files do not have. */
function lookAtProxy(t: Test, code: string, tested: string, also: readonly string[]): void {
  pairs(t, code)
  const words = (text: string) =>
    [...text.matchAll(/^\s*([a-z_]+)\b/gm)].map(([, word = '']) => word).filter((word) => word !== '')
  const known = new Set([...words(tested), ...also])
  t.same(
    words(code).filter((word) => !known.has(word)),
    [],
    'every directive is one of the tested configuration',
  )
}

/** What a collector sends is what an identification takes: an unknown member would be refused. */
function lookAtCollector(t: Test, code: string): void {
  pairs(t, code.replaceAll(/"(?:\\.|[^"\\])*"/g, '""'))
  const members = (schema: object) => Object.keys((schema as { properties: object }).properties)
  const named = new Set([...code.matchAll(/(?:put\(|\["?|^\s*|, )"(\w+)"(?:,|\]|:)/gm)].map(([, name = '']) => name))
  const known = [...members(NativeSchema), ...members(IdentifySchema)]
  t.ok(
    ['platform', 'model', 'osVersion', 'installId', 'vendorId', 'rooted', 'evidence'].every((name) => named.has(name)),
  )
  t.same(
    [...code.slice(code.indexOf('device()')).matchAll(/device\["(\w+)"\]|\.put\("(\w+)", Build/g)]
      .map(([, one, other]) => one ?? other ?? '')
      .filter((name) => !known.includes(name)),
    [],
    'every member of the device is known',
  )
}

/** What holds of a block that does not run. */
async function look(t: Test, { language, code }: Block): Promise<void> {
  if (language === 'sh') t.equal((await run('bash', ['-n', '-c', code], {})).said, '', 'bash can read it')
  if (language === 'html') {
    for (const [, script = ''] of code.matchAll(/<script>([\s\S]*?)<\/script>/g)) t.ok(new Script(script))
  }
  if (language === 'js' || language === 'jsx') t.same(parseSync(`block.${language}`, code).errors, [], 'it parses')
  if (language === 'go') pairs(t, code)
  if (language === 'kotlin' || language === 'swift') lookAtCollector(t, code)
  if (language === 'nginx') {
    lookAtProxy(t, code, read('deploy/nginx/fingerpost.conf'), [])
    for (const line of code.split('\n').map((one) => one.trim()))
      t.match(line, /[;{}]$|^#|^$/, 'it ends as a directive does')
  }
  if (language === 'caddy')
    lookAtProxy(t, code, read('deploy/caddy/Caddyfile'), ['shop', 'handle_path', 'root', 'file_server'])
  lookAtSettings(t, code)
  for (const [path] of code.matchAll(/\bdeploy\/[\w./-]+\w/g)) {
    t.ok(existsSync(join(root, path)) || path === 'deploy/.env', `${path} exists`)
  }
  for (const [, script = ''] of code.matchAll(/npm (?!ci)(?:run )?(\S+)/g)) t.ok(script in scripts, `npm ${script}`)
}

function lookAtSettings(t: Test, code: string): void {
  const set = [...code.matchAll(/(?:export |^| )(FINGERPOST_\w+)='?([^\s']+)/gm)].map(
    ([, name = '', value = '']) => [name, value] as const,
  )
  t.ok(readConfig(Object.fromEntries(set)), 'its settings are accepted')
}

async function readMap(t: Test, { code }: Block, folder: string): Promise<void> {
  for (const line of code.trimEnd().split('\n')) {
    for (const name of line.split(/ {2,}/)[0]?.split(' ') ?? []) {
      t.ok(existsSync(join(root, folder, name)), `${name} exists`)
    }
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

/** Tries blocks against the server of a tenant. */
export async function openTrier({ server, identify, send }: Awaited<ReturnType<typeof openTenant>>) {
  const { keys, url } = server
  const env = {
    FINGERPOST_URL: url,
    FINGERPOST_TEST_SECRET_KEY: keys.testSecret,
    FINGERPOST_SECRET_KEY: keys.secret,
    FINGERPOST_OPERATOR_TOKEN: server.operatorToken,
    CURL_HOME: curlHome(),
  }

  async function requestIdIn(key: string): Promise<string> {
    const { status, body } = await identify({ ...browserBody('A GPU'), userAgent: CHROME }, { key })
    if (status !== 200) throw new Error(`identify answers ${status}`)
    return body.requestId
  }
  const [liveId, testId] = [await requestIdIn(keys.secret), await requestIdIn(keys.testSecret)]

  async function runReceiver(t: Test, code: string): Promise<void> {
    process.env.WEBHOOK_SECRET = SECRET
    const answers: number[] = []
    const response = { writeHead: (status: number) => ({ end: () => answers.push(status) }) }
    const receive = await asFunction(code, ['rawBody', 'request', 'response'])
    await receive(Buffer.from(BODY), { headers: signedNow() }, response)
    await receive(Buffer.from(BODY), { headers: {} }, response)
    t.same(answers, [401])
  }

  async function runVerifier(t: Test, code: string): Promise<void> {
    const { isGenuine } = await asModule(code)
    t.equal(isGenuine?.(SECRET, signedNow(), Buffer.from(BODY)), true)
    t.equal(isGenuine?.(SECRET, {}, Buffer.from(BODY)), false)
    t.throws(() => isGenuine?.('', signedNow(), Buffer.from(BODY)))
  }

  async function runListener(t: Test, code: string): Promise<void> {
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
  }

  /** A route handler: a guard lets a fresh identification pass and nothing else, a receiver takes what is signed and nothing else. */
  async function runRoute(t: Test, code: string): Promise<void> {
    process.env.WEBHOOK_SECRET = SECRET
    const { POST = () => null } = await asModule(code)
    const post = async (headers: Record<string, string>) => {
      const request = new Request('http://shop.example/', { method: 'POST', body: BODY, headers })
      return ((await POST(request)) as Response).status
    }
    const isReceiver = code.includes('webhookRoute')
    t.equal(
      await post(isReceiver ? signedNow() : { 'x-fingerpost-request-id': await requestIdIn(keys.testSecret) }),
      200,
    )
    t.equal(await post({}), isReceiver ? 401 : 403)
  }

  async function runExpress(t: Test, code: string): Promise<void> {
    const { app } = (await asModule(code)) as unknown as { app: { listen(port: number, done: () => void): Server } }
    const listening = await new Promise<Server>((resolve) => {
      const own = app.listen(0, () => resolve(own))
    })
    const { port } = listening.address() as { port: number }
    const post = async (headers: Record<string, string>) =>
      (await fetch(`http://127.0.0.1:${port}/buy`, { method: 'POST', headers })).status
    t.equal(await post({ 'x-fingerpost-request-id': await requestIdIn(keys.testSecret) }), 200)
    t.equal(await post({}), 403)
    listening.close()
    listening.closeAllConnections()
  }

  /** A worker in front of the server: an identification passes it, what is private does not. */
  async function runWorker(t: Test, code: string): Promise<void> {
    const { default: worker } = (await asModule(code)) as unknown as {
      default: { fetch(request: Request, env: object): Promise<Response> }
    }
    const ask = (path: string, init: RequestInit = {}) =>
      worker.fetch(new Request(`https://shop.example/x7f3${path}`, init), { FINGERPOST_URL: url })
    const body = JSON.stringify(browserBody('A GPU'))
    const headers = { 'content-type': 'text/plain', 'user-agent': CHROME }
    t.equal((await ask(`/v1/identify?key=${keys.public}`, { method: 'POST', body, headers })).status, 200)
    t.equal((await ask(`/v1/identify/forget?key=${keys.public}`, { method: 'POST', body: '', headers })).status, 204)
    t.equal((await ask('/sdk.js')).status, 200)
    for (const path of ['/metrics', '/admin/v1/workspaces', '/v1/events', '/../metrics']) {
      t.equal((await ask(path)).status, 404, path)
    }
  }

  async function runRewrites(t: Test, code: string): Promise<void> {
    process.env.FINGERPOST_URL = url
    const { default: config } = (await asModule(code)) as unknown as {
      default: { rewrites(): Promise<{ source: string; destination: string }[]> }
    }
    for (const { source, destination } of await config.rewrites()) {
      t.equal(source.replace('/x7f3', url), destination)
      const method = destination.endsWith('.js') ? 'GET' : 'POST'
      t.not((await fetch(destination, { method })).status, 404, `${method} ${destination}`)
    }
  }

  /** Scripts read the environment of this process, which other files of tests share: it is as before once the script has run. */
  async function runScript(t: Test, block: Block): Promise<void> {
    const before = { ...process.env }
    Object.assign(process.env, env)
    try {
      await runOne(t, block)
    } finally {
      for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name]
      Object.assign(process.env, before)
    }
  }

  async function runOne(t: Test, { code }: Block): Promise<void> {
    if (code.includes('verifyWebhook(')) return await runReceiver(t, code)
    if (code.includes('export function isGenuine')) return await runVerifier(t, code)
    if (code.includes('.listen()')) return await runListener(t, code)
    if (code.includes('export const POST')) return await runRoute(t, code)
    if (code.includes('export const app')) return await runExpress(t, code)
    if (code.includes('async fetch(request, env)')) return await runWorker(t, code)
    if (code.includes('async rewrites()')) return await runRewrites(t, code)
    await (await asFunction(code, ['requestId']))(code.includes('TEST_SECRET_KEY') ? testId : liveId)
    t.pass('it ran')
  }

  async function runShell(t: Test, { code }: Block): Promise<void> {
    const says = ENDLESS.find(([begins]) => code.startsWith(begins))?.[1]
    if (says !== undefined) {
      t.match((await shell(code, env, says)).said, says)
      return
    }
    lookAtSettings(t, code)
    const stamp = nowSeconds()
    const signed = { SECRET, TIMESTAMP: String(stamp), RAW_BODY: BODY, SIGNATURE: signature(stamp) }
    if (!code.includes('openssl')) t.notMatch(code, /20\d\d-\d\d-\d\d/, 'it names no moment that will be long ago')
    const ran = code.includes('body.json')
      ? await shell(`cd "$CURL_HOME"; printf %s "$RAW_BODY" > body.json\n${code}`, { ...env, ...signed })
      : await shell(code, { ...env, ...signed })
    t.equal(ran.code, 0, ran.said)
    if (code.includes('body.json')) {
      const empty = await shell(`cd "$CURL_HOME"\n${code}`, { ...env, ...signed, SECRET: '' })
      t.not(empty.code, 0, 'an empty secret is refused')
    }
  }

  /** JSON that stands for a condition or a rule is one that the server takes. */
  async function runJson(t: Test, { code }: Block): Promise<void> {
    const value = JSON.parse(code)
    const conditions = value.conditions ?? (value.rules === undefined ? undefined : value)
    if (conditions === undefined) return void t.pass('it is JSON')
    const body = { event: {}, conditions }
    const { status, text } = await send('POST', '/v1/rules/simulate', { key: keys.testSecret, body })
    t.equal(status, 200, text)
  }

  /** `folder` is where the document lies. */
  async function tryBlock(t: Test, block: Block, folder = '.'): Promise<void> {
    const { language } = block
    if (reasonOf(block) !== undefined) await look(t, block)
    else if (language === 'sh') await runShell(t, block)
    else if (language === 'js') await runScript(t, block)
    else if (language === 'python') await runPython(t, block)
    else if (language === 'json') await runJson(t, block)
    else if (language === '') await readMap(t, block, folder)
    else t.fail(`nobody runs ${language}, and no reason is given`)
  }
  return { tryBlock, env }
}

export const firstLine = ({ code }: Block): string => code.slice(0, code.indexOf('\n')).slice(0, 70)
