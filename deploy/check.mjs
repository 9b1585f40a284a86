// Runs by hand what `npm test` cannot, because it needs nginx, Caddy and OpenSSL: the shipped proxy files in front of a real
// server, requests that could be read in two ways, and what of them arrives. `npm run build && node deploy/check.mjs`; ends
// with 1 when something is not as it should be.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { makeCases, request } from './proxy-cases.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const startMsMax = 20_000
const answerMsMax = 15_000
const quietMs = 400

const dir = mkdtempSync(join(tmpdir(), 'fingerpost-check-'))
const children = []
const say = (line) => process.stdout.write(`${line}\n`)
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

function start(command, args, env = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  children.push(child)
  return { output: () => output, ended: () => child.exitCode !== null }
}

async function until(holds, what, output) {
  const deadline = Date.now() + startMsMax
  while (!(await holds().catch(() => false))) {
    if (Date.now() > deadline) throw new Error(`${what} did not come:\n${output()}`)
    await sleep(100)
  }
}

/** A file of this folder with each of `changes` made; a text that is not in it would mean that nothing was checked. */
function shipped(name, changes) {
  let text = readFileSync(join(ROOT, 'deploy', name), 'utf8')
  for (const [from, to] of changes) {
    if (!text.includes(from)) throw new Error(`${name} does not contain ${from}`)
    text = text.replaceAll(from, to)
  }
  return text
}

/** Passes bytes on to `port` and keeps those that come from the proxy: the only honest record of what it sends. */
async function openRelay(port) {
  const seen = []
  const relay = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    near.on('data', (bytes) => seen.push(bytes.toString('latin1')))
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) {
      socket.on('error', () => {
        near.destroy()
        far.destroy()
      })
    }
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  return {
    port: relay.address().port,
    /** What has arrived since the last call, without the questions that health checks ask. */
    take: () =>
      seen
        .splice(0)
        .filter((text) => !text.startsWith('GET /readyz'))
        .join(''),
    close: () => relay.close(),
  }
}

/** Sends `text` over TLS; resolves with all that came back when the other side closed, or when it fell silent. */
function send(port, text) {
  return new Promise((resolve) => {
    const socket = connectTls({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false })
    let answer = ''
    let timer = setTimeout(() => socket.destroy(), answerMsMax)
    socket.on('secureConnect', () => socket.write(Buffer.from(text, 'latin1')))
    socket.on('data', (bytes) => {
      answer += bytes.toString('latin1')
      clearTimeout(timer)
      timer = setTimeout(() => socket.destroy(), quietMs)
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(answer)
    })
  })
}

