// What `npm test` runs: build, static checks, the programs that tests need, then every test file. Nothing is skipped: what
// is missing is installed or named, and a file that asserts nothing has failed. The last line is `N passed, N failed`.
// With file patterns (`npm test -- test/kv`) only those files run, without the static checks.
import { spawn, spawnSync } from 'node:child_process'
import {
  accessSync,
  appendFileSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { delimiter, join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from './build.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TESTS = join(ROOT, 'build/test')
const RESULTS = join(ROOT, 'build/results.tap')
/** Most of them wait most of the time. */
const JOBS = '3'
/** Deployments under a load of their own, which would starve others: two at a time, the longest first. */
const PAIRS = ['faults/cluster.', 'faults/kill.', 'faults/', 'cluster/']
/** They hold the server to a second or two, or a browser to milliseconds. */
const ALONE = ['faults/clickhouse.', 'faults/redis.', 'faults/nats.', 'cluster/lists.', 'cluster/roles.', 'browser/']
const INSTALL_LOG = join(ROOT, 'build/install.log')

// `env` names the variable that points at a copy elsewhere. Debian starts a service with some of these packages; tests start
// their own on free ports and never speak to it.
const PROGRAMS = [
  { command: 'chromium', packages: ['chromium'], env: 'CHROMIUM', needed: 'the browser tests' },
  { command: 'firefox-esr', packages: ['firefox-esr'], env: 'FIREFOX', needed: 'the browser tests' },
  { command: 'Xvfb', packages: ['xvfb'], env: 'XVFB', needed: 'the browser tests' },
  { command: 'nats-server', packages: ['nats-server'], env: 'NATS_SERVER', needed: 'the cluster tests' },
  { command: 'redis-server', packages: ['redis-server'], env: 'REDIS_SERVER', needed: 'the cluster tests' },
]
/** Where Debian puts servers, and where users other than root do not look. */
const SERVER_FOLDERS = ['/usr/local/sbin', '/usr/sbin']
/** Searched first by whatever starts a program by its name. */
const LINKS = join(ROOT, 'build/programs')

/** Where `program` is, or null. */
function find({ command, env }) {
  const places = [...(process.env.PATH ?? '').split(delimiter), ...SERVER_FOLDERS].map((folder) =>
    join(folder, command),
  )
  if (env && process.env[env]) places.unshift(process.env[env])
  for (const place of places) {
    try {
      accessSync(place, constants.X_OK)
      return place
    } catch {
      // Looked for in the next folder.
    }
  }
  return null
}

/** Makes every program in the table available. Returns one sentence for each that could not be. */
function provide(programs) {
  const missing = programs.filter((program) => !find(program))
  if (missing.length === 0) return []
  const packages = missing.flatMap((program) => program.packages)
  if (process.getuid?.() === 0 && existsSync('/etc/debian_version')) {
    console.log(`installing ${packages.join(', ')} (output in ${relative(ROOT, INSTALL_LOG)})`)
    mkdirSync(join(ROOT, 'build'), { recursive: true })
    const log = openSync(INSTALL_LOG, 'w')
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    for (const args of [['update'], ['install', '-y', '--no-install-recommends', ...packages]]) {
      spawnSync('apt-get', ['-q', ...args], { stdio: ['ignore', log, log], env })
    }
    closeSync(log)
  }
  return programs
    .filter((program) => !find(program))
    .map(
      ({ command, packages, env, needed }) =>
        `${command} is missing; ${needed} need it. On Debian or Ubuntu: apt-get install ${packages.join(' ')}.` +
        `${env ? ` Or set ${env} to the path of one.` : ''}`,
    )
}

/** Tests start programs by name: those that the PATH would not lead to are linked to a folder on it. */
function expose(programs) {
  rmSync(LINKS, { recursive: true, force: true })
  const folders = (process.env.PATH ?? '').split(delimiter)
  for (const program of programs) {
    const place = find(program)
    if (place === null || folders.some((folder) => join(folder, program.command) === place)) continue
    mkdirSync(LINKS, { recursive: true })
    symlinkSync(resolve(place), join(LINKS, program.command))
  }
  process.env.PATH = [LINKS, ...folders].join(delimiter)
}

/** Every built test file, or those that the patterns name: a test file or folder, as source or as built. */
function testFiles(patterns) {
  const all = readdirSync(TESTS, { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => join('build/test', name))
    .sort()
  if (patterns.length === 0) return all
  const wanted = patterns.map((pattern) => relative(ROOT, join(process.cwd(), pattern)).replace(/\.ts$/, '.js'))
  const matching = (file) => wanted.some((part) => file.includes(part))
  return all.filter(matching)
}

/** Runs node; each line it writes goes to `onLine`, or straight out when there is none. */
function run(args, onLine) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      stdio: ['ignore', onLine ? 'pipe' : 'inherit', 'inherit'],
    })
    if (onLine) createInterface({ input: child.stdout }).on('line', onLine)
    const stop = (signal) => child.kill(signal)
    process.once('SIGINT', stop).once('SIGTERM', stop)
    const done = (code) => {
      process.off('SIGINT', stop).off('SIGTERM', stop)
      resolve(code)
    }
    child.once('error', () => done(1))
    child.once('close', (code) => done(code ?? 1))
  })
}

