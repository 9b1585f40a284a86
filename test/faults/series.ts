// A series: one data folder, a load, and the processes killed at random moments, again and again, each time started anew
// and held to everything its clients were told. The same seed gives the same devices, rules, moments and victims.

import { readdirSync, readFileSync } from 'node:fs'
import { homePartition } from '../../src/domain/ids.ts'
import { type Rng, rng } from '../helpers/rng.ts'
import { freePort, launchServer, makeKeys, type Server, startServer, temporaryFolder } from '../helpers/server.ts'
import { checkAll, checkById } from './checker.ts'
import { call, readJson } from './http.ts'
import { type Attempt, type Ledger, openLedger, type Violation } from './ledger.ts'
import { type Load, openLoad } from './load.ts'
import { RULES } from './rules.ts'

export interface SeriesConfig {
  readonly seed: number
  readonly cycles: number
  readonly connections: number
  /** The entry of another build than this one. */
  readonly main?: string
  /** Events read by id after each cycle, the ones answered last first. */
  readonly byIdMax: number
  /** Checks everything after each cycle, to find the first bad one. Default: only after the last. */
  readonly checkEvery?: boolean
  readonly print: (line: string) => void
}

export interface Summary {
  readonly seed: number
  readonly cycles: number
  readonly violation: Violation | null
  /** Ids that a client was told of, all of which were looked for in the list. */
  readonly acked: number
  readonly listed: number
  readonly readById: number
  readonly visitors: number
  readonly counts: Ledger['counts']
  /** Milliseconds from the spawn after a kill to readiness, and from readiness to a decision of every partition. */
  readonly readyMs: readonly number[]
  readonly decidingMs: readonly number[]
}

/** Who is killed: the server, its ClickHouse engine, both at once, or a server that is still starting. */
const VICTIMS = ['server', 'server', 'server', 'engine', 'server', 'both', 'server', 'starting'] as const
type Victim = (typeof VICTIMS)[number]

const KILL_AFTER_MS = [200, 2_000] as const
const ENGINE_OUTAGE_MS = 800
const SETTLE_MS_MAX = 12_000
const QUIET_MS_MAX = 30_000
const PROBES_AT_ONCE = 8
const END_MS_MAX = 10_000

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Processes started by `pid`. */
export function childrenOf(pid: number): number[] {
  const children: number[] = []
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
      if (Number(fields[1]) === pid && fields[0] !== 'Z') children.push(Number(name))
    } catch {
      // It ended while we looked.
    }
  }
  return children
}

export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Resolves with the milliseconds it took, or rejects with `what` when `holds` stays false for `msMax`. */
export async function until(what: string, msMax: number, holds: () => boolean | Promise<boolean>): Promise<number> {
  const from = performance.now()
  while (!(await holds())) {
    if (performance.now() - from > msMax) throw new Error(`${what}: not within ${msMax} ms`)
    await pause(20)
  }
  return performance.now() - from
}

