// Builds everything that runs: modules, tests and benches into build/{src,test,bench}, of the same sources the server as it is
// shipped into build/server, the browser SDK into build/sdk, the guides and what their pages load into build/docs, the console into
// build/console.
// With --if-stale it does nothing when no input changed since the last build; with --server it makes only what the server needs, and
// checks no types. Any number of builds may run at once.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withLock } from './build-lock.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const BUILD = join(ROOT, 'build')
const SERVER_INPUTS = ['src', '.scripts', 'package.json', 'package-lock.json', 'tsconfig.json']
/** What each target is made of, and the file that says of which state of it. */
const TARGETS = {
  server: { inputs: SERVER_INPUTS, stamp: join(BUILD, '.stamp-server') },
  all: { inputs: [...SERVER_INPUTS, 'test', 'bench'], stamp: join(BUILD, '.stamp') },
}
const COMPILED = ['src', 'test', 'bench']
/** What the compiler made last, and what it made it of. */
const LATEST = join(BUILD, '.compiled')
const BUNDLED = 'server'
const MAIN = join(BUILD, BUNDLED, 'main.js')
const SDK = join(BUILD, 'sdk')
const DOCS = join(BUILD, 'docs')
const CONSOLE = join(BUILD, 'console')

/** Every file below `path`, as paths from the root of the project; a path that does not exist has none. */
function filesUnder(path, base = ROOT) {
  const stat = statSync(join(base, path), { throwIfNoEntry: false })
  if (!stat) return []
  if (!stat.isDirectory()) return [path]
  return readdirSync(join(base, path), { withFileTypes: true, recursive: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(base, join(entry.parentPath ?? entry.path, entry.name)))
}

/** One hash over path, size and modification time of every input; reading their contents would cost more than it tells. */
function fingerprintOf({ inputs }) {
  const hash = createHash('sha256')
  for (const file of inputs.flatMap((input) => filesUnder(input)).sort()) {
    const stat = statSync(join(ROOT, file), { throwIfNoEntry: false })
    if (stat) hash.update(`${file}\0${stat.size}\0${stat.mtimeMs}\n`)
  }
  return hash.digest('hex')
}

function isFresh(target) {
  if (![target.stamp, MAIN, SDK, DOCS, CONSOLE].every((path) => existsSync(path))) return false
  return readFileSync(target.stamp, 'utf8') === fingerprintOf(target)
}

/** Does `work` and says in one line what it was and how long it took. */
async function step(what, work) {
  const startedAt = performance.now()
  const made = await work()
  console.error(`${what}: ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
  return made
}

/** Runs a program of node_modules to its end; its output is ours. Rejects unless it exits with 0. */
function run(script, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(ROOT, 'node_modules', script), ...args], {
      cwd: ROOT,
      stdio: 'inherit',
    })
    const stop = () => child.kill()
    process.once('exit', stop)
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      process.off('exit', stop)
      if (code === 0) resolve()
      else reject(new BuildFailed(`${script} ended with ${signal ?? code}`))
    })
  })
}

class BuildFailed extends Error {}

/** Bundler and compiler work beside each other, and what one made is thrown away when the other refuses. */
async function makeAll() {
  const [bundled, compiled] = await Promise.all([
    step('bundle the server into build/server', bundle),
    step('check types and compile modules, tests and benches', compileModules),
  ])
  writeFolders([...COMPILED, BUNDLED], new Map([...compiled, ...bundled]))
  // Declarations of what the package exports, for those who install the package.
  await step('declare the types of the client', () => run('typescript/bin/tsc', ['-p', 'src/client']))
}

async function makeServer() {
  writeFolders([BUNDLED], await step('bundle the server into build/server', bundle))
}

/**
 * Writes only files that changed, each at once: a process that runs from build/ never reads half a file. What no longer has a
 * source is removed, so that a deleted test cannot run on.
 */
function writeFolders(folders, outputs) {
  for (const [file, content] of outputs) writeIfDifferent(join(BUILD, file), content)
  for (const file of folders.flatMap((folder) => filesUnder(folder, BUILD))) {
    if (!outputs.has(file)) rmSync(join(BUILD, file), { force: true })
  }
}

/** Compiles what changed since the last time, and resolves with all files that belong below build/. */
async function compileModules() {
  const files = COMPILED.flatMap((folder) => filesUnder(folder)).filter(
    (file) => !/^src\/(sdk|docs|console)\/|\.(md|d\.ts)$/.test(file),
  )
  const sources = files.filter((file) => /\.ts$/.test(file))
  const results = sources.map((file) => file.replace(/\.ts$/, '.js')).flatMap((file) => [file, `${file}.map`])
  const isWhole = () => results.every((file) => existsSync(join(LATEST, file)))
  const args = ['-p', '.', '--incremental', '--tsBuildInfoFile', join(LATEST, '.tsbuildinfo'), '--outDir', LATEST]
  await run('typescript/bin/tsc', args)
  if (!isWhole()) {
    // Somebody took files away, which the compiler believes to be there.
    rmSync(LATEST, { recursive: true, force: true })
    await run('typescript/bin/tsc', args)
  }
  // SQL, Lua, JSON and fixtures are read with new URL('./x', import.meta.url), so they must lie beside the built module.
  const assets = files.filter((file) => !sources.includes(file)).map((file) => [file, readFileSync(join(ROOT, file))])
  // Tests import what of the console needs no browser, and what is imported the compiler makes as well.
  const imported = filesUnder('src/console')
    .map((file) => file.replace(/\.ts$/, '.js'))
    .filter((file) => /\.js$/.test(file) && existsSync(join(LATEST, file)))
  const made = [...results, ...imported].map((file) => [file, readFileSync(join(LATEST, file))])
  return new Map([...made, ...assets])
}

async function bundle() {
  const { bundleServer } = await import('./build-server.mjs')
  const files = await bundleServer(join(BUILD, BUNDLED))
  return new Map([...files].map(([name, content]) => [join(BUNDLED, name), content]))
}

async function makeSdk() {
  const { buildSdk } = await import('./build-sdk.mjs')
  await buildSdk()
}

async function makeDocs() {
  const { buildDocs } = await import('./build-docs.mjs')
  await buildDocs()
}

async function makeConsole() {
  const { buildConsole } = await import('./build-console.mjs')
  await buildConsole()
}

function writeIfDifferent(path, content) {
  if (existsSync(path) && readFileSync(path).equals(Buffer.from(content))) return
  mkdirSync(dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}`
  writeFileSync(temporary, content)
  renameSync(temporary, path)
}

/** The checked-out commit, read without git so that an image without it can build too; null outside a checkout. */
function commit() {
  const git = join(ROOT, '.git')
  const read = (name) => (existsSync(join(git, name)) ? readFileSync(join(git, name), 'utf8') : null)
  const head = read('HEAD')?.trim()
  if (!head) return null
  if (!head.startsWith('ref: ')) return head
  const ref = head.slice('ref: '.length)
  const loose = read(ref)?.trim()
  if (loose) return loose
  const packed = read('packed-refs')
    ?.split('\n')
    .find((line) => line.endsWith(` ${ref}`))
  return packed?.split(' ')[0] ?? null
}

function writeBuildInfo() {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const info = { version, commit: commit() ?? process.env.GIT_COMMIT ?? null, builtAt: new Date().toISOString() }
  const temporary = join(BUILD, `.build-info-${process.pid}`)
  writeFileSync(temporary, `${JSON.stringify(info, null, 2)}\n`)
  renameSync(temporary, join(BUILD, 'build-info.json'))
}

/**
 * Builds the target `all` or `server`; with `ifStale` only when an input of it changed. Rejects with BuildFailed after the compiler
 * has said why.
 */
export async function build({ ifStale = false, only = 'all' } = {}) {
  const target = TARGETS[only]
  if (ifStale && isFresh(target)) return
  await withLock(BUILD, async () => {
    if (ifStale && isFresh(target)) return
    const made = only === 'all' ? [TARGETS.server, TARGETS.all] : [TARGETS.server]
    // Taken before the compiler reads: a file saved during the build makes the next build run, never be missed.
    const stamps = made.map((part) => [part.stamp, fingerprintOf(part)])
    // What this build replaces is no longer what another target was made of.
    for (const { stamp } of Object.values(TARGETS)) rmSync(stamp, { force: true })
    await (only === 'all' ? makeAll() : makeServer())
    await step('bundle the browser SDK and the demo into build/sdk', makeSdk)
    await step('make pages of the guides into build/docs', makeDocs)
    await step('bundle the console into build/console', makeConsole)
    if (existsSync(MAIN)) chmodSync(MAIN, 0o755)
    writeBuildInfo()
    for (const [stamp, inputs] of stamps) writeFileSync(stamp, inputs)
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(signal === 'SIGINT' ? 130 : 143))
  const has = (option) => process.argv.includes(option)
  try {
    await build({ ifStale: has('--if-stale'), only: has('--server') ? 'server' : 'all' })
  } catch (error) {
    console.error(error instanceof BuildFailed ? `build failed: ${error.message}` : error)
    process.exitCode = 1
  }
}
