// How well devices are recognised: a simulated population driven through the service, against exact hashing and the rules of
// FP-Stalker and an oracle on the same visits. npm run bench -- identity [--devices 2000] [--days 180] [--seed 1] [--oracle | --alone]

import { parseArgs } from 'node:util'
import { cleanUp, startServer } from '../test/helpers/server.ts'
import type { Reference } from './identity/answer.ts'
import { attacked, isAttack } from './identity/attack.ts'
import { correctionsText, measureCorrections, readCorrectionsFile } from './identity/corrections.ts'
import { createDescriber } from './identity/describe.ts'
import { createDiagnosis } from './identity/diagnose.ts'
import { createDirectDrive, type Drive } from './identity/drive-direct.ts'
import { createHttpDrive, SERVER_ENV } from './identity/drive-http.ts'
import { createExactHash } from './identity/exact-hash.ts'
import { createFpStalker } from './identity/fp-stalker.ts'
import { createOracle } from './identity/oracle.ts'
import { PARAMETERS, type Rates } from './identity/parameters.ts'
import { openPopulation, type Population, type Visit } from './identity/population.ts'
import {
  calibrationTable,
  describeText,
  familyTable,
  frontierTable,
  hardTable,
  mainTable,
  segmentTable,
} from './identity/table.ts'
import { createTally } from './identity/tally.ts'

const USAGE = `bench identity [options]
  --devices 2000     devices of the population
  --days 180         length of its life
  --seed 1           another seed is another population of the same kind
  --perturb SEED     multiplies every rate by its own factor from U[0.5, 2]
  --rates A=1,B=2    sets rates of bench/identity/parameters.ts
  --twins FACTOR     so many times the devices with a look-alike at the same address: households' and fleets'
  --values even      which half of the rarer values: even, or odd for what was never looked at while building
  --driver direct    the decider in this process, or http: a real server
  --attack SHARE     among the visits those of somebody who keeps tokens and changes that share of the values (1: all)
  --alone            without the references
  --oracle           of the references only the oracle that knows the true rates
  --diagnose         which mistakes were made and by what (driver direct)
  --json             everything that was counted
  --corrections FILE the matcher on pairs that people labelled, as \`fingerpost corrections export\` writes them, and nothing else
`

