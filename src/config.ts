// From the table of settings to the frozen Config, and the environment names. Unknown settings and unsafe combinations are
// refused by name.

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { providerProblem } from './api/console/settings.ts'
import { type Cidr, parseCidr } from './domain/ip.ts'
import { isWellFormed } from './domain/keys.ts'
import { placesProblem, sourcePlaces } from './ipintel/sources.ts'
import { Told } from './lib/failures.ts'
import { isServiceLink } from './lib/kubernetes.ts'
import { RESERVE_BYTES } from './lib/lmdb-room.ts'
import { storesProblem } from './lib/store-places.ts'
import { SETTINGS, type Setting, type Value } from './settings.ts'

const settings: readonly Setting[] = SETTINGS

/** A setting that cannot be: the sentence names it and says what it takes. */
export class BadSetting extends Told {
  override readonly name = 'BadSetting'
}

const PREFIX = 'FINGERPOST_'
const upper = (text: string): string =>
  text
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('.', '_')
    .toUpperCase()
/** The short name first: an image sets it, and where somebody wrote the long one as well, that wins. */
export const environmentNames = ({ name, alias }: Setting): string[] => [
  ...(alias === undefined ? [] : [PREFIX + alias]),
  PREFIX + upper(name),
]

function parse(setting: Setting, from: string, value: unknown): Value {
  const { kind, name } = setting
  const fail = (takes: string): never => {
    throw new BadSetting(`${from} (${name}) takes ${takes}`)
  }
  if (kind === 'integer') {
    const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
    const [min, max] = [setting.min ?? 0, setting.max ?? Number.MAX_SAFE_INTEGER]
    const fits = typeof number === 'number' && Number.isInteger(number) && number >= min && number <= max
    return fits ? number : fail(`a whole number from ${min} to ${max}`)
  }
  if (kind === 'flag') {
    if (value === true || value === 'true' || value === '1') return true
    if (value === false || value === 'false' || value === '0') return false
    return fail('true or false')
  }
  if (kind === 'list') {
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
    if (typeof value !== 'string') return fail('a comma-separated list')
    return value
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')
  }
  if (typeof value !== 'string') return fail('text')
  if (setting.oneOf !== undefined && !setting.oneOf.includes(value)) return fail(`one of ${setting.oneOf.join(', ')}`)
  return value
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function fromFile(path: string, values: Map<string, Value>): void {
  let sections: unknown
  try {
    sections = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new BadSetting(`the settings file ${path} cannot be read: ${(error as Error).message}`)
  }
  if (!isObject(sections)) throw new BadSetting(`${path} holds no object with sections of settings`)
  for (const [section, members] of Object.entries(sections)) {
    if (!settings.some(({ name }) => name.startsWith(`${section}.`))) {
      throw new BadSetting(`${path} has an unknown section: ${section}`)
    }
    if (!isObject(members)) throw new BadSetting(`${path} takes an object of settings as ${section}`)
    for (const [member, value] of Object.entries(members)) {
      const name = `${section}.${member}`
      const setting = settings.find((s) => s.name === name)
      if (setting === undefined) throw new BadSetting(`${path} has an unknown setting: ${name}`)
      if (name === 'config.file' && value !== '') {
        throw new BadSetting(`${path} sets config.file, which the environment alone can set: a file names no other`)
      }
      values.set(name, parse(setting, path, value))
    }
  }
}

/** The variables that Kubernetes put there, which are nobody's settings. */
function fromEnvironment(env: NodeJS.ProcessEnv, values: Map<string, Value>): string[] {
  const ignored: string[] = []
  const unread = new Set(Object.keys(env).filter((name) => name.startsWith(PREFIX) && env[name] !== undefined))
  for (const variable of unread) {
    if (!isServiceLink(variable, env[variable] ?? '')) continue
    ignored.push(variable)
    unread.delete(variable)
  }
  for (const setting of settings) {
    for (const variable of environmentNames(setting)) {
      const value = env[variable]
      if (unread.delete(variable) && value) values.set(setting.name, parse(setting, variable, value))
    }
  }
  for (const variable of unread) throw new BadSetting(`unknown setting: ${variable}`)
  return ignored
}

type Values = {
  readonly [S in (typeof SETTINGS)[number] as S['name']]: S['kind'] extends 'integer'
    ? number
    : S['kind'] extends 'flag'
      ? boolean
      : S['kind'] extends 'list'
        ? readonly string[]
        : string
}

export const PROCESS_ROLES = ['ingress', 'engine', 'api', 'dispatcher', 'jobs'] as const
export type ProcessRole = (typeof PROCESS_ROLES)[number]

export interface Config extends Values {
  readonly trustedProxies: readonly Cidr[]
  /** Of `webhooks.allowPrivateCidrs`. */
  readonly allowPrivate: readonly Cidr[]
  readonly roles: ReadonlySet<ProcessRole>
  readonly isCluster: boolean
  /** Threads that can accept and decide. */
  readonly shards: number
  /** Those of them that do from the start. */
  readonly shardsMin: number
  /** Of a new deployment. */
  readonly partitions: number
  /** Free disk space below which nothing is accepted: `data.freeBytesMin`, and no less than LMDB keeps free by itself. */
  readonly freeBytesMin: number
  /** Variables that were not read as settings, because Kubernetes had put them there. */
  readonly ignored: readonly string[]
}

/** A process with many cores should not meet a flood with one of them. */
const SHARDS_TO_ONE_AT_START = 4
const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost'])

/** Reads, checks and freezes; throws BadSetting. `roleList` is what the command line says, comma-separated. */
export function readConfig(env: NodeJS.ProcessEnv, roleList?: string): Config {
  const values = new Map<string, Value>(settings.map((s) => [s.name, s.standard]))
  const file = env.FINGERPOST_CONFIG_FILE || env.FINGERPOST_CONFIG
  if (file) fromFile(file, values)
  const ignored = fromEnvironment(env, values)
  const config = Object.fromEntries(values) as unknown as Values
  const cidrsOf = (name: 'http.trustedProxies' | 'webhooks.allowPrivateCidrs') =>
    config[name].map((text) => {
      const cidr = parseCidr(text)
      if (cidr === null) throw new BadSetting(`${name}: ${text} is no CIDR range`)
      return cidr
    })
  const trustedProxies = cidrsOf('http.trustedProxies')
  const allowPrivate = cidrsOf('webhooks.allowPrivateCidrs')
  refuseUnsafe(config)
  const isCluster = config['deployment.mode'] === 'cluster'
  const roles = readRoles(roleList === undefined ? config['process.roles'] : roleList.split(','), isCluster)
  const shards = config['engine.threads'] || availableParallelism()
  const partitions = config['data.partitions'] || (isCluster ? 16 : Math.max(4, shards))
  const shardsMin = Math.min(shards, config['engine.threadsMin'] || Math.ceil(shards / SHARDS_TO_ONE_AT_START))
  // With less nothing is stored any more, whatever the setting says.
  const freeBytesMin = Math.max(config['data.freeBytesMin'], RESERVE_BYTES)
  const made = { trustedProxies, allowPrivate, roles, isCluster, shards, shardsMin, partitions, freeBytesMin, ignored }
  return Object.freeze({ ...config, ...made })
}

function readRoles(names: readonly string[], isCluster: boolean): ReadonlySet<ProcessRole> {
  if (names.length === 1 && names[0] === 'all') return new Set(PROCESS_ROLES)
  const known = new Set(PROCESS_ROLES.filter((role) => names.includes(role)))
  if (known.size === 0 || known.size !== new Set(names).size) {
    throw new BadSetting(`process.roles takes ${PROCESS_ROLES.join(', ')} or all, not ${names.join(',')}`)
  }
  if (!isCluster && known.size < PROCESS_ROLES.length) {
    throw new BadSetting('process.roles: roles run apart only in a cluster; set deployment.mode to cluster')
  }
  return known
}

function refuseUnsafe(config: Values): void {
  const tls = config['tls.certFile'] !== '' || config['tls.keyFile'] !== ''
  if (tls && (config['tls.certFile'] === '' || config['tls.keyFile'] === '')) {
    throw new BadSetting('tls.certFile and tls.keyFile are set together or not at all')
  }
  for (const name of ['http.host', 'http.adminHost'] as const) {
    if (tls || LOOPBACK.has(config[name]) || config['http.allowPlainHttp']) continue
    throw new BadSetting(
      `${name} ${config[name]} is not loopback: set tls.certFile and tls.keyFile, or http.allowPlainHttp behind a proxy that ends TLS`,
    )
  }
  for (const name of ['http.publicUrl', 'console.url'] as const) {
    const address = config[name]
    if (address === '' || (/^https?:\/\/[^/?#@]+$/.test(address) && URL.canParse(address))) continue
    throw new BadSetting(`${name} takes an address such as https://fingerpost.example, without a path`)
  }
  if (
    config['ingress.cookieDomain'] !== '' &&
    !/^([a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}$/.test(config['ingress.cookieDomain'])
  ) {
    throw new BadSetting('ingress.cookieDomain takes a domain such as example.com')
  }
  if (config['http.adminPort'] !== 0 && config['http.adminPort'] === config['http.port']) {
    throw new BadSetting('http.adminPort is a port of its own, or 0')
  }
  if (config['deployment.mode'] === 'cluster' && config['log.durability'] === 'relaxed') {
    throw new BadSetting(
      'log.durability relaxed is for one machine: in a cluster nothing is acknowledged before the log has it',
    )
  }
  for (const places of sourcePlaces(config)) {
    const problem = placesProblem(places)
    if (problem !== null) throw new BadSetting(problem)
  }
  const ofStores = config['deployment.mode'] === 'cluster' ? storesProblem(config) : null
  if (ofStores !== null) throw new BadSetting(ofStores)
  for (const [name, isV6] of [
    ['webhooks.ipv4', false],
    ['webhooks.ipv6', true],
  ] as const) {
    const wrong = config[name].find((text) => parseCidr(text)?.v6 !== isV6)
    if (wrong !== undefined) throw new BadSetting(`${name}: ${wrong} is no ${isV6 ? 'IPv6' : 'IPv4'} range`)
  }
  const ofProvider = providerProblem(config)
  if (ofProvider !== null) throw new BadSetting(ofProvider)
  const token = config['operator.token']
  if (token !== '' && token.length < 32) throw new BadSetting('operator.token takes at least 32 characters')
  const keys = [
    ['keys.public', 'pk_live_', 'PUBLIC_KEY'],
    ['keys.secret', 'sk_live_', 'SECRET_KEY'],
    ['keys.testPublic', 'pk_test_', 'TEST_PUBLIC_KEY'],
    ['keys.testSecret', 'sk_test_', 'TEST_SECRET_KEY'],
  ] as const
  for (const [name, prefix, variable] of keys) {
    const key = config[name]
    if (key !== '' && prefix.includes('_test_') && key.includes('_live_')) {
      throw new BadSetting(
        `${name} (${PREFIX}${variable}) holds a key of the live environment: it takes the ${prefix} key`,
      )
    }
    if (key !== '' && !(key.startsWith(prefix) && isWellFormed(key))) {
      throw new BadSetting(`${name} is no well-formed ${prefix} key: make one with fingerpost keygen`)
    }
  }
}

const ENCRYPTED = new Set(['https:', 'rediss:', 'tls:'])

function crossesNetworkInClear(addresses: readonly string[]): boolean {
  return addresses.some((address) => {
    const text = address.includes('://') ? address : `nats://${address}`
    if (!URL.canParse(text)) return false
    const { protocol, hostname } = new URL(text)
    return !ENCRYPTED.has(protocol) && !LOOPBACK.has(hostname.replace(/^\[|\]$/g, ''))
  })
}

/** What to say about settings that are allowed and risky. */
export function warnings(config: Config): string[] {
  const said: string[] = []
  if (config.ignored.length > 0) {
    said.push(
      `not read, because Kubernetes sets them for a Service: ${config.ignored.join(', ')}; FINGERPOST_HTTP_PORT sets the port`,
    )
  }
  if (config['log.durability'] === 'relaxed') {
    said.push('log.durability is relaxed: an accepted identification can be lost when the machine loses power')
  }
  if (config['deployment.mode'] === 'cluster') {
    if (config['nats.replicas'] < 3) {
      said.push(
        `nats.replicas is ${config['nats.replicas']}: what is accepted is lost with the disk of one NATS server`,
      )
    }
    for (const name of ['nats.servers', 'redis.url', 'clickhouse.url'] as const) {
      // With it every connection to NATS is TLS, whatever the addresses begin with.
      const isEncrypted = name === 'nats.servers' && config['nats.caFile'] !== ''
      if (!isEncrypted && crossesNetworkInClear([config[name]].flat())) {
        said.push(`${name}: keys and visitor data travel unencrypted to another machine`)
      }
    }
  }
  if (!LOOPBACK.has(config['http.host']) && config['tls.certFile'] === '') {
    said.push(`plain HTTP on ${config['http.host']}: keys and visitor data travel unencrypted unless a proxy ends TLS`)
  }
  return said
}
