// Benchmarks tell strangers what they measure, keep their figures with the machine they were taken on, and two runs stand side by side.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Comparison } from '../../bench/commits.ts'
import { compareResults, compareRounds, type Result, readFacts, tellRounds } from '../../bench/result.ts'
import { runProgram } from '../helpers/child.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(180_000)
t.teardown(cleanUp)

const RUN = fileURLToPath(new URL('../../bench/run.js', import.meta.url))
const bench = (...args: string[]) => runProgram(process.execPath, [RUN, ...args], {})

t.test('every benchmark says what it measures, and what is none is refused', async (t) => {
  const { code, said } = await bench('--help')
  t.equal(code, 0)
  const names = [...said.matchAll(/^ {2}([a-z-]+) +\S/gm)].map(([, name = '']) => name)
  t.ok(names.length >= 15 && names.includes('ingest'))
  const pages = await Promise.all(names.map((name) => bench(name, '--help')))
  for (const [at, name] of names.entries()) {
    const page = pages[at] as (typeof pages)[number]
    t.equal(page.code, 0)
    t.match(page.said, `npm run bench -- ${name}`)
    t.notMatch(page.said, /^\/\/|import /m)
  }
  t.match(await bench('nonsense'), { code: 2, said: /no benchmark nonsense/ })
  t.match(await bench('compare', 'one.json'), { code: 2, said: /two files/ })
})

t.test('a result keeps machine, versions, commit and arguments, and is compared figure by figure', async (t) => {
  const file = join(temporaryFolder(), 'lists.json')
  const run = await bench('lists', '2000', '7', '--result', file)
  t.equal(run.code, 0, run.said)
  const result = JSON.parse(readFileSync(file, 'utf8')) as Result
  t.match(result, { benchmark: 'lists', arguments: ['2000', '7'], facts: { node: process.version, threads: Number } })
  t.match(result.facts.commit, /^([0-9a-f]{40}\+?|unknown)$/)
  t.ok(result.output.length > 0 && result.seconds > 0)
  const compared = await bench('compare', file, file)
  t.equal(compared.code, 0)
  t.notMatch(compared.said, /not comparable|different/)
})

t.test('what differs is told with its ratio, and other machines are no comparison', (t) => {
  const facts = readFacts()
  const before: Result = {
    benchmark: 'x',
    arguments: [],
    startedAt: '',
    seconds: 1,
    facts,
    output: ['events/s  1,000   bare 4000   ratio 0.250', 'gone 7'],
  }
  const after = {
    ...before,
    facts: { ...facts, threads: facts.threads + 1 },
    output: ['events/s  1,500   bare 4000   ratio 0.375', 'new 8'],
  }
  t.same(compareResults(before, after).slice(1), [
    `not comparable, threads: ${facts.threads} → ${facts.threads + 1}`,
    'events/s  1000 → 1500 (1.50)   bare 4000   ratio 0.25 → 0.375 (1.50)',
  ])
  t.end()
})

t.test('rounds of two builds are compared figure by figure, each with those of its round', (t) => {
  const rounds = [
    {
      before: ['events/s 100 p50 10', 'only before 1', 'twice 1', 'twice 2'],
      after: ['twice 1', 'twice 4', 'events/s 150 p50 10'],
    },
    { before: ['events/s 200 p50 10', 'twice 1', 'twice 2'], after: ['events/s 100 p50 10', 'twice 1', 'twice 2'] },
    { before: ['events/s 100 p50 10', 'twice 1', 'twice 2'], after: ['events/s 125 p50 10', 'twice 1', 'twice 3'] },
  ]
  const compared = compareRounds(rounds)
  t.match(compared[0], {
    before: [100, 200, 100],
    after: [150, 100, 125],
    ratios: [1.5, 0.5, 1.25],
    medianBefore: 100,
    medianAfter: 125,
    medianRatio: 1.25,
  })
  t.same(tellRounds(compared), [
    'events/s 100 → 125 (1.25; 1.50 0.50 1.25) p50 10',
    'twice 1',
    'twice 2 → 3 (1.50; 2.00 1.00 1.50)',
  ])
  t.same(compareRounds([{ before: ['n 0'], after: ['n 3'] }])[0]?.medianRatio, null, 'of nothing there is no ratio')
  t.end()
})

t.test('two builds run in turns, and the comparison is kept', async (t) => {
  const file = join(temporaryFolder(), 'compared.json')
  const build = fileURLToPath(new URL('../../../', import.meta.url))
  const run = await bench('compare', build, build, '--turns', '2', 'lists', '2000', '7', '--result', file)
  t.equal(run.code, 0, run.said)
  t.match(run.said, /2 rounds in turns/)
  const kept = JSON.parse(readFileSync(file, 'utf8')) as Comparison
  t.match(kept, { benchmark: 'lists', arguments: ['2000', '7'], facts: { node: process.version } })
  t.equal(kept.rounds.length, 2)
  t.ok(kept.figures.some(({ medianRatio }) => medianRatio !== null))
  t.match(await bench('compare', 'no-such-commit', build, 'lists'), { code: 1 })
  t.match(await bench('compare', build, build, 'nonsense'), { code: 2, said: /no benchmark nonsense/ })
})
