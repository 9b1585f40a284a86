// Sustained identifications per second of the real server, alternating with a bare uWebSockets server that only parses the
// same body. Usage: npm run bench -- ingest [--seconds 60] [--rounds 3] [--devices 100000] [--connections 512] [--known 0] [--no-half] [--profile DIR]
// With --known, so many visitors exist, and those who come back are some of them, spread evenly.
// With --cluster, NATS, Redis, ClickHouse and the roles run on this machine; --roles says which process has which, as in
// --roles ingress,api --roles engine,jobs. With --driver uws or node that driver of HTTP serves.

import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { freePort } from '../test/helpers/port.ts'
import { cleanUp, temporaryFolder } from '../test/helpers/server.ts'
import { cpuSeconds, rssMegabytes, sumOf } from './measure.ts'
import { pace } from './pace.ts'
import { makeDevice, makeRule, TOKENLESS_SHARE } from './population.ts'
import { openClusterSubject, openEmbeddedSubject, type Subject } from './subject.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '60' },
    rounds: { type: 'string', default: '3' },
    devices: { type: 'string', default: '100000' },
    known: { type: 'string', default: '0' },
    connections: { type: 'string', default: '512' },
    rules: { type: 'string', default: '50' },
    half: { type: 'boolean', default: true },
    cluster: { type: 'boolean', default: false },
    roles: { type: 'string', multiple: true, default: ['all'] },
    profile: { type: 'string', default: '' },
    driver: { type: 'string', default: 'auto' },
  },
  allowNegative: true,
})
const seconds = Number(options.seconds)
const rounds = Number(options.rounds)
const devices = Number(options.devices)
const known = Math.max(devices, Number(options.known))
const STEP = Math.floor(known / devices)
/** The device of the population that comes back as the `i`th. */
const numberOf = (i: number) => i * STEP + 1
const SCRIPT = new URL('../../bench/wrk/identify.lua', import.meta.url).pathname

interface Run {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly requests: number
  readonly failed: number
  /** CPU per event of each process. */
  readonly micros: Readonly<Record<string, number>>
  readonly wrkMicros: number
}

const log = (text: string) => process.stderr.write(`${text}\n`)

async function createRules(server: Subject): Promise<void> {
  for (let i = 0; i < Number(options.rules); i++) {
    const response = await fetch(`${server.apiUrl}/v1/rules`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.keys.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(makeRule(i)),
    })
    if (response.status !== 201) throw new Error(`rule: ${response.status} ${await response.text()}`)
  }
}

/** First visits: every device gets its token, and of those that come back it is kept. */
async function enrol(server: Subject, agent: Agent): Promise<(string | null)[]> {
  const tokens: (string | null)[] = new Array(devices).fill(null)
  let next = 0
  async function worker(): Promise<void> {
    while (next < known) {
      const i = next++
      const device = makeDevice(i + 1)
      const body = JSON.stringify({ nonce: `enrol-${String(i).padStart(16, '0')}`, ...device.body })
      const answer = await post(server, agent, body, device.ip, device.userAgent)
      const isKept = i % STEP === 0 && i / STEP < devices
      if (isKept) tokens[i / STEP] = (JSON.parse(answer) as { storageToken: string }).storageToken
      if (i % 20_000 === 0) log(`  enrolled ${i}`)
    }
  }
  await Promise.all(Array.from({ length: Number(options.connections) }, worker))
  return tokens
}

function post(server: Subject, agent: Agent, body: string, ip: string, userAgent: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'text/plain',
      'content-length': Buffer.byteLength(body),
      'x-forwarded-for': ip,
      'user-agent': userAgent,
    }
    const options = {
      port: server.port,
      agent,
      method: 'POST',
      path: `/v1/identify?key=${server.keys.public}`,
      headers,
    }
    const request = httpRequest(options, (response) => {
      let text = ''
      response.on('data', (chunk) => (text += chunk))
      response.on('end', () =>
        response.statusCode === 200 ? resolve(text) : reject(new Error(`${response.statusCode} ${text}`)),
      )
    })
    request.on('error', reject)
    request.end(body)
  })
}

interface Prepared {
  readonly head: string
  readonly before: string
  readonly after: string
}

