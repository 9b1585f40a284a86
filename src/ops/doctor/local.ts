// What the doctor finds on this machine without asking anybody: what is native, what is there, and what others could read.

import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Config, warnings } from '../../config.ts'
import { driverOf } from '../../http/server.ts'
import { tlsProblems } from '../../http/tls.ts'
import { authoritiesProblem } from '../../lib/authorities.ts'
import { reasonOf } from '../../lib/plain.ts'
import { masterKeyFile } from '../../role-settings.ts'
import { type Finding, findingsOf } from './finding.ts'
import { findFolder } from './folder.ts'

/** Of which there are security fixes. */
const NODE_MAJOR_MIN = 22
const OTHERS = 0o077
/** A key that keygen made has far more. */
const DISTINCT_CHARS_MIN = 16
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
  const { ok, bad } = findingsOf('present')
  const { 'tls.certFile': certFile, 'tls.keyFile': keyFile } = config
  const found: Finding[] = config.isCluster ? [] : findFolder(config)
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

/** What lets somebody in, and is compared with one another. */
const KEYS = [
  'keys.public',
  'keys.secret',
  'keys.testPublic',
  'keys.testSecret',
  'operator.token',
] as const satisfies readonly (keyof Config)[]
/** A file of settings that has none of them may be read by anybody. */
const SECRETS = [
  ...(['keys.secret', 'keys.testSecret', 'operator.token', 'backup.passphrase', 'console.oidcClientSecret'] as const),
  ...(['nats.password', 'nats.token', 'clickhouse.password', 'smtp.password'] as const),
] as const satisfies readonly (keyof Config)[]
/** A password may stand in them, before the host. */
const ADDRESSES = ['nats.servers', 'redis.url', 'redis.clusterNodes', 'clickhouse.url'] as const

/** `settingsFile`: where settings come from, empty where they come from the environment alone. */
export function findPrivate(config: Config, settingsFile: string): Finding[] {
  const { ok, note, bad } = findingsOf('private')
  const file = settingsFile || config['config.file']
  const paths = [
    ...(config.isCluster ? [] : withEntries(config['data.dir'])),
    ...[masterKeyFile(config), config['tls.keyFile'], config['backup.passphraseFile']],
    ...(file !== '' && hasSecret(file) ? [file] : []),
  ]
  const open = [...new Set(paths)].filter((path) => path !== '' && isOpen(path))
  const found: Finding[] = open.map((path) => bad('files', `others can read ${path}`, `chmod go= ${path}`))
  if (open.length === 0) found.push(ok('files', 'only their user can read data, keys and settings'))
  const given = KEYS.filter((name) => config[name] !== '')
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

/** The settings were read from it before. */
function hasSecret(settingsFile: string): boolean {
  const sections = JSON.parse(readFileSync(settingsFile, 'utf8')) as Readonly<Record<string, Record<string, unknown>>>
  const textOf = (name: string): string => {
    const [section = '', member = ''] = name.split('.')
    return String(sections[section]?.[member] ?? '')
  }
  return SECRETS.some((name) => textOf(name) !== '') || ADDRESSES.some((name) => textOf(name).includes('@'))
}

/** The folder and what lies in it: whoever cannot enter the folders below sees nothing in them. */
function withEntries(dir: string): string[] {
  try {
    return [dir, ...readdirSync(dir).map((name) => join(dir, name))]
  } catch {
    // That it is not there, or not ours, is told elsewhere.
    return [dir]
  }
}

function isOpen(path: string): boolean {
  try {
    const found = lstatSync(path)
    return (found.isFile() || found.isDirectory()) && (found.mode & OTHERS) !== 0
  } catch {
    return false
  }
}
