// The runner of the tests says the truth: what failed, crashed, hung, was skipped or asserted nothing is told, files that share a
// process do not see each other's roots, and what a file costs is kept.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { isAlive } from '../helpers/processes.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const script = (name: string) => import(new URL(`.scripts/${name}`, new URL('../../../', import.meta.url)).href)
const { runFiles } = await script('test-runner.mjs')
const { openCounts, openTimes } = await script('test-report.mjs')

t.teardown(cleanUp)

const folder = temporaryFolder()

interface Ran {
  readonly files: readonly {
    readonly name: string
    readonly passed: number
    readonly failed: number
    readonly wallMs: number
  }[]
  readonly problems: readonly string[]
  readonly printed: readonly string[]
}

/** Runs made-up test files in a temporary folder, all in one process unless `alone`. */
async function run(files: Readonly<Record<string, string>>, { fileMsMax = 60_000, alone = false } = {}): Promise<Ran> {
  const home = join(folder, `run-${runs++}`)
  mkdirSync(home)
  const names = Object.entries(files).map(([name, text]) => {
    const path = join(home, `${name}.test.js`)
    writeFileSync(path, `import t from 'tap'\n${text}\n`)
    return relative(ROOT, path)
  })
  writeFileSync(join(home, 'package.json'), '{"type":"module"}')
  const printed: string[] = []
  const ran = await runFiles({
    files: names,
    jobs: 1,
    ownsProcess: () => alone,
    env: {},
    nodeArgs: [],
    fileMsMax,
    results: join(home, 'results.tap'),
    print: (line: string) => printed.push(line),
  })
  const short = ran.files.map((file: Ran['files'][number]) => ({
    ...file,
    name: /([\w-]+)\.test\.js$/.exec(file.name)?.[1],
  }))
  return { ...ran, files: short, printed }
}
let runs = 0

t.test('each file of a process has a root of its own, and its assertions are counted as its own', async (t) => {
  const remembers = `globalThis.seen = (globalThis.seen ?? 0) + 1
    t.teardown(() => { globalThis.torn = (globalThis.torn ?? 0) + 1 })
    t.test('some', async (t) => { t.ok(true); t.test('deeper', async (t) => { t.equal(globalThis.torn ?? 0, globalThis.seen - 1); t.pass() }) })`
  const { files, problems } = await run({ a: remembers, b: `${remembers}\nt.plan(1)`, c: remembers })
  t.same(
    files.map(({ name, passed, failed }) => ({ name, passed, failed })),
    ['a', 'b', 'c'].map((name) => ({ name, passed: 3, failed: 0 })),
  )
  t.same(problems, [])
})

t.test('what fails is counted and shown, and the next file runs', async (t) => {
  const { files, problems, printed } = await run({
    one: `t.test('first', async (t) => { t.ok(true); t.equal(1, 2, 'one is two') })`,
    thrown: `t.test('throws', async () => { throw new Error('of no use') })`,
    top: `throw new Error('at the top')`,
    late: `t.test('rejects', async (t) => { setTimeout(() => { throw new Error('later') }, 1); await new Promise((r) => setTimeout(r, 50)) })`,
    fine: `t.ok(true)`,
  })
  const counted = files.map(({ name, passed, failed }) => `${name} ${passed} ${failed > 0}`)
  t.same(counted, ['one 1 true', 'thrown 0 true', 'top 0 true', 'late 0 true', 'fine 1 false'])
  t.same(problems, [])
  t.match(printed.join('\n'), /not ok 2 - one is two[\s\S]*of no use[\s\S]*at the top[\s\S]*later/)
})

t.test('a file that ends its process, hangs, skips or asserts nothing has failed', async (t) => {
  const { files, problems } = await run(
    {
      exits: 't.ok(true)\nprocess.exit(0)',
      hangs: `t.test('hangs', () => new Promise(() => setInterval(() => {}, 1_000)))`,
      skips: `t.ok(true)\nt.test('skipped', { skip: true }, async () => {})`,
      nothing: '',
      fine: 't.ok(true)',
    },
    { fileMsMax: 4_000 },
  )
  const failing = files.map(({ name, failed }) => `${name} ${failed > 0}`)
  t.same(failing, ['exits true', 'hangs true', 'skips true', 'nothing false', 'fine false'])
  t.match(files.at(-1), { name: 'fine', passed: 1, failed: 0 })
  const said = problems.map((line) => line.replace(/^.*\/(\w+)\.test\.js:?/, '$1'))
  t.match(said, [/^exits its process ended/, /^hangs its process ended/, /^nothing asserted nothing/])
})

t.test('what a file has left open does not keep the run', async (t) => {
  const { files, problems } = await run({ open: `setInterval(() => {}, 1_000)\nt.ok(true)`, fine: 't.ok(true)' })
  t.same([files.map(({ passed }) => passed), problems], [[1, 1], []])
})

t.test('what a file has started ends with its process', async (t) => {
  const left = join(folder, 'left')
  await run(
    {
      leaves: `import { spawn } from 'node:child_process'
        import { writeFileSync } from 'node:fs'
        const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
        writeFileSync(${JSON.stringify(left)}, String(child.pid))
        t.test('hangs', () => new Promise(() => setInterval(() => {}, 1_000)))`,
    },
    { fileMsMax: 4_000, alone: true },
  )
  const pid = Number(readFileSync(left, 'utf8'))
  for (const until = Date.now() + 30_000; isAlive(pid) && Date.now() < until; )
    await new Promise((r) => setTimeout(r, 20))
  t.notOk(isAlive(pid))
})

t.test('tests with assertions below them are none themselves, unless they failed for themselves', async (t) => {
  const of = (text: string) => {
    const { counts, read } = openCounts()
    for (const line of text.split('\n')) read(line)
    return counts
  }
  t.match(of('    # Subtest: f\n        ok 1 - a\n        1..1\n    ok 1 - f'), { passed: 1, failed: 0, undone: 0 })
  t.match(of('    # Subtest: f\n        not ok 1 - a\n        1..1\n    not ok 1 - f'), { passed: 0, failed: 1 })
  t.match(of('    # Subtest: f\n        ok 1 - a\n    not ok 1 - f # timeout'), { passed: 1, failed: 1 })
  t.match(of('    # Subtest: f\n        # Subtest: g\n            not ok 1\n        not ok 1 - g\n    not ok 1 - f'), {
    failed: 1,
  })
  t.match(of('    # Subtest: f\n        ok 1 - a # SKIP\n        ok 2 - b # TODO\n    ok 1 - f'), {
    passed: 0,
    undone: 2,
  })
})

t.test('what files cost is kept, with the totals of whole runs', async (t) => {
  const path = join(folder, 'times.json')
  const print = () => {}
  const file = (name: string, wallMs: number) => ({ name, wallMs, ownCpuMs: 1, childrenCpuMs: 2, passed: 1, failed: 0 })
  const run = { size: 'usual', startedAt: 'then', wallMs: 20, isWhole: true }
  openTimes(path).keep({ ...run, files: [file('a', 9), file('b', 8)] }, print)
  openTimes(path).keep({ ...run, files: [file('b', 7)], isWhole: false }, print)
  t.equal(openTimes(path).wallMs('a'), 9)
  t.equal(openTimes(path).wallMs('b'), 7)
  t.equal(openTimes(path).wallMs('c'), null)
  t.match(JSON.parse(readFileSync(path, 'utf8')).runs, [{ size: 'usual', wallMs: 20, cpuMs: 6, files: 2 }])
  writeFileSync(path, '{"runs":')
  t.equal(openTimes(path).wallMs('a'), null, 'half a file is no history')
})