const { values: options } = parseArgs({
  args: process.argv.slice(2).filter((arg) => arg !== 'identity'),
  options: {
    devices: { type: 'string', default: '2000' },
    days: { type: 'string', default: '180' },
    seed: { type: 'string', default: '1' },
    perturb: { type: 'string' },
    rates: { type: 'string', default: '' },
    twins: { type: 'string', default: '1' },
    values: { type: 'string', default: 'even' },
    driver: { type: 'string', default: 'direct' },
    alone: { type: 'boolean', default: false },
    oracle: { type: 'boolean', default: false },
    attack: { type: 'string' },
    corrections: { type: 'string' },
    diagnose: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const whole = (text: string, name: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} takes a whole number`)
  return value
}

function ratesIn(text: string): Partial<Rates> {
  const given: Record<string, number> = {}
  for (const part of text.split(',').filter((one) => one !== '')) {
    const [name = '', value = ''] = part.split('=')
    const rate = Number(value)
    if (!(name in PARAMETERS) || value === '' || !(rate >= 0)) throw new Error(`--rates: no rate in "${part}"`)
    given[name] = rate
  }
  return given
}

/** Rates of look-alikes at one address, so many times the tabled ones. */
function twinsTimes(text: string): Partial<Rates> {
  const factor = Number(text)
  if (!(factor >= 0 && factor <= 10)) throw new Error('--twins is from 0 to 10')
  if (factor === 1) return {}
  const times = (name: 'household.twin' | 'fleet.share') => Math.min(0.95, PARAMETERS[name][0] * factor)
  return { 'household.twin': times('household.twin'), 'fleet.share': times('fleet.share') }
}

function referencesFor(population: Population, oracleAlone: boolean): readonly Reference[] {
  const oracle = createOracle(population)
  if (oracleAlone) return [oracle]
  return [createExactHash(false), createExactHash(true), createFpStalker(false), createFpStalker(true), oracle]
}

async function withServer(run: (drive: Drive) => Promise<void>): Promise<void> {
  const server = await startServer({ asShipped: true, env: SERVER_ENV })
  try {
    await run(createHttpDrive({ port: server.port, key: server.keys.testPublic }))
  } finally {
    await server.stop()
    await cleanUp()
  }
}

async function main(): Promise<void> {
  const { driver, values: half } = options
  if (driver !== 'direct' && driver !== 'http') throw new Error('--driver is direct or http')
  if (half !== 'even' && half !== 'odd') throw new Error('--values is even or odd')
  const seed = whole(options.seed, 'seed')
  const setup = {
    devices: whole(options.devices, 'devices'),
    days: whole(options.days, 'days'),
    seed,
    perturb: options.perturb === undefined ? null : whole(options.perturb, 'perturb'),
    given: { ...twinsTimes(options.twins), ...ratesIn(options.rates) },
    half,
  } as const
  const population = openPopulation(setup)
  const describer = createDescriber()
  const references = options.alone ? [] : referencesFor(population, options.oracle)
  const tallies = references.map((reference) => ({ reference, tally: createTally() }))
  const own = createTally()
  const diagnosis = options.diagnose ? createDiagnosis() : null

  const attack = options.attack === undefined ? null : { changed: Number(options.attack), seed }
  if (attack !== null && !(attack.changed >= 0 && attack.changed <= 1)) throw new Error('--attack is from 0 to 1')

  function* watched(): Generator<Visit, void> {
    for (const visit of attack === null ? population.visits() : attacked(population.visits, attack)) {
      if (isAttack(visit)) {
        yield visit
        continue
      }
      describer.add(visit)
      for (const { reference, tally } of tallies) tally.add(visit.truth, reference.answer(visit))
      yield visit
    }
  }

  const startedMs = performance.now()
  const run = (drive: Drive) =>
    drive(watched(), (visit, answer) => {
      if (isAttack(visit)) return own.claim(visit.truth, answer)
      own.add(visit.truth, answer)
      diagnosis?.add(visit, answer)
    })
  if (driver === 'http') await withServer(run)
  else await run(createDirectDrive(seed, options.diagnose))
  const seconds = (performance.now() - startedMs) / 1_000

  const description = describer.result()
  const results = [
    ...tallies.map(({ reference, tally }) => [reference.name, tally.result()] as const),
    ['Fingerpost', own.result()] as const,
  ]
  const fingerpost = own.result()
  if (options.json) {
    console.log(
      JSON.stringify({ ...setup, driver, seconds, description, results: Object.fromEntries(results) }, null, 2),
    )
    return
  }
  const tabled = setup.perturb === null ? 'rates as tabled' : `rates perturbed with seed ${setup.perturb}`
  const given = [options.rates, options.twins === '1' ? '' : `twins × ${options.twins}`].filter((one) => one !== '')
  const perturbed = [tabled, ...given].join(', ')
  console.log(
    `seed ${seed}, ${setup.days} days, ${perturbed}, ${half} values, driver ${driver}${attack === null ? '' : `, attacked with ${attack.changed}`}, ${seconds.toFixed(0)} s\n`,
  )
  console.log(`${describeText(description)}\n`)
  for (const text of [
    mainTable(results),
    segmentTable(results),
    hardTable(results),
    ...results
      .filter(([, { calibration }]) => calibration.all.error >= 0)
      .map(([name, result]) => `${name}: ${calibrationTable(result)}`),
    familyTable(fingerpost),
    frontierTable(fingerpost, results.slice(0, -1)),
  ]) {
    console.log(`${text}\n`)
  }
  if (diagnosis !== null) console.log(diagnosis.text())
}

function tellCorrections(path: string): void {
  const result = measureCorrections(readCorrectionsFile(path))
  console.log(options.json ? JSON.stringify(result, null, 2) : correctionsText(result))
}

if (options.help) process.stdout.write(USAGE)
else if (options.corrections !== undefined) tellCorrections(options.corrections)
else await main()
