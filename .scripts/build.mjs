// Builds everything that runs: modules, tests and benches into build/{src,test,bench}, of the same sources the server as it is
// shipped into build/server, the browser SDK into build/sdk.
// With --if-stale it does nothing when no input changed since the last build. Any number of builds may run at once.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const BUILD = join(ROOT, 'build')
const STAMP = join(BUILD, '.stamp')
const LOCK = join(BUILD, '.lock')
const INPUTS = ['src', 'test', 'bench', '.scripts', 'package.json', 'package-lock.json', 'tsconfig.json']
const COMPILED = ['src', 'test', 'bench']
/** What the compiler made last, and what it made it of. */
const LATEST = join(BUILD, '.compiled')
const BUNDLED = 'server'
const MAIN = join(BUILD, BUNDLED, 'main.js')
const SDK = join(BUILD, 'sdk')

const lockBeatMs = 1_000
const lockStaleMs = 15_000
const lockWaitMsMax = 300_000

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
function fingerprintInputs() {
  const hash = createHash('sha256')
  for (const file of INPUTS.flatMap((input) => filesUnder(input)).sort()) {
    const stat = statSync(join(ROOT, file), { throwIfNoEntry: false })
    if (stat) hash.update(`${file}\0${stat.size}\0${stat.mtimeMs}\n`)
  }
  return hash.digest('hex')
}

function isFresh(inputs) {
  if (![STAMP, MAIN, SDK].every((path) => existsSync(path))) return false
  return readFileSync(STAMP, 'utf8') === inputs
}

/** Holds build/.lock while `work` runs. The holder touches the file, so that one left by a killed build is seen as dead. */
async function withLock(work) {
  mkdirSync(BUILD, { recursive: true })
  const mine = join(BUILD, `.lock-${process.pid}`)
  const startedAt = Date.now()
  for (;;) {
    writeFileSync(mine, `${process.pid}\n`)
    try {
      linkSync(mine, LOCK)
      break
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    } finally {
      rmSync(mine, { force: true })
    }
    const stat = statSync(LOCK, { throwIfNoEntry: false })
    if (stat && Date.now() - stat.mtimeMs > lockStaleMs) takeAway(stat.ino)
    else if (Date.now() - startedAt > lockWaitMsMax) throw new Error(`another build holds ${LOCK} for too long`)
    else await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const release = () => rmSync(LOCK, { force: true })
  process.once('exit', release)
  const beat = setInterval(() => utimesSync(LOCK, new Date(), new Date()), lockBeatMs)
  try {
    return await work()
  } finally {
    clearInterval(beat)
    process.off('exit', release)
    release()
  }
}

// Two waiters may see the same dead lock: the file is moved aside first, and put back if it turned out to be a new one.
function takeAway(deadInode) {
  const aside = join(BUILD, `.lock-dead-${process.pid}`)
  try {
    renameSync(LOCK, aside)
    if (statSync(aside).ino !== deadInode) linkSync(aside, LOCK)
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error
  }
  rmSync(aside, { force: true })
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

/**
 * Writes only files that changed, each at once: a process that runs from build/ never reads half a file. What no longer has a
 * source is removed, so that a deleted test cannot run on.
 */
async function compile() {
  // The bundler waits for no types, and what it made is thrown away when the compiler refuses.
  const [bundled, compiled] = await Promise.all([bundle(), compileModules()])
  const outputs = new Map([...compiled, ...[...bundled].map(([name, content]) => [join(BUNDLED, name), content])])
  for (const [file, content] of outputs) writeIfDifferent(join(BUILD, file), content)
  for (const file of [...COMPILED, BUNDLED].flatMap((folder) => filesUnder(folder, BUILD))) {
    if (!outputs.has(file)) rmSync(join(BUILD, file), { force: true })
  }
}

/** Compiles what changed since the last time, and resolves with all files that belong below build/. */
async function compileModules() {
  const files = COMPILED.flatMap((folder) => filesUnder(folder)).filter(
    (file) => !/^src\/sdk\/|\.(md|d\.ts)$/.test(file),
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
  return new Map([...results.map((file) => [file, readFileSync(join(LATEST, file))]), ...assets])
}

async function bundle() {
  const { bundleServer } = await import('./build-server.mjs')
  return await bundleServer(join(BUILD, BUNDLED))
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

/** Builds; with `ifStale` only when an input changed. Rejects with BuildFailed after the compiler has said why. */
export async function build({ ifStale = false } = {}) {
  if (ifStale && isFresh(fingerprintInputs())) return
  await withLock(async () => {
    // Taken before the compiler reads: a file saved during the build makes the next build run, never be missed.
    const inputs = fingerprintInputs()
    if (ifStale && isFresh(inputs)) return
    rmSync(STAMP, { force: true })
    await compile()
    // Declarations of what the package exports, for those who install the package.
    await run('typescript/bin/tsc', ['-p', 'src/client'])
    const { buildSdk } = await import('./build-sdk.mjs')
    await buildSdk()
    if (existsSync(MAIN)) chmodSync(MAIN, 0o755)
    writeBuildInfo()
    writeFileSync(STAMP, inputs)
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(signal === 'SIGINT' ? 130 : 143))
  try {
    await build({ ifStale: process.argv.includes('--if-stale') })
  } catch (error) {
    console.error(error instanceof BuildFailed ? `build failed: ${error.message}` : error)
    process.exitCode = 1
  }
}
