// Facts and random rules for the tests of rules: one complete identification to vary, and seeded generators over it.

import type { Facts, Signal, SignalName, StoredEvent } from '../../src/domain/event.ts'
import { SIGNAL_NAMES } from '../../src/domain/event.ts'
import type { ConditionGroup, ConditionOperator, Leaf, Literal, Rule } from '../../src/domain/rule.ts'
import { FIELDS, type Field, field } from '../../src/events/fields.ts'
import type { Rng } from './rng.ts'

const signal = (state: Signal['state']): Signal => ({
  state,
  confidence: state === 'detected' ? 0.9 : 0,
  methods: [],
  source: 'client',
  dataAgeSeconds: null,
})

type Signals = Facts['signals']
export function signals(detected: readonly SignalName[], undetermined: readonly SignalName[] = []): Signals {
  const all = Object.fromEntries(
    SIGNAL_NAMES.map((name) => [
      name,
      signal(detected.includes(name) ? 'detected' : undetermined.includes(name) ? 'undetermined' : 'clear'),
    ]),
  ) as Record<SignalName, Signal>
  return {
    ...all,
    vpnProvider: detected.includes('vpn') ? 'NordVPN' : null,
    botType: detected.includes('bot') ? 'headless' : null,
  }
}

/** A known visitor on a laptop in Prague behind a VPN, Friday 2026-11-20 18:30:00 UTC. */
/** A workspace as rulesets have it. */
export const WORKSPACE = {
  id: 'ws_a',
  plan: 'enterprise',
  tokenSecret: 's',
  apiVersion: '2026-11-01',
  settings: { clientResult: 'id' },
} as const

export const FACTS: Facts = {
  workspace: 'ws_a',
  env: 'live',
  requestId: 'req_01KAH2M6J8000000000000000A',
  keyKind: 'public',
  visitorId: 'pv_aaaaaaaaaaaaaaaaaaaa',
  visitorFound: true,
  confidence: 0.9871,
  possible: { visitorId: 'pv_pppppppppppppppppppp', confidence: 0.4321 },
  timestamp: Date.UTC(2026, 10, 20, 18, 30),
  firstSeenAt: Date.UTC(2026, 10, 1),
  lastSeenAt: Date.UTC(2026, 10, 19),
  device: {
    platform: 'Windows',
    osVersion: '11',
    browser: 'Chrome 147',
    browserVersion: '147.0.1',
    gpu: 'ANGLE (NVIDIA)',
    type: 'desktop',
    screen: { w: 1920, h: 1080 },
    model: null,
    appVersion: null,
    language: 'cs-CZ',
    timezone: 'Europe/Prague',
  },
  signals: signals(['vpn'], ['tor']),
  scores: { abuse: 0.25, ato: 0.1, bot: 0, suspect: 42.5 },
  scoreReasons: [],
  ip: {
    address: '203.0.113.9',
    city: 'Prague',
    region: null,
    country: 'CZ',
    lat: 50.0755,
    lng: 14.4378,
    timezone: 'Europe/Prague',
    asn: 64_500,
    asnName: 'Example Net',
    datacenter: false,
    blocklisted: true,
    blocklists: ['spamhaus', 'tor-exit'],
  },
  linkedId: 'user_42',
  email: 'a@b.example',
  tag: {
    action: 'login',
    amount: 12.5,
    vip: true,
    nothing: null,
    cart: { items: 3, codes: ['X', 7], deep: { er: 'yes' } },
  },
  url: 'https://Shop.example/login?next=%2F#top',
  identity: { method: 'token', anonymitySet: 3, candidates: 17, generation: 2 },
  visitor: { totalVisits: 8, linkedAccounts: 2, ageSeconds: 1_708_200 },
  velocity: {
    'visitor.events.5m': 1,
    'visitor.events.1h': 2,
    'visitor.events.24h': 5,
    'visitor.ips.24h': 3,
    'visitor.countries.24h': 0,
    'visitor.linkedIds.24h': 1,
    'ip.events.5m': 4,
    'ip.events.1h': 40,
    'ip.events.24h': 400,
    'ip.visitors.24h': 12,
    'linkedId.visitors.24h': 2,
    'linkedId.ips.24h': null,
  },
}

/** What turns facts into an event that no rule has judged. */
export const UNDECIDED = {
  verdict: null,
  challengeType: null,
  matchedRule: null,
  matchedRules: [],
  monitorMatches: [],
  rulesRevision: 1,
  weightsVersion: 4,
  label: null,
  evaluationError: null,
} satisfies Omit<StoredEvent, keyof Facts>

