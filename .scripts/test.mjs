// What `npm test` runs: build, static checks, the programs that tests need, then the test files. Nothing is skipped: what is
// missing is installed or named, and a file that asserts nothing has failed. The last line is `N passed, N failed`.
// `--quick` leaves out what drives browsers, clusters and their servers, and kills, and makes everything smaller; `--long` runs
// everything at full size. With file patterns (`npm test -- test/kv`) only those files run, without the static checks.
import { spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from './build.mjs'
import { isNewer, NEWER, provideNode } from './test-node.mjs'
import { provide } from './test-programs.mjs'
import { cpuMs, openTimes } from './test-report.mjs'
import { runFiles } from './test-runner.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TESTS = join(ROOT, 'build/test')
const RESULTS = join(ROOT, 'build/results.tap')
const RESULTS_UNDER_NEWER = join(ROOT, 'build/results-newer.tap')
const TIMES = join(ROOT, 'build/test-times.json')

/** Files at once. Those of the quick run wait two thirds of their time; among the others are clusters and browsers, each a load of its own. */
const JOBS = { quick: availableParallelism() + 4, usual: availableParallelism() + 1, long: availableParallelism() + 1 }
/** They start many processes, take much memory or change what a process is: each has a process of its own, and starts early. */
const OWN_PROCESS = ['faults/', 'cluster/', 'browser/', 'model/']
/** The few seeds of the quick run take no memory to speak of, so models share processes there. */
const ownsProcess = (size, file) => inFolder(file, OWN_PROCESS) && !(size === 'quick' && inFolder(file, ['model/']))
/**
 * The quick run ends before most code it optimizes has paid for that: V8 waits until eight times as much bytecode has run, where it has
 * that flag.
 */
const quickNodeArgs = () =>
  spawnSync(process.execPath, ['--v8-options'], { encoding: 'utf8' }).stdout.includes(' --interrupt-budget ')
    ? ['--interrupt-budget=1000000']
    : []
const NOT_QUICK = ['faults/', 'cluster/', 'browser/']
/** Contracts held by the servers of a cluster: the quick run holds embedded storage to the same. */
const ON_SERVERS = /contract\/\w+\.(jetstream|nats|redis|server)\.test\.js$/
/** What a newer Node.js may do differently: HTTP, native modules, and so a process from its start to its end. */
const UNDER_NEWER = ['http/', 'shards/drivers.']
const FILE_SECONDS_MAX = { quick: 120, usual: 600, long: 7_200 }

const isLong = (file) => file.endsWith('.long.test.js')
const inFolder = (file, folders) => folders.some((folder) => file.startsWith(`build/test/${folder}`))

/** The built test files of a run of this size, or those of them that the patterns name: a test file or folder, as source or as built. */
function testFiles(size, patterns) {
  const all = readdirSync(TESTS, { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => join('build/test', name))
    .sort()
  if (patterns.length > 0) {
    const wanted = patterns.map((pattern) => relative(ROOT, join(process.cwd(), pattern)).replace(/\.ts$/, '.js'))
    const isNamed = (file) => wanted.some((part) => file.includes(part) && (!isLong(file) || part.includes('.long')))
    return all.filter(size === 'long' ? (file) => wanted.some((part) => file.includes(part)) : isNamed)
  }
  if (size === 'long') return all
  const usual = all.filter((file) => !isLong(file))
  return size === 'usual' ? usual : usual.filter((file) => !inFolder(file, NOT_QUICK) && !ON_SERVERS.test(file))
}

/** Runs a program of node_modules and resolves with its exit code. */
function runProgram(script, args) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join(ROOT, 'node_modules', script), ...args], {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    child.once('error', () => resolve(1))
    child.once('close', (code) => resolve(code ?? 1))
  })
}

/** Types of the server were checked by the build. Resolves with the names of the checks that failed. */
async function check() {
  const colors = process.stdout.isTTY ? [] : ['--colors=off']
  const checks = [
    ['type check of src/sdk', 'typescript/bin/tsc', ['-p', 'src/sdk', '--noEmit']],
    ['type check of src/console', 'typescript/bin/tsc', ['-p', 'src/console', '--noEmit']],
    ['biome ci', '@biomejs/biome/bin/biome', ['ci', '--error-on-warnings', ...colors, '.']],
  ]
  const problems = []
  for (const [name, script, args] of checks) if ((await runProgram(script, args)) !== 0) problems.push(name)
  return problems
}

