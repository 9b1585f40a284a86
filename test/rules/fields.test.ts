// The field registry: what each path reads from one known event, what it reads when the data is missing, and that no
// path reaches anything but data.

import t from 'tap'
import { FIELDS, field, OPERATORS_BY_TYPE } from '../../src/events/fields.ts'
import { COLUMNS } from '../../src/events/row.ts'
import { FACTS, signals } from '../helpers/facts.ts'

const EXPECTED: Readonly<Record<string, unknown>> = {
  visitorId: 'pv_aaaaaaaaaaaaaaaaaaaa',
  visitorFound: true,
  confidence: 0.9871,
  firstSeenAt: FACTS.firstSeenAt,
  lastSeenAt: FACTS.lastSeenAt,
  'visitor.totalVisits': 8,
  'visitor.linkedAccounts': 2,
  'visitor.ageSeconds': 1_708_200,
  'device.platform': 'Windows',
  'device.os': 'Windows',
  'device.osVersion': '11',
  'device.browser': 'Chrome 147',
  'device.browserVersion': '147.0.1',
  'device.gpu': 'ANGLE (NVIDIA)',
  'device.type': 'desktop',
  'device.screen.w': 1920,
  'device.screen.h': 1080,
  'device.model': null,
  'device.appVersion': null,
  'device.language': 'cs-CZ',
  'device.timezone': 'Europe/Prague',
  'signals.bot.type': null,
  'signals.vpn.provider': 'NordVPN',
  'scores.abuse': 0.25,
  'scores.ato': 0.1,
  'scores.bot': 0,
  'scores.suspect': 42.5,
  ip: '203.0.113.9',
  'ip.address': '203.0.113.9',
  'ip.country': 'CZ',
  'ip.region': null,
  'ip.city': 'Prague',
  'ip.lat': 50.0755,
  'ip.lng': 14.4378,
  'ip.timezone': 'Europe/Prague',
  'ip.asn': 64_500,
  'ip.asnName': 'Example Net',
  'ip.datacenter': false,
  'ip.blocklisted': true,
  'ip.blocklists': ['spamhaus', 'tor-exit'],
  linkedId: 'user_42',
  email: 'a@b.example',
  url: 'https://Shop.example/login?next=%2F#top',
  'request.keyKind': 'public',
  possibleVisitorId: 'pv_pppppppppppppppppppp',
  possibleConfidence: 0.4321,
  'url.host': 'shop.example',
  'url.path': '/login',
  timestamp: FACTS.timestamp,
  'time.hourUtc': 18,
  'identity.method': 'token',
  'identity.anonymitySet': 3,
  'identity.candidates': 17,
  'velocity.visitor.events.5m': 1,
  'velocity.visitor.events.1h': 2,
  'velocity.visitor.events.24h': 5,
  'velocity.visitor.ips.24h': 3,
  'velocity.visitor.countries.24h': 0,
  'velocity.visitor.linkedIds.24h': 1,
  'velocity.ip.events.5m': 4,
  'velocity.ip.events.1h': 40,
  'velocity.ip.events.24h': 400,
  'velocity.ip.visitors.24h': 12,
  'velocity.linkedId.visitors.24h': 2,
  'velocity.linkedId.ips.24h': null,
  ...Object.fromEntries(
    ['bot', 'vpn', 'incognito', 'tampered', 'emulator', 'proxy', 'tor', 'rootedDevice', 'clonedApp'].flatMap((name) => [
      [`signals.${name}`, name === 'vpn'],
      [`signals.${name}.detected`, name === 'vpn'],
    ]),
  ),
}

t.test('every path reads the value it names', async (t) => {
  t.same(FIELDS.map((f) => f.path).sort(), Object.keys(EXPECTED).sort(), 'no path is added without a line here')
  for (const f of FIELDS) t.same(f.read(FACTS), EXPECTED[f.path], f.path)
})

t.test('a value has the declared type, and paths are unique', async (t) => {
  t.equal(new Set(FIELDS.map((f) => f.path)).size, FIELDS.length)
  for (const f of FIELDS) {
    t.equal(f.operators, OPERATORS_BY_TYPE[f.type])
    const value = f.read(FACTS)
    if (value === null) continue
    const actual = Array.isArray(value) ? 'strings' : typeof value
    t.equal(actual, f.type === 'datetime' ? 'number' : f.type, f.path)
  }
})

t.test('a column names only columns of the row', async (t) => {
  // ClickHouse makes the last ones of `detail`.
  const known = new Set<string>([...COLUMNS, 'key_kind', 'possible_visitor_id', 'possible_confidence'])
  for (const f of FIELDS) {
    const { sql } = f.column
    const names = sql.replace(/'[^']*'/g, '').match(/\b[a-z_]+\b(?!\()/g) ?? []
    t.ok(names.length > 0 && names.every((name) => known.has(name)), `${f.path}: ${sql}`)
  }
})

t.test('what is absent, empty or not a number reads as missing', async (t) => {
  const bare = {
    ...FACTS,
    confidence: Number.NaN,
    device: { ...FACTS.device, gpu: '', screen: null },
    signals: signals([], ['tor']),
    ip: { ...FACTS.ip, asn: 0, country: '', lat: null },
    url: 'not an address',
    linkedId: null,
    tag: {},
  }
  for (const path of [
    'confidence',
    'device.gpu',
    'device.screen.w',
    'ip.asn',
    'ip.country',
    'ip.lat',
    'ip.lng',
    'url.host',
    'url.path',
    'linkedId',
    'tag.action',
  ]) {
    t.equal(field(path)?.read(bare), null, path)
  }
  t.equal(field('signals.tor')?.read(bare), false, 'undetermined is not detected')
})

t.test('paths reach data and nothing else', async (t) => {
  const inherited = [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'valueOf',
    'constructor.constructor',
    '__proto__.polluted',
  ]
  for (const path of [
    ...inherited,
    '',
    '.',
    'tag',
    'tag.',
    'tag..a',
    'tag.a.',
    'device',
    'scores',
    'signals',
    'ip.',
    ' ip',
    'IP',
    'signals.vpn.methods',
    `tag.${'x'.repeat(300)}`,
  ]) {
    t.equal(field(path), null, JSON.stringify(path.slice(0, 40)))
  }
  for (const name of inherited) t.equal(field(`tag.${name}`)?.read(FACTS), null, `tag.${name}`)
  for (const path of [
    'tag.cart.codes.0',
    'tag.cart.codes.length',
    'tag.action.length',
    'tag.action.0',
    'tag.vip.valueOf',
    'tag.nothing.x',
  ]) {
    t.equal(field(path)?.read(FACTS), null, path)
  }
  t.equal(field('tag.cart.deep.er')?.read(FACTS), 'yes')
  const own = {
    ...FACTS,
    tag: JSON.parse('{"__proto__": "mine", "constructor": {"constructor": 7}}') as Record<string, unknown>,
  }
  t.equal(field('tag.__proto__')?.read(own), 'mine', 'a key of that name is data like any other')
  t.equal(field('tag.constructor.constructor')?.read(own), 7)
})