const TEXTS = [
  '',
  'a',
  'CZ',
  'JP',
  'Windows',
  'Chrome 147',
  'Chrome',
  'user_42',
  'login',
  '7',
  'true',
  '__proto__',
  'spamhaus',
  '😀',
  "';--`$\u007bx}`\n",
]
const NUMBERS = [-1, 0, 0.1, 0.25, 0.5, 1, 7, 12.5, 42.5, 1080, 1920, 64_500, 1e300]
const MOMENTS = [
  '2026-11-20T18:30:00Z',
  '2026-11-20T18:30Z',
  '2026-11-01T01:00:00+01:00',
  '1999-01-01T00:00:00Z',
  '2026-11-19T00:00:00.000Z',
]
const TAG_KEYS = [
  'tag.action',
  'tag.amount',
  'tag.vip',
  'tag.nothing',
  'tag.cart',
  'tag.cart.items',
  'tag.cart.codes',
  'tag.cart.deep.er',
  'tag.__proto__',
  'tag.constructor',
  'tag.cart.codes.length',
]
export const LISTS: Readonly<Record<string, readonly string[]>> = {
  friends: ['pv_aaaaaaaaaaaaaaaaaaaa', 'user_42', 'login'],
  strangers: ['203.0.113.9', 'a@b.example', '7'],
}
export const member = (list: string, value: string): boolean | null =>
  Object.hasOwn(LISTS, list) ? (LISTS[list] as readonly string[]).includes(value) : null

function literalFor(of: Field, r: Rng): Literal {
  if (of.type === 'number') return r.pick(NUMBERS)
  if (of.type === 'boolean') return r.chance(0.5)
  if (of.type === 'datetime') return r.pick(MOMENTS)
  if (of.type === 'any') return r.pick<Literal>([...TEXTS, ...NUMBERS, true, false])
  const own = of.read(FACTS)
  return typeof own === 'string' && r.chance(0.4) ? own.slice(0, 1 + r.int(own.length)) : r.pick(TEXTS)
}

export function randomLeaf(r: Rng): Leaf {
  const of = r.chance(0.3) ? (field(r.pick(TAG_KEYS)) as Field) : r.pick(FIELDS)
  const operator: ConditionOperator = r.pick(of.operators)
  const value = (): Leaf['value'] => {
    if (operator === 'exists') return r.chance(0.5)
    if (operator !== 'in' && operator !== 'not_in') return literalFor(of, r)
    if (of.list !== null && r.chance(0.5)) return r.pick(['friends', 'Strangers', 'gone'])
    return Array.from({ length: r.int(5) }, () => literalFor(of, r))
  }
  return { field: of.path, operator, value: value() }
}

export function randomGroup(r: Rng, depth = 1): ConditionGroup {
  const rules = Array.from({ length: 1 + r.int(4) }, () =>
    depth < 4 && r.chance(0.25) ? randomGroup(r, depth + 1) : randomLeaf(r),
  )
  return { operator: r.chance(0.6) ? 'AND' : 'OR', rules }
}

/** FACTS with a random part of everything replaced, often by nothing. */
export function randomFacts(r: Rng): Facts {
  const maybe = <T>(value: T, other: readonly T[]): T => (r.chance(0.5) ? value : r.pick(other))
  const text = (value: string | null) => maybe<string | null>(value, [null, '', ...TEXTS])
  const few = () => SIGNAL_NAMES.filter(() => r.chance(0.25))
  const { device, ip, visitor, identity } = FACTS
  const tag: unknown[] = [
    null,
    7,
    '7',
    'login',
    true,
    [],
    ['login', 7],
    { items: '3' },
    Number.NaN,
    Number.POSITIVE_INFINITY,
  ]
  return {
    ...FACTS,
    visitorFound: r.chance(0.5),
    confidence: maybe(FACTS.confidence, [0, 0.25, 1, Number.NaN]),
    timestamp: maybe(FACTS.timestamp, [0, Date.UTC(1999, 0, 1)]),
    device: {
      ...device,
      platform: maybe(device.platform, ['', 'iOS']),
      osVersion: text(device.osVersion),
      gpu: text(device.gpu),
      screen: maybe(device.screen, [null, { w: 1, h: 7 }]),
    },
    signals: signals(few(), few()),
    scores: { abuse: r.pick([0, 0.25, 1]), ato: r.pick([0, 0.5, 1]), bot: r.pick([0, 0.5]), suspect: r.pick(NUMBERS) },
    ip: {
      ...ip,
      country: text(ip.country),
      city: text(ip.city),
      lat: maybe(ip.lat, [null, 0]),
      asn: maybe(ip.asn, [null, 0, 7]),
      datacenter: r.chance(0.5),
      blocklists: maybe<readonly string[]>(ip.blocklists, [[], ['a']]),
    },
    linkedId: text(FACTS.linkedId),
    email: text(FACTS.email),
    url: text(FACTS.url),
    tag: r.chance(0.2)
      ? {}
      : { ...FACTS.tag, action: r.pick(tag), amount: r.pick(tag), cart: maybe(FACTS.tag.cart, tag) },
    visitor: { ...visitor, totalVisits: r.pick(NUMBERS) },
    identity: { ...identity, anonymitySet: r.pick(NUMBERS) },
  }
}

export function makeRule(id: string, conditions: ConditionGroup, more: Partial<Rule> = {}): Rule {
  return {
    id,
    name: `Rule ${id}`,
    conditions,
    action: { verdict: 'block' },
    priority: 10,
    status: 'live',
    createdAt: 1,
    updatedAt: 1,
    ...more,
  }
}

/** A condition that holds for every event of these tests, and one that never does. */
export const ALWAYS: ConditionGroup = {
  operator: 'AND',
  rules: [{ field: 'timestamp', operator: 'exists', value: true }],
}
export const NEVER: ConditionGroup = {
  operator: 'AND',
  rules: [{ field: 'timestamp', operator: 'exists', value: false }],
}