const statuses = (answer) => [...answer.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map((match) => Number(match[1]))

/** What of the bytes that reached the server could be read in two ways, or says what the client must not say. */
function oddities(bytes) {
  const odd = []
  for (const text of bytes.split(/(?=(?:GET|POST|HEAD|OPTIONS|SPAM|get|TRACE) \S+ HTTP\/1\.1\r\n)/)) {
    // Of a head that the server cut short, for its size, nothing was read.
    if (!text.includes('\r\n\r\n')) continue
    const [head] = text.split('\r\n\r\n')
    const count = (name) => (head.match(new RegExp(`\r\n${name}:`, 'gi')) ?? []).length
    const [lengths, codings] = [count('content-length'), count('transfer-encoding')]
    if (lengths + codings > 1) odd.push('two framings')
    if (codings === 1 && !/\r\ntransfer-encoding: chunked(\r\n|$)/i.test(head)) odd.push('an odd coding')
    if (!/^\S+ \/(v1|sdk)/.test(head)) odd.push('a request of its own')
    if (count('cookie') > 0) odd.push('cookies')
    if (head.split('\r\n').length > 48) odd.push('more headers than the server takes')
    if (!/\r\nx-forwarded-for: 127\.0\.0\.1(\r\n|$)/i.test(head) || count('x-forwarded-for') > 1)
      odd.push('no true address')
  }
  return odd
}

/** `chunks`: bodies may go on in chunks. */
async function probe(name, { port, relay, key, chunks }) {
  let wrong = 0
  relay.take()
  for (const [what, bytes, allowed, passes] of makeCases(key)) {
    const answer = await send(port, bytes)
    await sleep(50)
    const arrived = relay.take()
    const odd = oddities(arrived)
    if (arrived !== '' && !passes) odd.push('it was passed on')
    if (!chunks && /\r\ntransfer-encoding:/i.test(arrived)) odd.push('chunks')
    const isRight = allowed.includes(statuses(answer)[0]) && odd.length === 0
    if (!isRight) wrong += 1
    say(`${isRight ? 'ok ' : 'BAD'} ${name}: ${what}: ${[statuses(answer).join(' ') || 'closed', ...odd].join(', ')}`)
  }
  return wrong
}

async function checkNginx(relay, key) {
  const [secure, plain] = [await freePort(), await freePort()]
  const tls = ['/etc/nginx/tls', dir]
  const logs = [
    ['/dev/stdout', join(dir, 'access.log')],
    ['/dev/stderr', join(dir, 'error.log')],
  ]
  const addresses = [
    ['listen 8443', `listen 127.0.0.1:${secure}`],
    ['listen 8080', `listen 127.0.0.1:${plain}`],
  ]
  writeFileSync(join(dir, 'site.conf'), shipped('nginx/fingerpost.conf', [tls, ...logs, ...addresses]))
  writeFileSync(
    join(dir, 'upstreams.conf'),
    shipped('nginx/upstreams-single.conf', [['127.0.0.1:9080', `127.0.0.1:${relay.port}`]]),
  )
  const main = `daemon off; pid ${dir}/nginx.pid; error_log stderr; events {}\nhttp { include ${dir}/site.conf; include ${dir}/upstreams.conf; }\n`
  writeFileSync(join(dir, 'nginx.conf'), main)
  const args = ['-p', dir, '-c', join(dir, 'nginx.conf')]
  execFileSync('nginx', ['-t', '-q', ...args], { stdio: 'inherit' })
  const nginx = start('nginx', args)
  await until(async () => (await fetch(`http://127.0.0.1:${plain}/nginx-alive`)).status === 204, 'nginx', nginx.output)
  const moved = await fetch(`http://127.0.0.1:${plain}/v1/meta`, { redirect: 'manual' })
  say(`${moved.status === 308 ? 'ok ' : 'BAD'} nginx: plain HTTP is shown the way: ${moved.status}`)
  return {
    port: secure,
    wrong: (moved.status === 308 ? 0 : 1) + (await probe('nginx', { port: secure, relay, key, chunks: false })),
  }
}

async function checkCaddy(relay, key) {
  const secure = await freePort()
  const here = `127.0.0.1:${relay.port}`
  const older = / v?2\.[0-6]\./.test(` ${execFileSync('caddy', ['version'], { encoding: 'utf8' })}`)
  const text = shipped('caddy/Caddyfile', [
    ['fingerpost.example {', `https://localhost:${secure} {\n\tbind 127.0.0.1\n\ttls ${dir}/cert.pem ${dir}/key.pem`],
    ['{\n\t# Its API', '{\n\tauto_https disable_redirects\n\t# Its API'],
    ['ingress-1:8080 ingress-2:8080', here],
    ['api:8080', here],
    // What the option was called before 2.7.
    ...(older ? [['request_buffers unlimited', 'buffer_requests']] : []),
  ])
  writeFileSync(join(dir, 'Caddyfile'), text)
  const env = { XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir }
  const args = ['--config', join(dir, 'Caddyfile'), '--adapter', 'caddyfile']
  execFileSync('caddy', ['validate', ...args], { stdio: 'ignore', env: { ...process.env, ...env } })
  const caddy = start('caddy', ['run', ...args], env)
  await until(
    async () => statuses(await send(secure, request('GET /nothing HTTP/1.1')))[0] === 404,
    'Caddy',
    caddy.output,
  )
  await sleep(2_500)
  return { port: secure, wrong: await probe('Caddy', { port: secure, relay, key, chunks: older }) }
}

async function main() {
  execFileSync(
    'openssl',
    `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout ${dir}/key.pem -out ${dir}/cert.pem`.split(
      ' ',
    ),
    { stdio: 'ignore' },
  )
  const keygen = execFileSync(process.execPath, ['build/server/main.js', 'keygen', '--json'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const key = /sk_live_\w+/.exec(keygen)[0]
  const port = await freePort()
  mkdirSync(join(dir, 'data'))
  const server = start(process.execPath, [join(ROOT, 'build/server/main.js'), 'start'], {
    FINGERPOST_PORT: String(port),
    FINGERPOST_DATA_DIR: join(dir, 'data'),
    FINGERPOST_SECRET_KEY: key,
    FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32',
  })
  await until(async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, 'the server', server.output)
  const relay = await openRelay(port)
  const proxies = [await checkNginx(relay, key), await checkCaddy(relay, key)]
  let wrong = proxies.reduce((sum, proxy) => sum + proxy.wrong, 0)
  if (server.ended()) throw new Error(`the server ended:\n${server.output()}`)
  relay.close()
  children[0].kill('SIGKILL')
  await sleep(500)
  for (const { port: proxy } of proxies) {
    const answer = await send(proxy, request('GET /v1/meta HTTP/1.1'))
    const isRight = statuses(answer)[0] === 503 && /retry-after: 1/i.test(answer) && /"code":"unavailable"/.test(answer)
    if (!isRight) wrong += 1
    say(`${isRight ? 'ok ' : 'BAD'} a server that is gone: ${statuses(answer).join(' ') || 'closed'}`)
  }
  say(`${wrong} wrong`)
  process.exitCode = wrong === 0 ? 0 : 1
}

try {
  await main()
} catch (error) {
  say(error.stack)
  process.exitCode = 1
} finally {
  // nginx ends its workers on this; whatever stays is ended.
  for (const child of children) child.kill('SIGTERM')
  await sleep(1_000)
  for (const child of children) child.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  // The pipes of a killed server may still be held by the ClickHouse it left behind.
  process.exit()
}
