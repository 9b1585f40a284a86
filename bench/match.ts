// What recognising a visit without its token costs, by how many visitors are loaded: the share of a decision that could grow
// with the workspace. Usage: npm run bench -- match [--visitors 1000000] [--than 10000] [--visits 20000] [--seed 1]

import { parseArgs } from 'node:util'
import { createLookup } from '../src/engine/lookup.ts'
import { createMergedRecords } from '../src/engine/merged-records.ts'
import { openFrame } from '../src/engine/open-frame.ts'
import { createPartition } from '../src/engine/partition.ts'
import { createState, type Loadable, type PartitionState } from '../src/engine/state.ts'
import { createVisitorCommands } from '../src/engine/visitor-commands.ts'
import { recognise } from '../src/identity/matcher.ts'
import { openParsers } from '../src/identity/parsers.ts'
import { NO_FACTS } from '../src/ipintel/addresses.ts'
import { must } from '../src/lib/must.ts'
import { rng } from '../test/helpers/rng.ts'
import { decideOne } from './identity/drive-direct.ts'
import { openPopulation, type Visit } from './identity/population.ts'
import { openBareRuleset, recordOf } from './identity/record.ts'
import { atShare } from './measure.ts'

const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    visitors: { type: 'string', default: '1000000' },
    than: { type: 'string', default: '10000' },
    visits: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
  },
})

/** Households of one population know each other; a million devices are many such. */
const DEVICES_AT_ONCE = 10_000
const DAYS = 20
/** Of several runs the quickest counts: what else the machine does is not the matcher's. */
const RUNS = 5

const log = (text: string) => process.stderr.write(`${text}\n`)

const NOBODY: ReadonlySet<string> = new Set()
const LOADABLE: readonly string[] = ['visitor', 'index', 'learned'] satisfies Loadable[]
const isLoadable = <T extends { readonly kind: string }>(one: T): one is T & { readonly kind: Loadable } =>
  LOADABLE.includes(one.kind)

/** First visits become visitors, until there are so many; the visits after them are what is measured. */
function fill(visitors: number, visitsMax: number, seed: number) {
  const { bytes } = rng(seed)
  const ruleset = openBareRuleset()
  const partition = createPartition({
    partition: 0,
    partitions: 1,
    random: bytes,
    monotonic: () => 0,
    ruleset: () => ruleset,
    visitorsMax: Number.POSITIVE_INFINITY,
  })
  const known = new Set<string>()
  let measured: Visit[] = []
  for (let seq = 0, block = 0; known.size < visitors; block++) {
    const devices = Math.min(DEVICES_AT_ONCE, visitors)
    const population = openPopulation({ devices, days: DAYS, seed: seed * 1_000 + block, perturb: null, half: 'even' })
    const came = new Set<number>()
    const later: Visit[] = []
    for (const visit of population.visits()) {
      if (came.has(visit.truth.device)) {
        later.push(visit)
        continue
      }
      if (known.size >= visitors) break
      came.add(visit.truth.device)
      known.add(decideOne(partition, recordOf(visit, null, null, bytes), seq++).decision.visitorId)
    }
    // Of the latest block, so that whoever is looked for is known.
    measured = [...later, ...measured].slice(0, visitsMax)
    if (block % 10 === 9) log(`  ${known.size} visitors`)
  }
  const state = createState(Number.POSITIVE_INFINITY)
  state.load([...partition.checkpoint().dirty].filter(isLoadable))
  return { state, measured: measured.map((visit) => recordOf(visit, null, null, bytes)) }
}

/** Keys, shortlist, unpacking and comparing. */
function measure(state: PartitionState, records: readonly Uint8Array[]) {
  const parsers = openParsers()
  const lookup = createLookup(
    state,
    createVisitorCommands(state, { leaving: () => null, remove: () => undefined }),
    createMergedRecords(state, { partition: 0, partitions: 1 }),
    false,
  )
  const micros: number[] = []
  let linked = 0
  let compared = 0
  for (const record of records) {
    let best = Number.POSITIVE_INFINITY
    for (let run = 0; run < RUNS; run++) {
      const c = openFrame({ seq: 0, bytes: record }, parsers, () => NO_FACTS)
      if (!('attributes' in c)) throw new Error('no visit')
      // As for a batch of one.
      state.rest()
      const from = performance.now()
      const { wanted } = lookup.wanted([c], NOBODY)
      // What nobody has is not there.
      state.load(wanted.filter(isLoadable).map(({ kind, id }) => ({ kind, id, value: null })))
      const found = lookup.candidates(c)
      const { exact, totals, statistics } = found
      const recognition = recognise({
        attributes: c.attributes,
        ip: c.ip,
        atMs: c.atMs,
        token: null,
        tokenVisitor: null,
        exact,
        linked: found.linked,
        totals,
        statistics,
        incognito: false,
        partitions: 1,
      })
      best = Math.min(best, (performance.now() - from) * 1_000)
      if (run > 0) continue
      compared += exact.length + found.linked.length
      if (recognition.visitor !== null) linked++
    }
    micros.push(best)
  }
  micros.sort((a, b) => a - b)
  const at = (share: number) => must(atShare(micros, share), 'a visit').toFixed(0)
  const each = (n: number) => (n / records.length).toFixed(2)
  return `p50 ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)} us; ${each(compared)} candidates, ${each(linked)} linked`
}

for (const visitors of [Number(options.than), Number(options.visitors)]) {
  const { state, measured } = fill(visitors, Number(options.visits), Number(options.seed))
  console.log(`${visitors} visitors, ${measured.length} visits: ${measure(state, measured)}`)
}