/** The server that files share by test/helpers/tenant.ts; null when none of them does. */
async function openShared(files, nodeArgs) {
  if (!files.some((file) => readFileSync(join(ROOT, file), 'utf8').includes('/tenant.js'))) return null
  const { startShared } = await import(pathToFileURL(join(TESTS, 'helpers/tenant.js')).href)
  return startShared(nodeArgs)
}

/** Long ones first, so that no core waits for the last of them; what was never run here counts as long in folders that are. */
function byLength(files, times) {
  const expected = (file) => times.wallMs(file) ?? (inFolder(file, OWN_PROCESS) ? 60_000 : 5_000)
  return files.toSorted((a, b) => expected(b) - expected(a))
}

/** Some files again, at the quick size, under the Node.js whose binary `node` is. */
async function runUnder(node, files, print) {
  const ran = await runFiles({
    files: files.filter((file) => inFolder(file, UNDER_NEWER)),
    jobs: JOBS.quick,
    ownsProcess: () => false,
    node,
    env: { TEST_DEPTH: 'quick', TAP_TIMEOUT: String(FILE_SECONDS_MAX.quick) },
    nodeArgs: [],
    fileMsMax: FILE_SECONDS_MAX.quick * 1_000,
    results: RESULTS_UNDER_NEWER,
    print: (line) => print(`Node.js ${NEWER}: ${line}`),
  })
  return { ...ran, files: ran.files.map((file) => ({ ...file, name: `${file.name} (Node.js ${NEWER})` })) }
}

async function runTests(size, patterns, files, newer) {
  const startedAt = new Date().toISOString()
  const from = performance.now()
  const print = (line) => console.log(line)
  const times = openTimes(TIMES)
  const isWhole = patterns.length === 0
  const checking = isWhole ? check() : Promise.resolve([])
  const nodeArgs = size === 'quick' ? quickNodeArgs() : []
  const shared = await openShared(files, nodeArgs)
  const ran = await runFiles({
    files: byLength(files, times),
    jobs: JOBS[size],
    ownsProcess: (file) => ownsProcess(size, file),
    env: {
      TEST_DEPTH: size,
      TAP_TIMEOUT: String(FILE_SECONDS_MAX[size]),
      ...(shared === null ? {} : { TEST_SERVER: shared.named }),
    },
    // Stacks of whoever looks for a fault in some files name the sources; in a run of all that would cost a tenth.
    nodeArgs: isWhole ? nodeArgs : [...nodeArgs, '--enable-source-maps'],
    fileMsMax: FILE_SECONDS_MAX[size] * 1_000,
    results: RESULTS,
    print,
  })
  const problems = [...(await checking), ...ran.problems]
  if (newer !== null) {
    const again = await runUnder(newer, files, print)
    ran.files.push(...again.files)
    problems.push(...again.problems)
  }
  let passed = ran.files.reduce((sum, file) => sum + file.passed, 0)
  if (shared !== null) {
    // Processes count for their parent once they have ended: all that ran files have.
    const before = cpuMs().children
    const fault = await shared.stop()
    const childrenCpuMs = Math.round(cpuMs().children - before)
    if (fault === null) passed++
    else problems.push(fault)
    const wallMs = Math.round(performance.now() - from)
    ran.files.push({ name: 'the shared server', passed: 0, failed: 0, wallMs, ownCpuMs: 0, childrenCpuMs })
  }
  const wallMs = Math.round(performance.now() - from)
  times.keep({ size, startedAt, wallMs, files: ran.files, isWhole }, print)
  return { passed, failed: ran.files.reduce((sum, file) => sum + file.failed, 0), problems }
}

async function main(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { quick: { type: 'boolean', default: false }, long: { type: 'boolean', default: false } },
  })
  const size = values.quick ? 'quick' : values.long ? 'long' : process.env.TEST_DEPTH || 'usual'
  let result = { passed: 0, failed: 0, problems: [] }
  try {
    await build({ ifStale: true })
    const files = testFiles(size, positionals)
    const missing = provide(files)
    if (missing.length > 0) result.problems.push(...missing)
    else if (files.length === 0) result.problems.push(`no test file matches ${positionals.join(' ')}`)
    else {
      const newer = size !== 'quick' && positionals.length === 0 && isNewer() ? provideNode(NEWER) : null
      result = await runTests(size, positionals, files, newer)
    }
  } catch (error) {
    result.problems.push(error.stack ?? String(error))
  }
  for (const problem of result.problems) console.log(`FAILED: ${problem}`)
  const failed = result.failed + result.problems.length
  console.log(`${result.passed} passed, ${failed} failed`)
  process.exitCode = failed > 0 ? 1 : 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2))
