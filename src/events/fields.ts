// The field registry: every path a condition or a template may name, with its type, its operators, how it is read from
// the facts of an identification and where ClickHouse keeps it. Validation, both compilers and the API read this table.

import { type Facts, type ScoreName, type SignalName, VELOCITY_NAMES, type VelocityName } from '../domain/event.ts'
import type { ListType } from '../domain/list.ts'
import { type ConditionOperator, OPERATORS } from '../domain/rule.ts'
import { urlParts } from './url.ts'

/** `strings` is an array of strings; `any` has no declared type (tag.*). Datetimes are read as milliseconds. */
export type FieldType = 'number' | 'string' | 'boolean' | 'datetime' | 'strings' | 'any'
export type FieldCategory =
  | 'visitor'
  | 'device'
  | 'signals'
  | 'scores'
  | 'ip'
  | 'request'
  | 'time'
  | 'identity'
  | 'velocity'
  | 'tag'

/** null means missing. Objects and mixed arrays come from tag.* only. */
export type FieldValue = string | number | boolean | object | null

export interface Field {
  readonly path: string
  readonly type: FieldType
  readonly label: string
  readonly category: FieldCategory
  readonly operators: readonly ConditionOperator[]
  /** The type of list that `in` and `not_in` accept for this field; null: none. */
  readonly list: ListType | 'any' | null
  /** How an output must show the value; conditions always see it whole. */
  readonly mask: 'ip' | 'email' | null
  /** Never throws and never returns undefined or a number that is not finite. */
  readonly read: (facts: Facts) => FieldValue
  readonly column: Column
}

/**
 * Where ClickHouse keeps a field: `sql` is an expression over the events table that is never NULL. What is stored is compared
 * as it is, so that a condition means the same there as here: a number as the whole number `value * scale`, a moment as
 * DateTime64(3), an address as IPv6. `present` says in SQL whether there is a value; null: always. `hash`, where there is
 * one, is the column that holds cityHash64 of the text.
 */
export type Column =
  | { readonly kind: 'text'; readonly sql: string; readonly present: string | null; readonly hash: string | null }
  | { readonly kind: 'number'; readonly sql: string; readonly present: string | null; readonly scale: number }
  | { readonly kind: 'flag' | 'moment' | 'texts'; readonly sql: string }
  | { readonly kind: 'address'; readonly sql: string; readonly hash: string }
  /** A value of any type inside a column of JSON texts. */
  | { readonly kind: 'json'; readonly sql: string; readonly keys: readonly string[] }

const FIELD_PATH_CHARS_MAX = 256

export const OPERATORS_BY_TYPE: Readonly<Record<FieldType, readonly ConditionOperator[]>> = {
  number: ['equals', 'not_equals', 'gt', 'gte', 'lt', 'lte', 'in', 'not_in', 'exists'],
  string: ['equals', 'not_equals', 'in', 'not_in', 'contains', 'exists'],
  boolean: ['equals', 'not_equals', 'exists'],
  datetime: ['equals', 'gt', 'gte', 'lt', 'lte', 'exists'],
  strings: ['contains', 'exists'],
  any: OPERATORS,
}

type Extras = Partial<Pick<Field, 'list' | 'mask'>>
type Get<T> = (facts: Facts) => T | null | undefined

const CATEGORIES: ReadonlyMap<string, FieldCategory> = new Map([
  ['visitorId', 'visitor'],
  ['visitorFound', 'visitor'],
  ['confidence', 'visitor'],
  ['possibleVisitorId', 'visitor'],
  ['possibleConfidence', 'visitor'],
  ['firstSeenAt', 'visitor'],
  ['lastSeenAt', 'visitor'],
  ['visitor', 'visitor'],
  ['device', 'device'],
  ['signals', 'signals'],
  ['scores', 'scores'],
  ['ip', 'ip'],
  ['timestamp', 'time'],
  ['time', 'time'],
  ['identity', 'identity'],
  ['velocity', 'velocity'],
  ['tag', 'tag'],
])

