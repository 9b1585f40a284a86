// Completes package-lock.json with the optional platform packages that the registry left out, and with the hashes it has of them. A
// registry that lacks a platform's binary makes `npm install` drop its entry without a word, and `npm ci` then refuses the lock on
// every machine.
import { execFile } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const LOCK = fileURLToPath(new URL('../package-lock.json', import.meta.url))

// Only plain versions can be completed: a range would need the registry to choose one.
const EXACT = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/

const OS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const CPU = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

/** The `os`, `cpu` and `libc` a platform package's name announces; npm uses them to leave it out elsewhere. */
export function platformOf(name) {
  const words = name.split('/').at(-1).split(/[-.]/)
  const platform = {}
  const os = words.find((word) => OS.includes(word))
  const cpu = words.find((word) => CPU.includes(word))
  if (os) platform.os = [os]
  if (cpu) platform.cpu = [cpu]
  if (words.some((word) => word === 'musl' || word === 'musleabihf')) platform.libc = ['musl']
  else if (words.some((word) => word === 'gnu' || word === 'gnueabihf' || word === 'glibc')) platform.libc = ['glibc']
  return platform
}

/** Where Node would find `name` from the package at `path`: nested folders first, then each parent's node_modules. */
function installed(packages, path, name) {
  for (let at = path; ; ) {
    const candidate = `${at === '' ? '' : `${at}/`}node_modules/${name}`
    if (packages[candidate]) return true
    if (at === '') return false
    const cut = at.lastIndexOf('/node_modules/')
    at = cut === -1 ? '' : at.slice(0, cut)
  }
}

/** Adds the missing entries to a parsed lock. Returns the names added and those it could not add, with the reason. */
export function complete(lock) {
  const added = []
  const refused = []
  for (const [path, entry] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
      if (installed(lock.packages, path, name)) continue
      const platform = platformOf(name)
      if (!EXACT.test(version)) refused.push(`${name}@${version} (not an exact version)`)
      else if (!platform.os && !platform.cpu) refused.push(`${name}@${version} (its name tells no platform)`)
      else {
        lock.packages[`node_modules/${name}`] = {
          version,
          ...(platform.cpu ? { cpu: platform.cpu } : {}),
          ...(entry.dev ? { dev: true } : {}),
          ...(platform.libc ? { libc: platform.libc } : {}),
          optional: true,
          ...(platform.os ? { os: platform.os } : {}),
        }
        added.push(`${name}@${version}`)
      }
    }
  }
  if (added.length > 0) {
    const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en'))
    lock.packages = Object.fromEntries(sorted)
  }
  return { added, refused }
}

const INTEGRITY = /^sha512-[A-Za-z0-9+/]{86}==$/
const askMsMax = 60_000

/**
 * Gives entries without a hash the one that `ask` has for a name and a version: a text, or null where there is none. Returns the
 * names that got one and those that did not.
 */
export async function completeHashes(lock, ask) {
  const hashed = []
  const unhashed = []
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === '' || entry.link || entry.integrity !== undefined) continue
    const name = entry.name ?? path.split('node_modules/').at(-1)
    const integrity = await ask(name, entry.version)
    if (integrity === null || !INTEGRITY.test(integrity)) unhashed.push(`${name}@${entry.version}`)
    else {
      // Where npm itself would write it: behind the version.
      const { version, ...rest } = entry
      lock.packages[path] = { version, integrity, ...rest }
      hashed.push(`${name}@${version}`)
    }
  }
  return { hashed, unhashed }
}

/** What the registry that npm is set up for has: null when it has none. Fails when it cannot be asked. */
function askRegistry(name, version) {
  return new Promise((resolve, reject) => {
    const args = ['view', `${name}@${version}`, 'dist.integrity', '--json', '--fetch-retries=0']
    execFile('npm', args, { timeout: askMsMax }, (failure, stdout) => {
      const said = stdout.trim() === '' ? null : JSON.parse(stdout)
      if (said?.error?.code === 'E404') resolve(null)
      else if (failure !== null) reject(new Error(said?.error?.summary ?? failure.message))
      else resolve(typeof said === 'string' ? said : null)
    })
  })
}

/** A registry that cannot be asked leaves the hashes as they are. */
async function hashesOf(lock) {
  try {
    return await completeHashes(lock, askRegistry)
  } catch (error) {
    console.error(`the registry could not be asked for hashes: ${error.message}`)
    return { hashed: [], unhashed: [] }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const lock = JSON.parse(readFileSync(LOCK, 'utf8'))
  const { added, refused } = complete(lock)
  const { hashed, unhashed } = await hashesOf(lock)
  if (added.length + hashed.length > 0) {
    const temporary = `${LOCK}.${process.pid}`
    writeFileSync(temporary, `${JSON.stringify(lock, null, 2)}\n`)
    renameSync(temporary, LOCK)
  }
  for (const name of added) console.log(`added ${name}`)
  for (const name of refused) console.error(`cannot add ${name}`)
  for (const name of hashed) console.log(`hash of ${name}`)
  for (const name of unhashed) console.log(`the registry has no ${name}: no hash`)
  console.log(`package-lock.json: ${added.length} added, ${refused.length} not added`)
  console.log(`hashes: ${hashed.length} completed, ${unhashed.length} missing`)
  process.exitCode = refused.length > 0 ? 1 : 0
}