function prepare(server: Subject, i: number, token: string | null): Prepared {
  const device = makeDevice(numberOf(i))
  const withToken = i % 100 >= TOKENLESS_SHARE * 100
  const before = `{"storageToken":${withToken ? JSON.stringify(token) : 'null'},"nonce":"`
  const after = `",${JSON.stringify(device.body).slice(1)}`
  const length = before.length + 16 + after.length
  const head = [
    `POST /v1/identify?key=${server.keys.public} HTTP/1.1`,
    'Host: bench',
    'Content-Type: text/plain',
    `User-Agent: ${device.userAgent}`,
    'Accept-Language: en-US,en;q=0.9',
    `X-Forwarded-For: ${device.ip}`,
    `Content-Length: ${length}`,
  ].join('|')
  return { head, before, after }
}

async function writeRequests(server: Subject, tokens: readonly (string | null)[], path: string): Promise<number> {
  const file = createWriteStream(path)
  let bytes = 0
  for (let i = 0; i < devices; i++) {
    const { head, before, after } = prepare(server, i, tokens[i] ?? null)
    bytes += before.length + 16 + after.length
    if (!file.write(`${head}\n${before}\n${after}\n`)) await once(file, 'drain')
  }
  file.end()
  await once(file, 'finish')
  return Math.round(bytes / devices)
}

let runs = 0
type Pids = Subject['pids']
const cpuOf = (pids: Pids) => pids().map(([, pid]) => cpuSeconds(pid) ?? 0)

