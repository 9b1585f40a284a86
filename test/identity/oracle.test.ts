// The oracle of `bench identity`: it judges with true rates and the truth about the past, and never with the truth about the
// visit it is asked for.

import t from 'tap'
import { createDirectDrive } from '../../bench/identity/drive-direct.ts'
import { createOracle } from '../../bench/identity/oracle.ts'
import { openPopulation, type Population, type Truth, type Visit } from '../../bench/identity/population.ts'
import { createTally, type Result } from '../../bench/identity/tally.ts'

t.setTimeout(300_000)

/** Few models, so that many look alike and showing each of them once is quick. */
const FEW_MODELS = {
  'models.windows': 60,
  'models.mac': 12,
  'models.linux': 8,
  'models.android': 25,
  'models.ios': 8,
  'fleet.sizeMin': 5,
  'fleet.sizeMax': 12,
}
const populationOf = (devices: number, days: number, given: Record<string, number> = {}): Population =>
  openPopulation({ devices, days, seed: 5, perturb: null, half: 'even', given: { ...FEW_MODELS, ...given } })

const SMALL = populationOf(70, 60)
const VISITS = [...SMALL.visits()]

t.test('knows nobody at first, and names a device that has come only from five in six on', async (t) => {
  const oracle = createOracle(SMALL)
  const given = new Set<string>()
  const come = new Set<number>()
  const unsure: object[] = []
  for (const visit of VISITS) {
    const answer = oracle.answer(visit)
    if (come.size === 0) t.equal(answer.confidence, 1)
    if (given.has(answer.id) && (answer.confidence ?? 0) < 5 / 6) unsure.push({ ...answer, ...visit.truth })
    given.add(answer.id)
    come.add(visit.truth.device)
  }
  t.same(unsure, [])
  t.ok(given.size >= come.size - 5, `${given.size} ids for ${come.size} devices`)
})

t.test('a token that was kept decides', async (t) => {
  const oracle = createOracle(SMALL)
  const owners = new Map<string, number>()
  let tokens = 0
  for (const visit of VISITS) {
    const answer = oracle.answer(visit)
    if (!owners.has(answer.id)) owners.set(answer.id, visit.truth.device)
    if (visit.truth.tokenless) continue
    tokens++
    t.equal(owners.get(answer.id), visit.truth.device)
    t.equal(answer.confidence, 1)
  }
  t.ok(tokens > 100)
})

/** Everything about a visit that it may not know, told wrongly. */
function scrambled({ device, returning, isPrivate, tokenless }: Truth): Truth {
  return {
    device: (device + 1) % SMALL.devices.length,
    platform: 'chromeos',
    browser: 'edge',
    fleet: true,
    returning: !returning,
    isPrivate: !isPrivate,
    tokenless,
  }
}

t.test('what is true of a visit beside its storage does not change what is answered to it', async (t) => {
  const asked = VISITS.flatMap(({ truth }, at) => (truth.tokenless && at > 60 ? [at] : []))
  const few = asked.filter((_, i) => i % Math.ceil(asked.length / 12) === 0)
  t.ok(few.length >= 8 && few.some((at) => VISITS[at]?.truth.returning), `${few.length} visits`)
  const oracle = createOracle(SMALL)
  const truly = VISITS.map((visit) => oracle.answer(visit))
  for (const at of few) {
    const misled = createOracle(SMALL)
    for (const visit of VISITS.slice(0, at)) misled.answer(visit)
    const visit = VISITS[at] as Visit
    t.strictSame(misled.answer({ ...visit, truth: scrambled(visit.truth) }), truly[at], `visit ${at}`)
  }
})

const priceOf = ({ hard, newMerged, firsts }: Result): number => 5 * (hard.wrong + newMerged * firsts) + hard.split

t.test('is surer with reason than the service, and nearer to what is possible', async (t) => {
  const population = populationOf(250, 150)
  const oracle = createOracle(population)
  const [best, own] = [createTally(), createTally()]
  await createDirectDrive(1)(population.visits(), (visit, answer) => {
    best.add(visit.truth, oracle.answer(visit))
    own.add(visit.truth, answer)
  })
  const [possible, service] = [best.result(), own.result()]
  t.ok(possible.hard.n > 300, `${possible.hard.n} visits without a token`)
  t.ok(priceOf(possible) < priceOf(service), `price ${priceOf(possible)} and ${priceOf(service)}`)
  t.ok(possible.falseMerges <= service.falseMerges, `false merges ${possible.falseMerges} and ${service.falseMerges}`)
  t.ok(possible.stable >= service.stable, `stable ${possible.stable} and ${service.stable}`)
  const [a, b] = [possible.calibration.all.error, service.calibration.all.error]
  t.ok(a < b && a < 0.03, `calibration ${a} and ${b}`)
})

t.test('where more devices have a twin at home it is less sure of a return', async (t) => {
  const population = populationOf(70, 60, { 'household.twin': 0 })
  const mean = (twins: number): number => {
    const { world, devices, visits } = population
    const rates = { ...world.rates, 'household.twin': twins }
    const oracle = createOracle({ devices, visits, world: { ...world, rates } })
    let sum = 0
    let links = 0
    for (const visit of population.visits()) {
      const { confidence } = oracle.answer(visit)
      if (!visit.truth.tokenless || !visit.truth.returning) continue
      sum += confidence ?? 0
      links++
    }
    return sum / links
  }
  const [none, many] = [mean(0), mean(0.9)]
  t.ok(many < none, `${many} and ${none}`)
})
