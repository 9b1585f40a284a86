// Benchmarks tell strangers what they measure, keep their figures with the machine they were taken on, and two runs stand side by side.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { compareResults, type Result, readFacts } from '../../bench/result.ts'
import { runProgram } from '../helpers/child.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const RUN = fileURLToPath(new URL('../../bench/run.js', import.meta.url))
const bench = (...args: string[]) => runProgram(process.execPath, [RUN, ...args], {})

t.test('every benchmark says what it measures, and what is none is refused', async (t) => {
  const { code, said } = await bench('--help')
  t.equal(code, 0)
  const names = [...said.matchAll(/^ {2}([a-z-]+) +\S/gm)].map(([, name = '']) => name)
  t.ok(names.length >= 15 && names.includes('ingest'))
  for (const name of ['ingest', 'deliver', 'lists']) {
    const page = await bench(name, '--help')
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