function make(
  type: FieldType,
  path: string,
  label: string,
  column: Column,
  read: Field['read'],
  { list = null, mask = null }: Extras = {},
): Field {
  const category = CATEGORIES.get(path.split('.', 1)[0] as string) ?? 'request'
  return { path, type, label, category, operators: OPERATORS_BY_TYPE[type], list, mask, read, column }
}

type TextExtras = Extras & { readonly hash?: string; readonly required?: boolean }
// An empty text is kept by the column store exactly like an absent one, so both read as missing.
function text(path: string, label: string, sql: string, get: Get<string>, extras: TextExtras = {}): Field {
  const { hash = null, required = false, ...rest } = extras
  const present = required ? null : hash === null ? `${sql} != ''` : `${hash} != 0`
  return make('string', path, label, { kind: 'text', sql, present, hash }, (facts) => get(facts) || null, rest)
}

const flag = (path: string, label: string, sql: string, get: Get<boolean>): Field =>
  make('boolean', path, label, { kind: 'flag', sql }, (facts) => get(facts) === true)

const finite = (get: Get<number>) => (facts: Facts) => {
  const value = get(facts)
  return Number.isFinite(value) ? (value as number) : null
}
type Stored = { readonly scale?: number; readonly present?: string }
function number(path: string, label: string, sql: string, get: Get<number>, stored: Stored = {}): Field {
  const { scale = 1, present = null } = stored
  return make('number', path, label, { kind: 'number', sql, present, scale }, finite(get))
}
const moment = (path: string, label: string, sql: string, get: Get<number>): Field =>
  make('datetime', path, label, { kind: 'moment', sql }, finite(get))

function signal(name: SignalName, label: string, column: string): Field[] {
  // What could not be determined counts as not detected.
  const read = (facts: Facts) => facts.signals[name].state === 'detected'
  return [`signals.${name}`, `signals.${name}.detected`].map((path) => flag(path, label, column, read))
}

const score = (name: ScoreName, label: string, scale: number): Field =>
  number(`scores.${name}`, label, `score_${name}`, (f) => f.scores[name], { scale })

const AGE_SECONDS = 'greatest(0, intDiv(toUnixTimestamp64Milli(ts) - toUnixTimestamp64Milli(first_seen_at), 1000))'
// A missing number is stored as 0; the readers follow what the row can hold.
const screen = (axis: 'w' | 'h', label: string): Field =>
  number(
    `device.screen.${axis}`,
    label,
    `screen_${axis}`,
    ({ device }) => (device.screen && device.screen.w > 0 && device.screen.h > 0 ? device.screen[axis] : null),
    { present: '(screen_w > 0 AND screen_h > 0)' },
  )
// Four decimals are what a 32-bit float keeps of a coordinate for sure.
const degrees = (axis: 'lat' | 'lng', label: string): Field =>
  number(
    `ip.${axis}`,
    label,
    `toInt32(round(toFloat64(${axis}) * 10000))`,
    ({ ip }) => (ip.lat === null || ip.lng === null ? null : Math.round((ip[axis] as number) * 10_000) / 10_000),
    { scale: 10_000, present: 'has_location' },
  )

const WINDOWS: Readonly<Record<string, string>> = { '5m': '5 minutes', '1h': '1 hour', '24h': '24 hours' }
const COUNTED: Readonly<Record<string, string>> = {
  'visitor.events': 'Events of the visitor',
  'visitor.ips': 'Addresses of the visitor',
  'visitor.countries': 'Countries of the visitor',
  'visitor.linkedIds': 'Accounts of the visitor',
  'ip.events': 'Events from the address',
  'ip.visitors': 'Visitors from the address',
  'linkedId.visitors': 'Visitors of the account',
  'linkedId.ips': 'Addresses of the account',
}
function velocity(name: VelocityName, index: number): Field {
  const dot = name.lastIndexOf('.')
  const label = `${COUNTED[name.slice(0, dot)]} in ${WINDOWS[name.slice(dot + 1)]}`
  // The array counts from 1, gives 0 beyond its end, and holds one more than each counter.
  const cell = `velocity[${index + 1}]`
  return number(`velocity.${name}`, label, `toInt64(${cell}) - 1`, (f) => f.velocity?.[name], {
    present: `${cell} > 0`,
  })
}