async function wrk(port: number, file: string, pids: Pids): Promise<Run> {
  const before = cpuOf(pids)
  const name = String.fromCharCode(97 + (runs++ % 26)).repeat(4)
  const args = [
    '-t1',
    `-c${options.connections}`,
    `-d${seconds}s`,
    '--timeout',
    '10s',
    '-s',
    SCRIPT,
    `http://127.0.0.1:${port}`,
    '--',
    file,
    name,
  ]
  const child = spawn('wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  let wrkCpu = 0
  const poll = setInterval(() => (wrkCpu = cpuSeconds(child.pid ?? 0) ?? wrkCpu), 100)
  await once(child, 'exit')
  clearInterval(poll)
  const after = cpuOf(pids)
  const result = /RESULT (.*)/.exec(output)?.[1]?.split(' ').map(Number)
  if (result === undefined) throw new Error(output)
  const [requests = 0, duration = 1, badStatus = 0, badSocket = 0, p50 = 0, p99 = 0] = result
  const micros = (s: number) => Math.round((s * 1e6) / requests)
  return {
    perSecond: Math.round((requests * 1e6) / duration),
    p50Ms: p50 / 1000,
    p99Ms: p99 / 1000,
    requests,
    failed: badStatus + badSocket,
    micros: Object.fromEntries(pids().map(([name], i) => [`${name} ${i}`, micros((after[i] ?? 0) - (before[i] ?? 0))])),
    wrkMicros: micros(wrkCpu),
  }
}

/** Waits until ClickHouse has every decided event. */
async function sunk(server: Subject): Promise<string> {
  for (;;) {
    const metrics = await server.metrics()
    const decided = sumOf(metrics, 'fingerpost_identifications_decided_total')
    if (decided > 0 && sumOf(metrics, 'fingerpost_sink_rows_total') >= decided) return metrics
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function startBare(): Promise<{ child: ChildProcess; port: number }> {
  const port = await freePort()
  const child = fork(new URL('./bare.js', import.meta.url), [String(port)])
  await once(child, 'message')
  return { child, port }
}

/** Latencies with the server half busy. Requests are made beforehand: that takes more of a core than to send them. */
function halfLoad(server: Subject, tokens: readonly (string | null)[], fullPerSecond: number) {
  const perSecond = Math.max(100, fullPerSecond / 2)
  const lastsSeconds = Math.min(30, seconds)
  const requests = Array.from({ length: Math.min(devices, Math.ceil(perSecond * lastsSeconds)) }, (_, n) => {
    const i = (n * 7919) % devices
    const { head, before, after } = prepare(server, i, tokens[i] ?? null)
    return [`${head.replaceAll('|', '\r\n')}\r\n\r\n${before}half`, after] as const
  })
  let sent = 0
  function next(): string {
    const [before, after] = requests[sent % requests.length] as readonly [string, string]
    return before + String(sent++).padStart(12, '0') + after
  }
  return pace({ port: server.port, perSecond, seconds: lastsSeconds, next })
}

async function main(): Promise<void> {
  const nodeArgs = options.profile === '' ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profile}`]
  const settings = { FINGERPOST_HTTP_DRIVER: options.driver }
  const server = options.cluster
    ? await openClusterSubject(options.roles, nodeArgs, settings)
    : await openEmbeddedSubject(nodeArgs, settings)
  const bare = await startBare()
  const agent = new Agent({ keepAlive: true, maxSockets: Number(options.connections) })
  try {
    await createRules(server)
    log(`enrolling ${known} devices`)
    const tokens = await enrol(server, agent)
    const file = join(temporaryFolder(), 'requests')
    const bodyBytes = await writeRequests(server, tokens, file)
    log(
      `body ${bodyBytes} bytes, ${devices} devices of ${known} visitors, ${options.rules} live rules, ${options.connections} connections, ${rounds} x ${seconds} s each, alternating`,
    )

    const bareRuns: Run[] = []
    const ownRuns: Run[] = []
    for (let round = 0; round < rounds; round++) {
      bareRuns.push(await wrk(bare.port, file, () => [['bare', bare.child.pid as number]]))
      ownRuns.push(await wrk(server.port, file, server.pids))
      console.log(
        `round ${round + 1}: bare ${JSON.stringify(bareRuns.at(-1))}\n         own  ${JSON.stringify(ownRuns.at(-1))}`,
      )
    }
    const median = (list: Run[], of: (run: Run) => number) => list.map(of).sort((a, b) => a - b)[list.length >> 1] ?? 0
    const bareRate = median(bareRuns, (r) => r.perSecond)
    const ownRate = median(ownRuns, (r) => r.perSecond)

    const idleAt = performance.now()
    const metrics = await sunk(server)
    const lagMs = Math.round(performance.now() - idleAt)
    const answered = sumOf(metrics, 'fingerpost_http_requests_total', /route="\/v1\/identify".*code="20[02]"/)
    const pending = sumOf(metrics, 'fingerpost_http_requests_total', /route="\/v1\/identify".*code="202"/)

    console.log(`events/s      ${ownRate}   bare ${bareRate}   ratio ${(ownRate / bareRate).toFixed(3)}`)
    const cpu = Object.keys(ownRuns[0]?.micros ?? {}).map(
      (name) => `${name}: ${median(ownRuns, (r) => r.micros[name] ?? 0)}`,
    )
    console.log(
      `CPU us/event  ${cpu.join(', ')}, wrk ${median(ownRuns, (r) => r.wrkMicros)}; bare server ${median(bareRuns, (r) => r.micros['bare 0'] ?? 0)}`,
    )
    console.log(
      `latency ms    at full load p50 ${median(ownRuns, (r) => r.p50Ms)}, p99 ${median(ownRuns, (r) => r.p99Ms)}`,
    )
    console.log(
      `answers       2xx ${answered}, of them 202 ${pending}, failed ${ownRuns.reduce((sum, r) => sum + r.failed, 0)}`,
    )
    console.log(
      `afterwards    sink caught up in ${lagMs} ms, log ${Math.round(sumOf(metrics, 'fingerpost_log_bytes') / 1e6)} MB, RSS MB ${server
        .pids()
        .map(([name, pid]) => `${name} ${rssMegabytes(pid)}`)
        .join(', ')}`,
    )
    if (options.half) {
      const half = await halfLoad(server, tokens, ownRate)
      console.log(
        `half load     ${half.answered} req/s, evenly: p50 ${half.p50Ms} ms, p99 ${half.p99Ms} ms, refused ${half.refused}`,
      )
    }
    const total = sumOf(await sunk(server), 'fingerpost_identifications_decided_total')
    const { n, ids } = await server.stopAndCount()
    console.log(`ClickHouse    ${n} rows, ${ids} distinct; decided ${total}`)
  } finally {
    bare.child.kill()
    agent.destroy()
    await cleanUp()
  }
}

await main()