export async function createRules(load: Load, server: Pick<Server, 'url' | 'keys'>): Promise<void> {
  for (const { holds: _, ...rule } of RULES) {
    const answer = await call(load.agent, {
      method: 'POST',
      url: `${server.url}/v1/rules`,
      headers: { authorization: `Bearer ${server.keys.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(rule),
    })
    if (answer.status !== 201) throw new Error(`a rule was answered with ${JSON.stringify(answer)}`)
  }
}

async function metric(load: Load, url: string, name: string): Promise<number> {
  const answer = await call(load.agent, { method: 'GET', url: `${url}/metrics` })
  if (answer.status !== 200) throw new Error(`/metrics answered ${JSON.stringify(answer)}`)
  const samples = answer.text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

/** Identifies unknown devices until every partition has decided one; what it accepted before is decided then, too. */
export async function everyPartitionDecides(load: Load, url: string, partitions: number, msMax: number): Promise<number> {
  const deciding = new Set<number>()
  const own = async () => {
    const { answer } = await load.probe()
    if (answer !== null) deciding.add(homePartition(answer.visitorId, partitions))
  }
  return await until(`every partition of ${url} decides`, msMax, async () => {
    await Promise.all(Array.from({ length: PROBES_AT_ONCE }, own))
    return deciding.size === partitions
  })
}

/** Waits until everything accepted is decided and in ClickHouse. */
export async function quiet(load: Load, server: Server, partitions: number): Promise<void> {
  await everyPartitionDecides(load, server.url, partitions, QUIET_MS_MAX)
  const isSunk = async () => (await metric(load, server.url, 'fingerpost_recent_events')) === 0
  await until('everything is in ClickHouse', QUIET_MS_MAX, isSunk)
  for (const name of ['dead_letters_total', 'sink_quarantined_total']) {
    const count = await metric(load, server.url, `fingerpost_${name}`)
    if (count > 0) throw new Error(`${name} is ${count}:\n${server.logs().slice(-2_000)}`)
  }
}

/** The last ones answered, and as many others. */
function sample(random: Rng, attempts: readonly Attempt[], max: number): Attempt[] {
  const answered = attempts.filter(({ answer }) => answer !== null)
  const last = answered.slice(-Math.ceil(max / 2))
  const earlier = answered.slice(0, -last.length || undefined)
  const others = Array.from({ length: Math.min(max - last.length, earlier.length) }, () => random.pick(earlier))
  return [...new Set([...last, ...others])]
}

export async function runSeries(config: SeriesConfig): Promise<Summary> {
  const { seed, cycles, print } = config
  const random = rng(seed)
  const ledger = openLedger()
  const options = {
    keys: makeKeys(),
    port: await freePort(),
    dataDir: temporaryFolder(),
    // The wait is longer than any start takes: a repeat that is answered 202 gets an id of its own.
    env: { FINGERPOST_TRUSTED_PROXIES: '127.0.0.0/8', FINGERPOST_DECISION_WAIT_MS: '20000' },
    ...(config.main === undefined ? {} : { main: config.main }),
  }
  const readyMs: number[] = []
  const decidingMs: number[] = []
  let readById = 0
  let cycle = 0

  let server = await startServer(options)
  const { url, keys } = server
  const load = openLoad({ random, ledger, keys, url, connections: config.connections })
  const to = { agent: load.agent, url, secret: keys.secret, ledger }
  await createRules(load, server)
  const { partitions } = await readJson<{ partitions: number }>(load.agent, `${url}/readyz`, keys.secret)

  async function killServer(alsoEngine: boolean): Promise<void> {
    const children = childrenOf(server.pid)
    const gone = server.kill9()
    if (alsoEngine) for (const pid of children) process.kill(pid, 'SIGKILL')
    await gone
    ledger.nextEpoch()
    await until('the engine ends with its server', END_MS_MAX, () => !children.some(isAlive))
  }

  async function restart(cutShort: boolean): Promise<void> {
    if (cutShort) {
      const launched = await launchServer(options)
      await pause(100 + random.int(1_500))
      const children = childrenOf(launched.pid)
      await launched.kill9()
      await until('the engine ends with its server', END_MS_MAX, () => !children.some(isAlive))
    }
    server = await startServer(options)
    readyMs.push(Math.round(server.readyMs))
    decidingMs.push(Math.round(await everyPartitionDecides(load, url, partitions, QUIET_MS_MAX)))
  }

  /** The engine dies alone: nothing may be refused meanwhile, and what was accepted arrives in ClickHouse. */
  async function killEngine(): Promise<void> {
    const refused = ledger.counts.refused
    const [answered, children] = [ledger.counts.answered, childrenOf(server.pid)]
    if (children.length === 0) throw new Error('the server has no engine to kill')
    for (const pid of children) process.kill(pid, 'SIGKILL')
    await pause(ENGINE_OUTAGE_MS)
    if (ledger.counts.answered === answered) throw new Error('nothing was accepted without the engine')
    if (ledger.counts.refused > refused) ledger.violate('engine', 'identifications were refused without the engine', [])
  }

  async function once(victim: Victim): Promise<void> {
    const stopped = new AbortController()
    const running = load.run(stopped.signal)
    const [least, most] = KILL_AFTER_MS
    await pause(least + random.int(most - least))
    if (victim === 'engine') await killEngine()
    else await killServer(victim === 'both')
    stopped.abort()
    await running
    // Clients repeat at once, while the server is still starting.
    const settling = load.settle(SETTLE_MS_MAX)
    if (victim !== 'engine') await restart(victim === 'starting')
    const t1 = performance.now()
    await settling
    const v = ledger.violation()
    if (v !== null) {
      const at = ledger.attempts.find((a) => a.nonce === v.id)
      print(`DEBUG number ${at?.number} device ${at?.device} key ${at?.key}`)
      await pause(2000)
      type P = { data: { requestId: string; visitorId: string }[]; nextCursor: string | null }
      for (let c: string | null = ''; c !== null; ) {
        const page: P = await readJson<P>(load.agent, `${url}/v1/events?limit=100${c === '' ? '' : `&cursor=${encodeURIComponent(c)}`}`, keys.secret)
        for (const { requestId } of page.data) {
          if (ledger.attemptOf(requestId) === null) {
            const e = await readJson<{ tag: unknown; timestamp: string }>(load.agent, `${url}/v1/events/${requestId}`, keys.secret)
            print(`DEBUG unowned ${requestId} ${JSON.stringify(e.tag)} ${e.timestamp}`)
          }
        }
        c = page.nextCursor
      }
      print(server.logs().slice(-3000))
      const m = await call(load.agent, { method: 'GET', url: `${url}/metrics` })
      print('text' in m ? m.text.split('\n').filter((l) => /^fingerpost_(recent|identif|engine|sink|dead|http_requests)/.test(l)).join('\n') : '')
    }
    print(`   settled ${performance.now() - t1}`)
  }

  async function checkCycle(from: number): Promise<void> {
    const t0 = performance.now()
    await quiet(load, server, partitions)
    print(`   quiet ${performance.now() - t0}`)
    const chosen = sample(random, ledger.attempts.slice(from), config.byIdMax)
    readById += chosen.length
    const found = await checkById(to, chosen)
    if (found !== null) ledger.violate(found.id, found.what, found.history)
  }

  let listed = 0
  try {
    for (; cycle < cycles && ledger.violation() === null; cycle++) {
      const victim = VICTIMS[cycle % VICTIMS.length] as Victim
      const from = ledger.attempts.length
      await once(victim)
      // Half of the kills hit a server that is still busy with the one before.
      if (random.chance(0.5)) await checkCycle(from)
      print(
        `cycle ${cycle + 1}: ${victim}, ready ${victim === 'engine' ? '-' : readyMs.at(-1)} ms, ${ledger.attempts.length - from} attempts`,
      )
    }
    if (ledger.violation() === null) {
      await checkCycle(0)
      const t0 = performance.now()
      const checked = await checkAll(to)
      print(`   all ${performance.now() - t0}`)
      listed = checked.listed
      const found = checked.violation
      if (found !== null) ledger.violate(found.id, found.what, found.history)
    }
  } finally {
    await server.stop()
    load.close()
  }
  const answers = ledger.attempts.flatMap(({ answer }) => answer ?? [])
  return {
    ...{ seed, cycles: cycle, violation: ledger.violation(), acked: answers.length, listed, readById },
    visitors: new Set(answers.map(({ visitorId }) => visitorId)).size,
    ...{ counts: ledger.counts, readyMs, decidingMs },
  }
}
