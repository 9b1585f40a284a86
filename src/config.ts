// Every setting: name, type, default and a sentence, in one table. The table makes the frozen Config, the environment names
// and --help; config/default.json is its printed form. Unknown settings and unsafe combinations are refused by name.

import { readFileSync } from 'node:fs'
import { type Cidr, parseCidr } from './domain/ip.ts'
import { isWellFormed } from './domain/keys.ts'

type Kind = 'text' | 'integer' | 'flag' | 'list'
type Value = string | number | boolean | readonly string[]

interface Setting {
  readonly name: string
  readonly kind: Kind
  readonly standard: Value
  readonly sentence: string
  readonly min?: number
  readonly max?: number
  readonly oneOf?: readonly string[]
  /** Shorter environment name, where decisions or custom give one. */
  readonly alias?: string
}

const DAY_SECONDS = 86_400

const SETTINGS = [
  { name: 'http.host', kind: 'text', standard: '127.0.0.1', alias: 'HOST', sentence: 'Address to listen on.' },
  {
    name: 'http.port',
    kind: 'integer',
    standard: 8080,
    min: 0,
    max: 65_535,
    alias: 'PORT',
    sentence: 'Port to listen on; 0 takes a free one.',
  },
  {
    name: 'http.trustedProxies',
    kind: 'list',
    standard: [],
    alias: 'TRUSTED_PROXIES',
    sentence: 'CIDR ranges of proxies whose X-Forwarded-For is believed.',
  },
  {
    name: 'http.allowPlainHttp',
    kind: 'flag',
    standard: false,
    alias: 'ALLOW_PLAIN_HTTP',
    sentence: 'Permits plain HTTP on an address other than loopback.',
  },
  {
    name: 'http.inFlightMax',
    kind: 'integer',
    standard: 20_000,
    min: 1,
    max: 1_000_000,
    sentence: 'Requests served at once; more are refused with 503.',
  },
  {
    name: 'tls.certFile',
    kind: 'text',
    standard: '',
    sentence: 'PEM certificate chain; with tls.keyFile the server speaks HTTPS.',
  },
  { name: 'tls.keyFile', kind: 'text', standard: '', sentence: 'PEM private key of tls.certFile.' },
  {
    name: 'data.dir',
    kind: 'text',
    standard: './data',
    alias: 'DATA_DIR',
    sentence: 'Folder of the embedded log, state and ClickHouse.',
  },
  {
    name: 'data.partitions',
    kind: 'integer',
    standard: 4,
    min: 1,
    max: 256,
    sentence: 'Partitions of the log; fixed when the data folder is created.',
  },
  {
    name: 'data.freeBytesMin',
    kind: 'integer',
    standard: 536_870_912,
    min: 0,
    sentence: 'Free disk space below which identifications are refused.',
  },
  {
    name: 'log.durability',
    kind: 'text',
    standard: 'fsync',
    oneOf: ['fsync', 'relaxed'],
    sentence: 'fsync: flushed to disk before the 2xx. relaxed: survives a crash of the process, not of the machine.',
  },
  {
    name: 'log.bytesMax',
    kind: 'integer',
    standard: 34_359_738_368,
    min: 67_108_864,
    sentence: 'Size of the log at which identifications are refused.',
  },
  {
    name: 'log.keepSeconds',
    kind: 'integer',
    standard: 300,
    min: 10,
    max: 7 * DAY_SECONDS,
    sentence: 'How long decided events stay in the log at least.',
  },
  {
    name: 'ingress.decisionWaitMs',
    kind: 'integer',
    standard: 2_000,
    min: 10,
    max: 60_000,
    alias: 'DECISION_WAIT_MS',
    sentence: 'How long a client waits for its decision before it gets 202.',
  },
  {
    name: 'ingress.pendingMax',
    kind: 'integer',
    standard: 50_000,
    min: 1,
    max: 10_000_000,
    sentence: 'Accepted and undecided identifications beyond which new ones are refused.',
  },
  {
    name: 'engine.threads',
    kind: 'integer',
    standard: 1,
    min: 1,
    max: 64,
    sentence: 'Worker threads that decide; partitions are spread over them.',
  },
  {
    name: 'engine.visitorsMax',
    kind: 'integer',
    standard: 50_000,
    min: 100,
    max: 10_000_000,
    sentence: 'Visitors kept in memory per partition.',
  },
  {
    name: 'engine.stepMsMax',
    kind: 'integer',
    standard: 10_000,
    min: 100,
    max: 600_000,
    sentence: 'Time after which a worker is taken to hang and is replaced.',
  },
  {
    name: 'engine.heapMbMax',
    kind: 'integer',
    standard: 2_048,
    min: 64,
    max: 65_536,
    sentence: 'Heap of one worker thread, in MiB.',
  },
  {
    name: 'sink.flushMs',
    kind: 'integer',
    standard: 1_000,
    min: 10,
    max: 60_000,
    sentence: 'How long events gather before they are inserted into ClickHouse.',
  },
  {
    name: 'sink.rowsMax',
    kind: 'integer',
    standard: 10_000,
    min: 1,
    max: 1_000_000,
    sentence: 'Events that are inserted at once without waiting longer.',
  },
  {
    name: 'recent.eventsMax',
    kind: 'integer',
    standard: 1_000_000,
    min: 1_000,
    max: 100_000_000,
    sentence: 'Events not yet in ClickHouse that can be found by id.',
  },
  {
    name: 'retention.eventsDays',
    kind: 'integer',
    standard: 90,
    min: 1,
    max: 3_650,
    sentence: 'Days events are kept.',
  },
  {
    name: 'operator.token',
    kind: 'text',
    standard: '',
    alias: 'OPERATOR_TOKEN',
    sentence: 'Token of the operator API, at least 32 characters; empty turns the API off.',
  },
  { name: 'keys.public', kind: 'text', standard: '', alias: 'PUBLIC_KEY', sentence: 'pk_live_ key to pre-seed.' },
  { name: 'keys.secret', kind: 'text', standard: '', alias: 'SECRET_KEY', sentence: 'sk_live_ key to pre-seed.' },
  {
    name: 'keys.testPublic',
    kind: 'text',
    standard: '',
    alias: 'TEST_PUBLIC_KEY',
    sentence: 'pk_test_ key to pre-seed.',
  },
  {
    name: 'keys.testSecret',
    kind: 'text',
    standard: '',
    alias: 'TEST_SECRET_KEY',
    sentence: 'sk_test_ key to pre-seed.',
  },
  {
    name: 'logging.level',
    kind: 'text',
    standard: 'info',
    oneOf: ['debug', 'info', 'warn', 'error', 'silent'],
    alias: 'LOG_LEVEL',
    sentence: 'Least severe log line that is written.',
  },
  {
    name: 'config.file',
    kind: 'text',
    standard: '',
    alias: 'CONFIG',
    sentence: 'JSON file of settings by section; the environment wins over it.',
  },
] as const satisfies readonly Setting[]

