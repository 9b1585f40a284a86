// A series: one data folder, a load, and the processes killed at random moments, again and again, each time started anew
// and held to everything its clients were told. The same seed gives the same devices, moments and victims.

import { type Rng, rng } from '../helpers/rng.ts'
import { freePort, launchServer, makeKeys, startServer, temporaryFolder } from '../helpers/server.ts'
import { checkAll, checkById } from './checker.ts'
import { readJson } from './http.ts'
import { type Attempt, type Ledger, openLedger, type Violation } from './ledger.ts'
import { openLoad } from './load.ts'
import { childrenOf, isAlive, pause, until } from './processes.ts'
import { createRules, everyPartitionDecides, quiet } from './quiet.ts'

export interface SeriesConfig {
  readonly seed: number
  readonly cycles: number
  readonly connections: number
  /** The entry of another build than this one. */
  readonly main?: string
  /** Events read by id in one check, half of them the ones answered last. */
  readonly byIdMax: number
  /** Checks everything after each cycle, to name the first bad one. Default: only after the last. */
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

/** Who is killed: the server, its ClickHouse engine, both at once, or the server and then one that is still starting. */
const VICTIMS = ['server', 'server', 'server', 'engine', 'server', 'both', 'server', 'starting'] as const
type Victim = (typeof VICTIMS)[number]

/** A repeat that is answered 202 is told an id of its own, so the wait is longer than any start takes. */
export const SERVER_ENV = { FINGERPOST_TRUSTED_PROXIES: '127.0.0.0/8', FINGERPOST_DECISION_WAIT_MS: '20000' }

const KILL_AFTER_MS_MIN = 200
const KILL_AFTER_MS_MAX = 2_000
const STARTING_MS_MAX = 1_500
const ENGINE_OUTAGE_MS = 800
const SETTLE_MS_MAX = 30_000
const END_MS_MAX = 10_000

/** The last ones answered, and as many others. */
function sample(random: Rng, attempts: readonly Attempt[], max: number): Attempt[] {
  const answered = attempts.filter(({ answer }) => answer !== null)
  const at = Math.max(0, answered.length - Math.ceil(max / 2))
  const others = random.shuffle(answered.slice(0, at)).slice(0, max - (answered.length - at))
  return [...answered.slice(at), ...others]
}

/** Rejects when the harness itself cannot go on, as when the server does not start any more. */
export async function runSeries(config: SeriesConfig): Promise<Summary> {
  const { seed, cycles, connections, print } = config
  const random = rng(seed)
  const ledger = openLedger()
  const options = {
    keys: makeKeys(),
    port: await freePort(),
    dataDir: temporaryFolder(),
    env: SERVER_ENV,
    ...(config.main === undefined ? {} : { main: config.main }),
  }
  const readyMs: number[] = []
  const decidingMs: number[] = []
  let readById = 0
  let listed = 0

  let server = await startServer(options)
  const { url, keys } = server
  const load = openLoad({ random, ledger, keys, url, connections })
  const to = { agent: load.agent, url, secret: keys.secret, ledger }
  await createRules(load, server)
  const { partitions } = await readJson<{ partitions: number }>(load.agent, `${url}/readyz`, keys.secret)

  /** The engine must not outlive its server: it would keep the folder from the next one. */
  async function kill({ pid, kill9 }: Pick<typeof server, 'pid' | 'kill9'>, alsoEngine: boolean): Promise<void> {
    const engines = childrenOf(pid)
    const gone = kill9()
    if (alsoEngine) for (const engine of engines) process.kill(engine, 'SIGKILL')
    await gone
    await until('the engine ends with its server', END_MS_MAX, () => !engines.some(isAlive))
  }

  async function restart(cutShort: boolean): Promise<void> {
    if (cutShort) {
      const launched = await launchServer(options)
      await pause(random.int(STARTING_MS_MAX))
      await kill(launched, false)
    }
    server = await startServer(options)
    readyMs.push(Math.round(server.readyMs))
    decidingMs.push(Math.round(await everyPartitionDecides(load, url, partitions)))
  }

  /** The engine dies alone: nothing may be refused meanwhile. */
  async function killEngine(): Promise<void> {
    const { refused, answered } = ledger.counts
    const engines = childrenOf(server.pid)
    if (engines.length === 0) throw new Error('the server has no engine to kill')
    for (const engine of engines) process.kill(engine, 'SIGKILL')
    await pause(ENGINE_OUTAGE_MS)
    if (ledger.counts.answered === answered) ledger.violate('engine', 'nothing was accepted without it', [])
    if (ledger.counts.refused > refused) ledger.violate('engine', 'identifications were refused without it', [])
  }

  async function once(victim: Victim): Promise<void> {
    const stopped = new AbortController()
    const running = load.run(stopped.signal)
    await pause(KILL_AFTER_MS_MIN + random.int(KILL_AFTER_MS_MAX - KILL_AFTER_MS_MIN))
    if (victim === 'engine') await killEngine()
    else {
      await kill(server, victim === 'both')
      ledger.nextEpoch()
    }
    stopped.abort()
    await running
    // Clients repeat at once, while the server is still starting.
    const settling = load.settle(SETTLE_MS_MAX)
    if (victim !== 'engine') await restart(victim === 'starting')
    await settling
  }

  async function check(attempts: readonly Attempt[], everything: boolean): Promise<void> {
    if (ledger.violation() !== null) return
    await quiet(load, server, partitions)
    const chosen = sample(random, attempts, config.byIdMax)
    readById += chosen.length
    let found = await checkById(to, chosen)
    if (found === null && everything) {
      const checked = await checkAll(to)
      listed = checked.listed
      found = checked.violation
    }
    if (found !== null) ledger.violate(found.id, found.what, found.history)
  }

  let cycle = 0
  try {
    for (; cycle < cycles && ledger.violation() === null; cycle++) {
      const victim = VICTIMS[cycle % VICTIMS.length] as Victim
      const from = ledger.attempts.length
      await once(victim)
      // Half of the kills hit a server that is still busy with the one before.
      if (config.checkEvery === true || random.chance(0.5)) {
        await check(ledger.attempts.slice(from), config.checkEvery === true)
      }
      const back = victim === 'engine' ? '' : `, ready after ${readyMs.at(-1)} ms`
      print(`kill ${cycle + 1}: ${victim}, ${ledger.attempts.length - from} attempts${back}`)
    }
    await check(ledger.attempts, true)
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
