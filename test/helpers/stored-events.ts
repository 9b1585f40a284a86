// Random events as the service can store them, random rules aimed at them, and lists: what the closures are told and what
// ClickHouse is told must come to the same.

import { SIGNAL_NAMES, type StoredEvent, VELOCITY_NAMES, type Velocity } from '../../src/domain/event.ts'
import { canonicalIp, inCidrs, parseCidr } from '../../src/domain/ip.ts'
import type { ConditionGroup, ConditionOperator, Leaf, Literal } from '../../src/domain/rule.ts'
import { FIELDS, type Field, field } from '../../src/events/fields.ts'
import { must } from '../../src/lib/must.ts'
import type { ListFacts, ListSource } from '../../src/records/list-source.ts'
import { FACTS, signals } from './facts.ts'
import { valueAt } from './interpreter.ts'
import type { Rng } from './rng.ts'

/** Texts that mean something somewhere: to SQL, to a parameter's encoding, to JSON, to a pattern. */
export const HOSTILE: readonly string[] = [
  '__proto__',
  'constructor',
  'toString',
  "'",
  '"',
  '`',
  '\\',
  "\\'",
  '\\N',
  '\n',
  '\n\n',
  '\r\n\t',
  '\u2028',
  '\u0000',
  'a\u0000b',
  '%',
  '_',
  '%27',
  '$\u007bprocess.exit(1)}',
  "'];process.exit(1);//",
  "'; DROP TABLE events; --",
  '/*',
  '{p0:String}',
  '{{rule.name}}',
  '\u202etxt.exe',
  '\ufeff',
  '\ufffd',
  '😀',
  'é',
  'e\u0301',
  'İ',
  '7',
  'true',
  'null',
  ' ',
]
const TEXTS = ['a', 'CZ', 'JP', 'Windows', 'Chrome 147', 'Chrome', 'user_42', 'login', 'spamhaus', ...HOSTILE]
const URLS = [
  'https://Shop.example/login?next=%2F#top',
  'https://user:pw@shop.example:8443/a/b',
  'http://[2001:db8::1]/',
  'app://x',
  'https://shop.example',
  'not an address',
  "https://shop.example/'\\;--",
]
export const ADDRESSES = [
  '203.0.113.9',
  '203.0.113.255',
  '0.0.0.0',
  '255.255.255.255',
  '10.1.2.3',
  '::',
  '::1',
  '::1:0',
  '::102:304',
  '::ffff:0:102:304',
  '2001:db8::1',
  '2001:db8:0:1:1:1:1:1',
  '2001:db8::1:0:0:1',
  '2001:db8:1:2:3:4:5:6',
  'fe80::1',
  'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
  '0:ffff:cb00:7109::',
  '64:ff9b::102:304',
]
const SPELLINGS = [
  '203.0.113.09',
  '::ffff:203.0.113.9',
  '2001:DB8::1',
  '2001:db8:0::1',
  '1.2.3',
  '203.0.113.9 ',
  '::1%lo',
]
const NUMBERS = [
  -1,
  -0,
  0,
  0.1,
  0.25,
  0.5,
  0.8,
  1,
  7,
  12.5,
  42.5,
  99.99,
  1080,
  10_000,
  65_535,
  65_536,
  64_500,
  4_294_967_295,
  9_007_199_254_740_991,
  9_007_199_254_740_992,
  1e20,
  123_456_789_012_345_680_000,
  1e21,
  1e300,
  -1e300,
  5e-324,
  0.1 + 0.2,
]
const BASE_MS = Date.UTC(2026, 10, 20, 18, 30)
const MOMENTS = [
  '2026-11-20T18:30:00Z',
  '2026-11-20T18:30Z',
  '2026-11-20T19:30:00.000+01:00',
  '2026-11-20T18:29:59.999Z',
  '2026-11-20T18:30:00.001999999Z',
  '1999-01-01T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
]
const TAG_KEYS = [
  'action',
  'amount',
  'vip',
  'nothing',
  'cart',
  'cart.items',
  'cart.codes',
  'cart.deep.er',
  'cart.0',
  '__proto__',
  'constructor',
  "it's",
  'é',
  'a\nb',
  '\\',
]

export const LIST_ENTRIES: Readonly<
  Record<string, { readonly type: ListFacts['type']; readonly entries: readonly string[] }>
> = {
  friends: { type: 'visitor', entries: ['pv_aaaaaaaaaaaaaaaaaaaa', 'user_42', 'login', "it's"] },
  strangers: {
    type: 'ip',
    entries: [
      '203.0.113.9',
      '10.0.0.0/8',
      '10.1.0.0/16',
      '203.0.113.128/25',
      '0.0.0.0/32',
      '2001:db8::1',
      '2001:db8:1::/48',
      '2001:db8:0:1::/64',
      '2001:db8:1:2:3:4::/96',
      'fe80::/127',
      '::102:304',
    ],
  },
  everyv4: { type: 'ip', entries: ['0.0.0.0/0'] },
  everyv6: { type: 'ip', entries: ['::/0', 'ff00::/8'] },
  edges: { type: 'ip', entries: ['0.0.0.0/1', '255.255.255.255', 'ffff::/16', '::/64', '::/127'] },
  mails: { type: 'email', entries: ['a@b.example', 'é@x.example', "o'hara@b.example"] },
  empty: { type: 'email', entries: [] },
}
const LIST_NAMES = [...Object.keys(LIST_ENTRIES), 'Friends', 'STRANGERS', 'gone']

