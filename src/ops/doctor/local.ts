// What the doctor finds on this machine without asking anybody: what is native, what is there, and what others could read.

import { existsSync, lstatSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Config, warnings } from '../../config.ts'
import { driverOf } from '../../http/server.ts'
import { tlsProblems } from '../../http/tls.ts'
import { authoritiesProblem } from '../../lib/authorities.ts'
import { reasonOf } from '../../lib/plain.ts'
import { masterKeyFile } from '../../role-settings.ts'
import { type Finding, findingsOf } from './finding.ts'

/** Of which there are security fixes. */
const NODE_MAJOR_MIN = 22
const OTHERS = 0o077
/** A key that keygen made has far more. */
const DISTINCT_CHARS_MIN = 16
const FORMAT_FILE = 'format.json'
const require = createRequire(import.meta.url)

const isThere = (name: string): boolean => {
  try {
    require.resolve(name)
    return true
  } catch {
    return false
  }
}

export async function findNative(config: Config): Promise<Finding[]> {
  const { ok, note, bad } = findingsOf('native')
  const { version, platform, arch } = process
  const major = Number(/^v(\d+)/.exec(version)?.[1])
  const runtime = `${version} on ${platform} ${arch}`
  const found: Finding[] = [
    major >= NODE_MAJOR_MIN
      ? ok('Node.js', runtime)
      : note('Node.js', runtime, `Node.js ${major} gets no security fixes any more: use ${NODE_MAJOR_MIN} or newer`),
  ]
  try {
    const driver = driverOf(config['http.driver'])
    found.push(
      driver === 'uws'
        ? ok('HTTP', 'the native driver, uws')
        : note('HTTP', 'the driver of Node.js: a request costs more than with the native one'),
    )
  } catch (error) {
    found.push(bad('HTTP', reasonOf(error), 'set http.driver to auto'))
  }
  if (config.isCluster) return found
  try {
    await import('lmdb')
    found.push(ok('LMDB', 'its binary loads'))
  } catch (error) {
    found.push(bad('LMDB', reasonOf(error), 'install again without --no-optional'))
  }
  found.push(
    isThere('chdb')
      ? ok('ClickHouse', 'the embedded engine, chdb, is installed')
      : bad('ClickHouse', 'the embedded engine is not installed: no history is kept', 'npm install chdb'),
  )
  return found
}

export function findPresent(config: Config): Finding[] {
  const { ok, note, bad } = findingsOf('present')
  const found: Finding[] = []
  const { 'data.dir': dir, 'tls.certFile': certFile, 'tls.keyFile': keyFile } = config
  if (!config.isCluster) {
    if (!existsSync(dir)) found.push(note('data folder', `${dir} is not there yet: the first start makes it`))
    else {
      const hasDeployment = existsSync(join(dir, FORMAT_FILE))
      found.push(ok('data folder', `${dir}${hasDeployment ? '' : ', without a deployment yet'}`))
      const { bavail, bsize } = statfsSync(dir)
      const [free, min] = [bavail * bsize, config['data.freeBytesMin']]
      const says = `${megabytes(free)} free, identifications are refused below ${megabytes(min)}`
      if (free < min) found.push(bad('disk', says, 'free space, or move data.dir'))
      else found.push((free < 4 * min ? note : ok)('disk', says))
      const key = masterKeyFile(config)
      if (existsSync(key)) found.push(ok('master key', `${key}: keep a copy of it elsewhere`))
      else if (hasDeployment) {
        found.push(bad('master key', `${key} is missing: secrets of webhooks cannot be opened`, 'bring the file back'))
      }
    }
  }
  const broken = certFile === '' ? [] : tlsProblems({ certFile, keyFile })
  for (const [name, of, path] of [
    ['TLS certificate', 'certFile', certFile],
    ['TLS key', 'keyFile', keyFile],
  ] as const) {
    if (path === '') continue
    const problem = broken.find(({ file }) => file === of)
    found.push(problem === undefined ? ok(name, path) : bad(name, problem.says))
  }
  for (const [name, file, problemOf] of [
    ['CA of webhooks', config['webhooks.extraCaFile'], authoritiesProblem],
    ['backup passphrase', config['backup.passphraseFile'], readingProblem],
  ] as const) {
    if (file === '') continue
    const problem = problemOf(file)
    found.push(problem === null ? ok(name, file) : bad(name, problem))
  }
  if (found.length === 0) found.push(ok('files', 'none is configured'))
  return found
}

function readingProblem(path: string): string | null {
  try {
    readFileSync(path)
    return null
  } catch (error) {
    return reasonOf(error)
  }
}

const megabytes = (bytes: number): string => `${Math.floor(bytes / 1e6)} MB`

const SECRETS = [
  'keys.public',
  'keys.secret',
  'keys.testPublic',
  'keys.testSecret',
  'operator.token',
] as const satisfies readonly (keyof Config)[]

/** `settingsFile`: where settings come from, empty where they come from the environment alone. */
export function findPrivate(config: Config, settingsFile: string): Finding[] {
  const { ok, note, bad } = findingsOf('private')
  const paths = [
    ...(config.isCluster ? [] : withEntries(config['data.dir'])),
    ...[masterKeyFile(config), config['tls.keyFile'], config['backup.passphraseFile'], settingsFile],
  ]
  const open = [...new Set(paths)].filter((path) => path !== '' && isOpen(path))
  const found: Finding[] = open.map((path) => bad('files', `others can read ${path}`, `chmod go= ${path}`))
  if (open.length === 0) found.push(ok('files', 'only their user can read data, keys and settings'))
  const given = SECRETS.filter((name) => config[name] !== '')
  const weak = given.filter((name) => new Set(config[name]).size < DISTINCT_CHARS_MIN)
  const doubled = given.filter((name) => given.some((other) => other !== name && config[other] === config[name]))
  for (const name of weak) found.push(bad('keys', `${name} can be guessed`, 'make one with fingerpost keygen'))
  for (const name of doubled) found.push(bad('keys', `${name} is the same as another`, 'give each its own'))
  if (weak.length + doubled.length === 0) {
    found.push(ok('keys', given.length === 0 ? 'none is given: the first start makes them' : `${given.length} given`))
  }
  for (const warning of warnings(config)) found.push(note('settings', warning))
  return found
}

/** The folder and what lies in it: whoever cannot enter the folders below sees nothing in them. */
function withEntries(dir: string): string[] {
  if (!existsSync(dir)) return []
  return [dir, ...readdirSync(dir).map((name) => join(dir, name))]
}

function isOpen(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found !== undefined && (found.isFile() || found.isDirectory()) && (found.mode & OTHERS) !== 0
}
