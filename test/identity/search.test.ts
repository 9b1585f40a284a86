// Where the diagnosis of `bench identity` says a record was when a visit looked for it: as the engine's own index has it.

import t from 'tap'
import { createDirectDrive, decideOne } from '../../bench/identity/drive-direct.ts'
import { openPopulation, type Visit } from '../../bench/identity/population.ts'
import { openBareRuleset, recordOf } from '../../bench/identity/record.ts'
import { createSearches } from '../../bench/identity/search.ts'
import { createPartition } from '../../src/engine/partition.ts'
import { openParsers } from '../../src/identity/parsers.ts'
import { must } from '../../src/lib/must.ts'
import { rng } from '../helpers/rng.ts'

t.setTimeout(600_000)

const { bytes } = rng(3)
const OPTIONS = { devices: 250, days: 20, seed: 5, perturb: null, half: 'even' } as const
const population = openPopulation(OPTIONS)
const firsts = [...population.visits()].filter(({ truth }) => !truth.returning && truth.browser === 'chrome')
const [pc, ...pcs] = firsts.filter(({ truth }) => truth.platform === 'windows' && !truth.fleet) as [Visit, ...Visit[]]
const phone = must(
  firsts.find(({ truth }) => truth.platform === 'android'),
  'a phone',
)

/** Another PC somewhere else, which has one key with the first in common: graphics, screen, fonts and languages. */
function stranger(n: number): Visit {
  const other = must(pcs[n], 'another PC')
  const { webGlBasics, screenResolution, fonts, languages } = pc.body.components ?? {}
  const components = { ...other.body.components, webGlBasics, screenResolution, fonts, languages }
  return { ...other, ip: `203.${n}.113.7`, body: { ...other.body, components } } as Visit
}

function openTwo() {
  const ruleset = openBareRuleset()
  const partitions = [0, 1].map((partition) =>
    createPartition({
      partition,
      partitions: 2,
      random: bytes,
      monotonic: () => 0,
      ruleset: () => ruleset,
      visitorsMax: Number.POSITIVE_INFINITY,
    }),
  )
  const searches = createSearches(partitions, openParsers())
  let seq = 0
  return {
    decide: (home: number, visit: Visit) =>
      decideOne(must(partitions[home], 'a partition'), recordOf(visit, null, null, bytes), seq++).decision.visitorId,
    search: (home: number, visit: Visit) => searches.begin(home, recordOf(visit, null, null, bytes)),
  }
}

t.test('a record is read, listed, out of its lists, under no key or in another partition', async (t) => {
  const two = openTwo()
  const own = two.decide(0, { ...pc, ip: '198.51.100.1' })
  const elsewhere = two.decide(1, { ...pc, ip: '198.51.100.1' })
  t.equal(two.search(0, pc).placeOf(own), 'read')
  t.equal(two.search(0, pc).placeOf(elsewhere), 'in another partition')
  t.equal(two.search(0, { ...phone, ip: '192.0.2.1' }).placeOf(own), 'under no key')

  const crowd = Array.from({ length: 40 }, (_, n) => two.decide(0, stranger(n)))
  t.equal(new Set([own, ...crowd]).size, 41)
  const { placeOf } = two.search(0, stranger(40))
  t.equal(placeOf(own), 'left its lists', 'more share its last key than are kept')
  t.equal(placeOf(must(crowd[0], 'the oldest of them')), 'left its lists')
  t.equal(placeOf(must(crowd[10], 'one that is kept')), 'listed, not read')
  t.equal(placeOf(must(crowd[39], 'the newest')), 'read')
  t.equal(two.search(0, { ...pc, ip: '198.51.100.1' }).placeOf(own), 'read', 'the keys that only it has lead to it')
})

t.test('being diagnosed changes no answer', async (t) => {
  const few = openPopulation({ ...OPTIONS, devices: 40 })
  const answersOf = async (explained: boolean) => {
    const ids: string[] = []
    await createDirectDrive(1, explained)(few.visits(), (_, { id }) => ids.push(id))
    return ids
  }
  t.strictSame(await answersOf(true), await answersOf(false))
})