/** What the compiled rules are told. */
export function member(name: string, value: string): boolean | null {
  if (!Object.hasOwn(LIST_ENTRIES, name)) return null
  const { type, entries } = must(LIST_ENTRIES[name])
  if (type !== 'ip') return entries.includes(value)
  return (
    canonicalIp(value) === value &&
    inCidrs(
      value,
      entries.map((entry) => must(parseCidr(entry))),
    )
  )
}

/** The same lists as ClickHouse gets them. */
export const listSource: ListSource = {
  async find(_workspace, _env, name) {
    const found = LIST_ENTRIES[name.toLowerCase()]
    return found === undefined
      ? null
      : { id: `lst_${name}`, name, type: found.type, version: 1, entryCount: found.entries.length }
  },
  async *values(_workspace, _env, listId) {
    const { entries } = must(LIST_ENTRIES[listId.slice('lst_'.length)])
    yield entries.slice(0, 3)
    yield entries.slice(3)
  },
}

/** An event of the given number: everything about it is drawn, often missing, within what a row can hold. */
export function randomEvent(r: Rng, workspace: string, number: number): StoredEvent {
  const maybe = <T>(value: T, others: readonly T[]): T => (r.chance(0.4) ? value : r.pick(others))
  const text = (value: string | null): string | null => maybe<string | null>(value, [null, '', ...TEXTS])
  const few = () => SIGNAL_NAMES.filter(() => r.chance(0.25))
  const whole = (max: number): number => (r.chance(0.5) ? r.pick([0, 1, 2, 7, 8, max]) : r.int(Math.min(max, 50)))
  const scaled = (by: number, max: number): number => (r.chance(0.4) ? r.int(11) / 10 : r.int(by * max + 1) / by)
  const { device, ip } = FACTS
  const timestamp = r.chance(0.3) ? BASE_MS : BASE_MS - r.int(70 * 86_400_000)
  const firstSeenAt = r.chance(0.3) ? timestamp : timestamp - r.int(40 * 86_400_000)
  const place = r.chance(0.5)
  return {
    ...FACTS,
    workspace,
    env: 'live',
    requestId: `req_${String(number).padStart(26, '0')}`,
    visitorId: maybe(FACTS.visitorId, ['pv_bbbbbbbbbbbbbbbbbbbb', `pv_${'c'.repeat(20)}`]),
    visitorFound: r.chance(0.5),
    confidence: scaled(10_000, 1),
    possible: r.chance(0.4)
      ? null
      : {
          visitorId: r.pick([FACTS.visitorId, 'pv_pppppppppppppppppppp', 'pv_bbbbbbbbbbbbbbbbbbbb']),
          confidence: scaled(10_000, 1),
        },
    timestamp,
    firstSeenAt,
    lastSeenAt: r.chance(0.5) ? timestamp : firstSeenAt,
    device: {
      platform: maybe(device.platform, ['iOS', 'other']),
      osVersion: text(device.osVersion),
      browser: maybe(device.browser, ['Safari 18', 'other', ...HOSTILE]),
      browserVersion: text(device.browserVersion),
      gpu: text(device.gpu),
      type: maybe(device.type, ['mobile', 'other']),
      screen: maybe(device.screen, [null, { w: 1, h: 7 }, { w: 32_767, h: 32_767 }]),
      model: text(null),
      appVersion: text(null),
      language: text(device.language),
      timezone: text(device.timezone),
    },
    signals: { ...signals(few(), few()), vpnProvider: text(null), botType: text(null) },
    scores: { abuse: scaled(10_000, 1), ato: scaled(10_000, 1), bot: scaled(10_000, 1), suspect: scaled(100, 100) },
    ip: {
      address: r.pick(ADDRESSES),
      city: text(ip.city),
      region: text(ip.region),
      country: text(ip.country),
      lat: place ? maybe(ip.lat, [0, -90, 90, 12.34565, r.float() * 180 - 90]) : null,
      lng: place || r.chance(0.1) ? maybe(ip.lng, [0, -180, 180, -0.00001, r.float() * 360 - 180]) : null,
      timezone: text(ip.timezone),
      asn: maybe(ip.asn, [null, 0, 7, 4_294_967_295]),
      asnName: text(ip.asnName),
      datacenter: r.chance(0.5),
      blocklisted: r.chance(0.5),
      blocklists: maybe<readonly string[]>(ip.blocklists, [[], ['a'], HOSTILE, ['']]),
    },
    linkedId: r.chance(0.2) ? r.pick([...ADDRESSES, ...SPELLINGS]) : text(FACTS.linkedId),
    email: maybe<string | null>(FACTS.email, [null, '', "o'hara@b.example", 'é@x.example', 'x@y.example']),
    tag: randomTag(r),
    url: r.chance(0.3) ? text(null) : r.pick(URLS),
    identity: {
      method: r.pick(['token', 'exact', 'linked', 'new'] as const),
      anonymitySet: whole(4_294_967_295),
      candidates: whole(4_294_967_295),
      generation: 2,
    },
    visitor: {
      totalVisits: whole(4_294_967_295),
      linkedAccounts: whole(4_294_967_295),
      ageSeconds: Math.floor((timestamp - firstSeenAt) / 1000),
    },
    velocity: r.chance(0.2)
      ? null
      : (Object.fromEntries(
          VELOCITY_NAMES.map((name) => [name, r.chance(0.2) ? null : whole(1_000_000)]),
        ) as unknown as Velocity),
    verdict: r.pick([null, 'allow', 'challenge', 'block'] as const),
    challengeType: null,
    matchedRule: null,
    matchedRules: [],
    monitorMatches: [],
    rulesRevision: 1,
    keyKind: r.pick([null, 'public', 'secret'] as const),
    weightsVersion: r.pick([null, 3]),
    label: r.pick([null, 'fraud', 'legitimate'] as const),
    evaluationError: null,
  }
}

