// A series: one deployment, a load, and injuries at random moments, again and again, each time held to everything its clients
// were told. The same seed gives the same devices, moments and victims.

import { pause, until } from '../helpers/processes.ts'
import { type Rng, rng } from '../helpers/rng.ts'
import { checkAll, checkById } from './checker.ts'
import { type Attempt, type Ledger, openLedger, type Violation } from './ledger.ts'
import { type Habits, openLoad } from './load.ts'
import { createRules } from './quiet.ts'
import type { Target } from './target.ts'

export interface SeriesConfig {
  readonly seed: number
  readonly cycles: number
  readonly connections: number
  readonly habits?: Habits
  readonly open: () => Promise<Target>
  /** Load before an injury, milliseconds; half of it to the whole. Default 2,000. */
  readonly loadMsMax?: number
  /** Answers before an injury, however long they take. Default 0. */
  readonly answersMin?: number
  /** Strikes at the moment a client has an answer: what was told before it is durable, or before it is all written, shows. */
  readonly atAnswer?: boolean
  /** How long clients repeat what has no answer. Default 90,000. */
  readonly settleMsMax?: number
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
  /** How often each injury was done. */
  readonly injuries: Readonly<Record<string, number>>
  readonly readyMs: readonly number[]
  readonly decidingMs: readonly number[]
}

const LOAD_MS_MAX = 2_000
const LOAD_MS_MIN_SHARE = 0.1
const SETTLE_MS_MAX = 90_000
const ANSWERS_MS_MAX = 60_000

/** The last ones answered, and as many others. */
function sample(random: Rng, attempts: readonly Attempt[], max: number): Attempt[] {
  const answered = attempts.filter(({ answer }) => answer !== null)
  const at = Math.max(0, answered.length - Math.ceil(max / 2))
  const others = random.shuffle(answered.slice(0, at)).slice(0, max - (answered.length - at))
  return [...answered.slice(at), ...others]
}

/** Rejects when the harness itself cannot go on, as when the deployment does not start any more. */
export async function runSeries(config: SeriesConfig): Promise<Summary> {
  const { seed, cycles, connections, print, loadMsMax = LOAD_MS_MAX, answersMin = 0 } = config
  const random = rng(seed)
  const ledger = openLedger()
  const injuries: Record<string, number> = {}
  let readById = 0
  let listed = 0

  const target = await config.open()
  const { url, urls, keys } = target
  const load = openLoad({ random, ledger, keys, url, urls, connections, habits: config.habits ?? {} })
  const to = { agent: load.agent, url, secret: keys.secret, ledger }
  await createRules(load, target)
  await target.watch(load)

  async function once(cycle: number): Promise<string> {
    const injury = target.injury(cycle, random, ledger)
    injuries[injury.name] = (injuries[injury.name] ?? 0) + 1
    const stopped = new AbortController()
    const running = load.run(stopped.signal)
    const enough = ledger.counts.answered + answersMin
    const msMin = loadMsMax * LOAD_MS_MIN_SHARE
    await pause(msMin + random.int(loadMsMax - msMin))
    await until(
      `${answersMin} answers`,
      ANSWERS_MS_MAX,
      () => ledger.counts.answered >= enough || ledger.violation() !== null,
    )
    if (config.atAnswer === true) await ledger.nextAnswer()
    await injury.hurt()
    ledger.nextEpoch()
    stopped.abort()
    await running
    // Clients repeat at once, while the deployment is still recovering.
    const settling = load.settle(config.settleMsMax ?? SETTLE_MS_MAX)
    await injury.heal()
    await settling
    return injury.name
  }

  async function check(attempts: readonly Attempt[], everything: boolean): Promise<void> {
    if (ledger.violation() !== null) return
    await target.quiet(load)
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
      const from = ledger.attempts.length
      const name = await once(cycle)
      // Half of the injuries hit a deployment that is still busy with the one before.
      if (config.checkEvery === true || random.chance(0.5)) {
        await check(ledger.attempts.slice(from), config.checkEvery === true)
      }
      print(`${cycle + 1}: ${name}, ${ledger.attempts.length - from} attempts, ready after ${target.readyMs.at(-1)} ms`)
    }
    await check(ledger.attempts, true)
  } finally {
    await target.stop()
    load.close()
  }
  const answers = ledger.attempts.flatMap(({ answer }) => answer ?? [])
  return {
    seed,
    cycles: cycle,
    violation: ledger.violation(),
    acked: answers.length,
    listed,
    readById,
    visitors: new Set(answers.map(({ visitorId }) => visitorId)).size,
    counts: ledger.counts,
    injuries,
    readyMs: target.readyMs,
    decidingMs: target.decidingMs,
  }
}