/**
 * Makes of a TAP stream a log to read: one line for a file that passed, all but its passed assertions for one that failed.
 */
export function summarize(print) {
  let held = []
  let failing = false
  return (line) => {
    const result = /^(not )?ok \d+ - (.*)$/.exec(line)
    if (result) {
      failing = result[1] !== undefined
      if (failing) for (const each of held) print(each)
      print(line)
      held = []
    } else if (/^# Subtest: /.test(line)) {
      failing = false
      held = [line]
    } else if (/^#/.test(line) || (failing && line !== '')) print(line)
    else if (held.length > 0 && !/^ +ok \d+/.test(line) && line.trim() !== '') held.push(line)
  }
}

/**
 * Reads a TAP report: its closing totals, and for each file the number of assertions, where a subtest is not one itself.
 * `totals` is null when the report has no end, as after a crash of the runner.
 */
export function readReport(tap) {
  const assertions = new Map()
  const open = []
  let totals = null
  let file = null
  for (const line of tap.split('\n')) {
    const subtest = /^( *)# Subtest: (.*)$/.exec(line)
    const result = /^( *)(?:not )?ok\b/.exec(line)
    const total = /^# \{ (total: .*) \}$/.exec(line)
    if (subtest) {
      if (subtest[1] === '') {
        file = subtest[2]
        assertions.set(file, 0)
      }
      open.push(subtest[1].length)
    } else if (result) {
      const depth = result[1].length
      while (open.length > 0 && open.at(-1) > depth) open.pop()
      if (open.at(-1) === depth) open.pop()
      else if (depth > 0 && file !== null && !line.endsWith('{')) assertions.set(file, assertions.get(file) + 1)
    } else if (total) {
      const count = (name) => Number(new RegExp(`\\b${name}: (\\d+)`).exec(total[1])?.[1] ?? 0)
      totals = {
        total: count('total'),
        pass: count('pass'),
        fail: count('fail'),
        skip: count('skip'),
        todo: count('todo'),
      }
    }
  }
  return { totals, assertions }
}

/** Runs the files, `jobs` at a time. Returns the counts and what went wrong besides failed assertions. */
async function runTests(files, jobs, nodeArgs) {
  const lines = []
  const show = summarize(console.log)
  const code = await run([...nodeArgs, join(ROOT, '.scripts/tap.mjs'), jobs, ...files], (line) => {
    lines.push(line)
    show(line)
  })
  const report = `${lines.join('\n')}\n`
  appendFileSync(RESULTS, report)
  const { totals, assertions } = readReport(report)
  const problems = []
  if (!totals) problems.push('the test runner ended without a report')
  if (totals && totals.pass === 0) problems.push('no test ran')
  if (totals?.skip || totals?.todo) problems.push(`${totals.skip} skipped and ${totals.todo} unwritten tests`)
  for (const file of files) if (!assertions.get(file)) problems.push(`${file} asserted nothing`)
  if (code !== 0 && totals?.fail === 0 && problems.length === 0) problems.push(`the test runner ended with ${code}`)
  return { passed: totals?.pass ?? 0, failed: totals?.fail ?? 0, problems }
}

async function main(patterns) {
  const problems = []
  let passed = 0
  let failed = 0
  try {
    await build({ ifStale: true })
    if (patterns.length === 0) {
      const colors = process.stdout.isTTY ? [] : ['--colors=off']
      const check = async (name, program, args) => {
        if ((await run([join(ROOT, 'node_modules', program), ...args])) !== 0) problems.push(name)
      }
      await check('type check of src/sdk', 'typescript/bin/tsc', ['-p', 'src/sdk', '--noEmit'])
      await check('biome ci', '@biomejs/biome/bin/biome', ['ci', '--error-on-warnings', ...colors, '.'])
    }
    const missing = provide(PROGRAMS)
    expose(PROGRAMS)
    const files = testFiles(patterns)
    if (missing.length > 0) problems.push(...missing)
    else if (files.length === 0)
      problems.push(`no test file${patterns.length > 0 ? ` matches ${patterns.join(' ')}` : ''}`)
    else {
      rmSync(RESULTS, { force: true })
      // Stacks of whoever looks for a fault in some files name the sources; in a run of all that would cost a tenth.
      const nodeArgs = patterns.length > 0 ? ['--enable-source-maps'] : []
      const of = (parts) => [...new Set(parts.flatMap((part) => files.filter((file) => file.includes(`test/${part}`))))]
      const alone = of(ALONE)
      const pairs = of(PAIRS).filter((file) => !alone.includes(file))
      const together = files.filter((file) => !alone.includes(file) && !pairs.includes(file))
      for (const [group, jobs] of [
        [together, JOBS],
        [pairs, '2'],
        [alone, '1'],
      ]) {
        if (group.length === 0) continue
        const result = await runTests(group, jobs, nodeArgs)
        passed += result.passed
        failed += result.failed
        problems.push(...result.problems)
      }
    }
  } catch (error) {
    problems.push(error.message)
  }
  for (const problem of problems) console.log(`FAILED: ${problem}`)
  console.log(`${passed} passed, ${failed + problems.length} failed`)
  process.exitCode = failed + problems.length > 0 ? 1 : 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2))
