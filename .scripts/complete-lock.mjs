// Completes package-lock.json with the optional platform packages that the registry left out. A registry that lacks a
// platform's binary makes `npm install` drop its entry without a word, and `npm ci` then refuses the lock on every machine.
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const lock = JSON.parse(readFileSync(LOCK, 'utf8'))
  const { added, refused } = complete(lock)
  if (added.length > 0) {
    const temporary = `${LOCK}.${process.pid}`
    writeFileSync(temporary, `${JSON.stringify(lock, null, 2)}\n`)
    renameSync(temporary, LOCK)
  }
  for (const name of added) console.log(`added ${name}`)
  for (const name of refused) console.error(`cannot add ${name}`)
  console.log(`package-lock.json: ${added.length} added, ${refused.length} not added`)
  process.exitCode = refused.length > 0 ? 1 : 0
}