const settings: readonly Setting[] = SETTINGS

/** A setting that cannot be: the sentence names it and says what it takes. */
export class BadSetting extends Error {
  override readonly name = 'BadSetting'
}

const PREFIX = 'FINGERPOST_'
const upper = (text: string): string =>
  text
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('.', '_')
    .toUpperCase()
const environmentNames = ({ name, alias }: Setting): string[] => [
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

function fromFile(path: string, values: Map<string, Value>): void {
  let sections: unknown
  try {
    sections = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new BadSetting(`the settings file ${path} cannot be read: ${(error as Error).message}`)
  }
  for (const [section, members] of Object.entries(sections as Record<string, Record<string, unknown>>)) {
    for (const [member, value] of Object.entries(members ?? {})) {
      const name = `${section}.${member}`
      const setting = settings.find((s) => s.name === name)
      if (setting === undefined) throw new BadSetting(`${path} has an unknown setting: ${name}`)
      values.set(name, parse(setting, path, value))
    }
  }
}

function fromEnvironment(env: NodeJS.ProcessEnv, values: Map<string, Value>): void {
  const byName = new Map(
    settings.flatMap((setting) => environmentNames(setting).map((name) => [name, setting] as const)),
  )
  for (const [variable, value] of Object.entries(env)) {
    if (!variable.startsWith(PREFIX) || value === undefined) continue
    const setting = byName.get(variable)
    if (setting === undefined) throw new BadSetting(`unknown setting: ${variable}`)
    if (value !== '') values.set(setting.name, parse(setting, variable, value))
  }
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

export interface Config extends Values {
  readonly trustedProxies: readonly Cidr[]
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost'])

/** Reads, checks and freezes; throws BadSetting. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const values = new Map<string, Value>(settings.map((s) => [s.name, s.standard]))
  const file = env[`${PREFIX}CONFIG`]
  if (file !== undefined && file !== '') fromFile(file, values)
  fromEnvironment(env, values)
  const config = Object.fromEntries(values) as unknown as Values
  const trustedProxies = config['http.trustedProxies'].map((text) => {
    const cidr = parseCidr(text)
    if (cidr === null) throw new BadSetting(`http.trustedProxies: ${text} is no CIDR range`)
    return cidr
  })
  refuseUnsafe(config)
  return Object.freeze({ ...config, trustedProxies })
}

function refuseUnsafe(config: Values): void {
  const tls = config['tls.certFile'] !== '' || config['tls.keyFile'] !== ''
  if (tls && (config['tls.certFile'] === '' || config['tls.keyFile'] === '')) {
    throw new BadSetting('tls.certFile and tls.keyFile are set together or not at all')
  }
  if (!tls && !LOOPBACK.has(config['http.host']) && !config['http.allowPlainHttp']) {
    throw new BadSetting(
      `http.host ${config['http.host']} is not loopback: set tls.certFile and tls.keyFile, or http.allowPlainHttp behind a proxy that ends TLS`,
    )
  }
  const token = config['operator.token']
  if (token !== '' && token.length < 32) throw new BadSetting('operator.token takes at least 32 characters')
  const keys = [
    ['keys.public', 'pk_live_'],
    ['keys.secret', 'sk_live_'],
    ['keys.testPublic', 'pk_test_'],
    ['keys.testSecret', 'sk_test_'],
  ] as const
  for (const [name, prefix] of keys) {
    const key = config[name]
    if (key !== '' && !(key.startsWith(prefix) && isWellFormed(key))) {
      throw new BadSetting(`${name} is no well-formed ${prefix} key: make one with fingerpost keygen`)
    }
  }
}

/** What to say about settings that are allowed and risky. */
export function warnings(config: Config): string[] {
  const said: string[] = []
  if (config['log.durability'] === 'relaxed') {
    said.push('log.durability is relaxed: an accepted identification can be lost when the machine loses power')
  }
  if (!LOOPBACK.has(config['http.host']) && config['tls.certFile'] === '') {
    said.push(`plain HTTP on ${config['http.host']}: keys and visitor data travel unencrypted unless a proxy ends TLS`)
  }
  return said
}

/** The table as JSON by section: the content of config/default.json. */
export function defaultsJson(): string {
  const sections: Record<string, Record<string, Value>> = {}
  for (const { name, standard } of settings) {
    const [section, member] = name.split('.') as [string, string]
    sections[section] = { ...sections[section], [member]: standard }
  }
  return `${JSON.stringify(sections, null, 2)}\n`
}

export function helpText(): string {
  const lines = settings.map((s) => {
    const standard = Array.isArray(s.standard) ? s.standard.join(',') : String(s.standard)
    return `  ${environmentNames(s)[0]}\n      ${s.sentence}${standard === '' ? '' : ` Default ${standard}.`}`
  })
  return lines.join('\n')
}