/** Every fixed path, in the order a form would offer them. `tag.<key>` is open: see `field`. */
export const FIELDS: readonly Field[] = [
  text('visitorId', 'Visitor ID', 'visitor_id', (f) => f.visitorId, {
    list: 'visitor',
    hash: 'visitor_hash',
    required: true,
  }),
  flag('visitorFound', 'Visitor was known', 'visitor_found', (f) => f.visitorFound),
  number('confidence', 'Confidence', 'confidence', (f) => f.confidence, { scale: 10_000 }),
  text('possibleVisitorId', 'Possible visitor ID', 'possible_visitor_id', (f) => f.possible?.visitorId, {
    list: 'visitor',
    hash: 'possible_hash',
  }),
  number(
    'possibleConfidence',
    'Confidence of the possible visitor',
    'possible_confidence',
    (f) => f.possible?.confidence,
    {
      scale: 10_000,
      present: 'possible_hash != 0',
    },
  ),
  moment('firstSeenAt', 'First seen', 'first_seen_at', (f) => f.firstSeenAt),
  moment('lastSeenAt', 'Last seen', 'last_seen_at', (f) => f.lastSeenAt),
  number('visitor.totalVisits', 'Total visits', 'total_visits', (f) => f.visitor.totalVisits),
  number('visitor.linkedAccounts', 'Linked accounts', 'linked_accounts', (f) => f.visitor.linkedAccounts),
  number('visitor.ageSeconds', 'Visitor age in seconds', AGE_SECONDS, (f) => f.visitor.ageSeconds),

  text('device.platform', 'Platform', 'platform', (f) => f.device.platform),
  text('device.os', 'Operating system', 'platform', (f) => f.device.platform),
  text('device.osVersion', 'OS version', 'os_version', (f) => f.device.osVersion),
  text('device.browser', 'Browser', 'browser', (f) => f.device.browser),
  text('device.browserVersion', 'Browser version', 'browser_version', (f) => f.device.browserVersion),
  text('device.gpu', 'GPU', 'gpu', (f) => f.device.gpu),
  text('device.type', 'Device type', 'device_type', (f) => f.device.type),
  screen('w', 'Screen width'),
  screen('h', 'Screen height'),
  text('device.model', 'Model', 'device_model', (f) => f.device.model),
  text('device.appVersion', 'App version', 'app_version', (f) => f.device.appVersion),
  text('device.language', 'Language', 'language', (f) => f.device.language),
  text('device.timezone', 'Device time zone', 'timezone', (f) => f.device.timezone),

  ...signal('bot', 'Bot', 'sig_bot'),
  text('signals.bot.type', 'Bot type', 'bot_type', (f) => f.signals.botType),
  ...signal('vpn', 'VPN', 'sig_vpn'),
  text('signals.vpn.provider', 'VPN provider', 'vpn_provider', (f) => f.signals.vpnProvider),
  ...signal('incognito', 'Private browsing', 'sig_incognito'),
  ...signal('tampered', 'Tampered browser', 'sig_tampered'),
  ...signal('emulator', 'Emulator', 'sig_emulator'),
  ...signal('proxy', 'Proxy', 'sig_proxy'),
  ...signal('tor', 'Tor', 'sig_tor'),
  ...signal('rootedDevice', 'Rooted device', 'sig_rooted_device'),
  ...signal('clonedApp', 'Cloned app', 'sig_cloned_app'),

  score('abuse', 'Abuse score', 10_000),
  score('ato', 'Account takeover score', 10_000),
  score('bot', 'Bot score', 10_000),
  score('suspect', 'Suspect score', 100),

  ...['ip', 'ip.address'].map((path) =>
    make('string', path, 'IP address', { kind: 'address', sql: 'ip', hash: 'ip_hash' }, (f) => f.ip.address, {
      list: 'ip',
      mask: 'ip',
    }),
  ),
  text('ip.country', 'Country', 'country', (f) => f.ip.country),
  text('ip.region', 'Region', 'region', (f) => f.ip.region),
  text('ip.city', 'City', 'city', (f) => f.ip.city),
  degrees('lat', 'Latitude'),
  degrees('lng', 'Longitude'),
  text('ip.timezone', 'IP time zone', 'ip_timezone', (f) => f.ip.timezone),
  number('ip.asn', 'ASN', 'asn', (f) => f.ip.asn || null, { present: 'asn > 0' }),
  text('ip.asnName', 'ASN name', 'asn_name', (f) => f.ip.asnName),
  flag('ip.datacenter', 'Data centre', 'datacenter', (f) => f.ip.datacenter),
  flag('ip.blocklisted', 'On a blocklist', 'ip_blocklisted', (f) => f.ip.blocklisted),
  make('strings', 'ip.blocklists', 'Blocklists', { kind: 'texts', sql: 'blocklists' }, (f) => f.ip.blocklists),

  text('linkedId', 'Linked account', 'linked_id', (f) => f.linkedId, { list: 'any', hash: 'linked_hash' }),
  text('email', 'Email', 'email', (f) => f.email, { list: 'email', mask: 'email', hash: 'email_hash' }),
  text('request.keyKind', 'Kind of the key', 'key_kind', (f) => f.keyKind),
  text('url', 'Page address', 'url', (f) => f.url),
  text('url.host', 'Page host', 'url_host', (f) => urlParts(f.url).host),
  text('url.path', 'Page path', 'url_path', (f) => urlParts(f.url).path),

  moment('timestamp', 'Time of the event', 'ts', (f) => f.timestamp),
  number('time.hourUtc', 'Hour of the day (UTC)', "toHour(ts, 'UTC')", (f) => Math.floor(f.timestamp / 3_600_000) % 24),

  text('identity.method', 'Recognised by', 'identity_method', (f) => f.identity.method),
  number('identity.anonymitySet', 'Look-alike visitors', 'anonymity_set', (f) => f.identity.anonymitySet),
  number('identity.candidates', 'Visitors compared', 'candidates', (f) => f.identity.candidates),

  ...VELOCITY_NAMES.map(velocity),
]

const byPath: ReadonlyMap<string, Field> = new Map(FIELDS.map((f) => [f.path, f]))

function readTag(keys: readonly string[]): Field['read'] {
  return (facts) => {
    let value: unknown = facts.tag
    for (const key of keys) {
      // Arrays and strings have own properties too (indexes, length); only objects are entered.
      if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key)) return null
      value = (value as Record<string, unknown>)[key]
    }
    if (typeof value === 'number') return Number.isFinite(value) ? value : null
    return typeof value === 'string' || typeof value === 'boolean' || typeof value === 'object' ? value : null
  }
}

/** The field at a path, or null when there is none. `tag.<key>` and `tag.<key>.<key>`… always exist and have type `any`. */
export function field(path: string): Field | null {
  const fixed = byPath.get(path)
  if (fixed !== undefined) return fixed
  if (!path.startsWith('tag.') || path.length > FIELD_PATH_CHARS_MAX) return null
  const keys = path.slice(4).split('.')
  if (keys.includes('')) return null
  return make('any', path, path, { kind: 'json', sql: 'tag', keys }, readTag(keys), { list: 'any' })
}