function randomTag(r: Rng): Record<string, unknown> {
  const value = (depth: number): unknown => {
    const kind = r.int(depth > 0 ? 8 : 5)
    if (kind === 0) return r.pick([null, true, false])
    if (kind <= 2) return r.pick(NUMBERS)
    if (kind <= 4) return r.pick(['', ...TEXTS, ...ADDRESSES, ...SPELLINGS])
    if (kind <= 6) return Array.from({ length: r.int(4) }, () => value(depth - 1))
    return { items: value(depth - 1), codes: value(depth - 1), 0: value(0) }
  }
  if (r.chance(0.1)) return {}
  // Not a literal: a key such as __proto__ must become a property like any other.
  const entries = TAG_KEYS.filter((key) => !key.includes('.') && r.chance(0.6)).map((key) => [key, value(2)] as const)
  return Object.fromEntries(entries)
}

/** A rule whose values are often those of one of the events. */
export function randomRule(r: Rng, events: readonly StoredEvent[], depth = 1): ConditionGroup {
  const rules = Array.from({ length: 1 + r.int(depth === 1 ? 5 : 3) }, () =>
    depth < 4 && r.chance(0.2) ? randomRule(r, events, depth + 1) : randomLeaf(r, events),
  )
  return { operator: r.chance(0.5) ? 'AND' : 'OR', rules }
}

export function randomLeaf(r: Rng, events: readonly StoredEvent[]): Leaf {
  const of = r.chance(0.3) ? must(field(`tag.${r.pick(TAG_KEYS)}`)) : r.pick(FIELDS)
  const operator: ConditionOperator = r.pick(of.operators)
  return { field: of.path, operator, value: operand(r, of, operator, events) }
}

function operand(r: Rng, of: Field, operator: ConditionOperator, events: readonly StoredEvent[]): Leaf['value'] {
  if (operator === 'exists') return r.chance(0.5)
  if (operator !== 'in' && operator !== 'not_in') return literal(r, of, operator, events)
  if (of.list !== null && r.chance(0.25)) return r.pick(LIST_NAMES)
  return Array.from({ length: r.int(r.chance(0.05) ? 160 : 5) }, () => literal(r, of, operator, events))
}

function literal(r: Rng, of: Field, operator: ConditionOperator, events: readonly StoredEvent[]): Literal {
  const own = r.chance(0.5) ? valueAt(of.path, r.pick(events)) : null
  switch (of.type) {
    case 'number': {
      const near = typeof own === 'number' ? own : r.pick(NUMBERS)
      return r.chance(0.6) ? near : near + r.pick([1, -1, 1e-4, -1e-4, 1e-12, -1e-12, Number.EPSILON, 0.5])
    }
    case 'boolean':
      return r.chance(0.5)
    case 'datetime':
      return typeof own === 'number' ? new Date(own + r.pick([0, 0, 1, -1])).toISOString() : r.pick(MOMENTS)
    case 'any': {
      const one: unknown = Array.isArray(own) && own.length > 0 ? r.pick(own) : own
      if (typeof one === 'string') return part(r, one, operator)
      if (typeof one === 'number' || typeof one === 'boolean') return one
      return r.pick<Literal>(['', ...TEXTS, ...NUMBERS, true, false])
    }
    default: {
      const one: unknown = Array.isArray(own) && own.length > 0 ? r.pick(own) : own
      if (typeof one === 'string') return part(r, one, operator)
      if (of.path.startsWith('ip')) return r.pick([...ADDRESSES, ...SPELLINGS, '::', '.', ':0', '113'])
      return r.pick(['', ...TEXTS])
    }
  }
}

/** Of a text that is asked for by `contains`, some of its characters. */
function part(r: Rng, text: string, operator: ConditionOperator): string {
  if (operator !== 'contains' || r.chance(0.3)) return text
  const characters = Array.from(text)
  const from = r.int(characters.length + 1)
  return characters.slice(from, from + 1 + r.int(characters.length)).join('')
}
