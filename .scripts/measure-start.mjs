// How long a new user waits: a fresh clone of the checked-out commit, `npm ci`, `npm start`; then the first verdict, a browser that is
// recognised after everything it kept was cleared, a rule that blocks it. Prints each part in seconds and what was installed in megabytes.
// `npm run bench:start -- 3` does it three times, `-- 1 20,22,24,26` once under each of these versions of Node.js.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { provideNode } from './test-node.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const answerMsMax = 300_000
const stopMsMax = 30_000
const betweenMs = 50
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

/** Speaks to the server that `child` starts, with the keys that it prints. */
async function openService(child, port) {
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += chunk
  })
  const until = performance.now() + answerMsMax
  let keys = null
  for (; keys === null; await pause(betweenMs)) {
    if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}`)
    if (performance.now() > until) throw new Error('no keys were printed')
    const found = ['sk_test_', 'pk_test_'].map((kind) => new RegExp(`${kind}\\w+`).exec(said)?.[0])
    if (found.every((key) => key !== undefined)) keys = found
  }
  const [secret, publicKey] = keys
  const url = `http://127.0.0.1:${port}`
  async function ask(method, path, body) {
    const headers = { Authorization: `Bearer ${secret}`, 'Content-Type': 'application/json' }
    const response = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.json()
  }
  return { url, publicKey, ask }
}

/** Resolves with what the demo page shows to a browser that keeps nothing from before: the ids of visitor and event. */
async function visit(browser, { url, publicKey }) {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(`${url}/demo?key=${publicKey}`)
  await page.waitForSelector('#state:not([data-kind=busy])', { timeout: answerMsMax })
  const [visitorId, requestId] = await Promise.all(['#visitor', '#request'].map((place) => page.textContent(place)))
  await context.close()
  return { visitorId, requestId }
}

async function firstMinutes(service) {
  const at = {}
  const visitor = { userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Chrome/147.0.0.0', linkedId: 'user_42' }
  const { verdict } = await service.ask('POST', '/v1/identify', visitor)
  if (verdict === undefined) throw new Error('the first answer has no verdict')
  at['first verdict'] = performance.now()
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  })
  try {
    const { visitorId: first } = await visit(browser, service)
    const { visitorId: again } = await visit(browser, service)
    if (first !== again) throw new Error('the browser was not recognised')
    at['recognised after clearing'] = performance.now()
    const conditions = { operator: 'AND', rules: [{ field: 'visitorId', operator: 'equals', value: first }] }
    await service.ask('POST', '/v1/rules', { name: 'first', conditions, action: { verdict: 'block' }, status: 'live' })
    const { requestId } = await visit(browser, service)
    const { verdict: decided } = await service.ask('GET', `/v1/events/${requestId}`)
    if (decided !== 'block') throw new Error('the rule did not block')
    at['first rule blocks'] = performance.now()
  } finally {
    await browser.close()
  }
  return at
}

async function stop(child) {
  if (child.exitCode !== null) return
  process.kill(-child.pid, 'SIGTERM')
  const late = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), stopMsMax)
  await once(child, 'close')
  clearTimeout(late)
}

async function measure(node) {
  const dir = mkdtempSync(join(tmpdir(), 'fingerpost-start-'))
  const clone = join(dir, 'clone')
  const PATH = `${dirname(node)}${delimiter}${process.env.PATH}`
  const env = { ...process.env, PATH, FINGERPOST_LOG_LEVEL: 'warn' }
  try {
    const from = performance.now()
    execFileSync('git', ['clone', '-q', ROOT, clone])
    execFileSync('npm', ['ci'], { cwd: clone, stdio: ['ignore', 'ignore', 'inherit'], env })
    const at = { 'npm ci': performance.now() }
    const installed = execFileSync('du', ['-sm', join(clone, 'node_modules')], { encoding: 'utf8' }).split('\t')[0]
    const port = await freePort()
    const child = spawn('npm', ['start'], {
      cwd: clone,
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...env, FINGERPOST_PORT: String(port) },
    })
    try {
      Object.assign(at, await firstMinutes(await openService(child, port)))
    } finally {
      await stop(child)
    }
    const seconds = Object.entries(at).map(([part, ms]) => `${part} ${((ms - from) / 1_000).toFixed(1)} s`)
    return [...seconds, `installed ${installed} MB`].join(', ')
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const runs = Number(process.argv[2] ?? 1)
const versions = process.argv[3]?.split(',') ?? [process.versions.node]
if (!Number.isInteger(runs) || runs < 1) throw new Error('usage: measure-start.mjs [runs] [versions of Node.js]')
for (let run = 0; run < runs; run++) {
  for (const version of versions) console.log(`Node.js ${version}: ${await measure(provideNode(version))}`)
}
