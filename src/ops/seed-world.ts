// What the visitors of a made-up history have: devices, countries, networks, pages, and the rules that judged them.

import type { Device, IpFacts } from '../domain/event.ts'
import type { ConditionGroup, ConditionOperator, Leaf, RuleAction, RuleStatus } from '../domain/rule.ts'

type SeedDevice = Omit<Device, 'language' | 'timezone'> & { readonly weight: number }

interface Model {
  readonly platform: string
  readonly versions: readonly string[]
  readonly browsers: readonly string[]
  readonly gpus: readonly string[]
  readonly screens: readonly (readonly [number, number])[]
  readonly type: string
  readonly models?: readonly string[]
  readonly weight: number
}

const MODELS: readonly Model[] = [
  {
    platform: 'Windows',
    versions: ['10', '11', '11'],
    browsers: ['Chrome 147', 'Chrome 146', 'Edge 147', 'Firefox 140'],
    gpus: [
      'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060)',
      'ANGLE (Intel, Intel(R) UHD Graphics 620)',
      'ANGLE (AMD, Radeon)',
    ],
    screens: [
      [1920, 1080],
      [2560, 1440],
      [1366, 768],
    ],
    type: 'desktop',
    weight: 34,
  },
  {
    platform: 'macOS',
    versions: ['14.6', '15.5'],
    browsers: ['Safari 18', 'Chrome 147', 'Chrome 146'],
    gpus: ['Apple M1', 'Apple M2', 'Apple M3'],
    screens: [
      [1440, 900],
      [1512, 982],
      [1728, 1117],
    ],
    type: 'desktop',
    weight: 14,
  },
  {
    platform: 'iOS',
    versions: ['17.7', '18.5', '26.1'],
    browsers: ['Safari 18', 'Safari 26', 'Chrome 147'],
    gpus: ['Apple GPU'],
    screens: [
      [390, 844],
      [393, 852],
      [430, 932],
    ],
    type: 'mobile',
    models: ['iPhone'],
    weight: 24,
  },
  {
    platform: 'Android',
    versions: ['13', '14', '15'],
    browsers: ['Chrome 147', 'Chrome 146', 'Samsung Internet 28'],
    gpus: ['Adreno (TM) 740', 'Mali-G78', 'Adreno (TM) 618'],
    screens: [
      [360, 800],
      [412, 915],
      [384, 854],
    ],
    type: 'mobile',
    models: ['SM-S911B', 'Pixel 8', 'SM-A546B', '2201117TY'],
    weight: 24,
  },
  {
    platform: 'Linux',
    versions: [''],
    browsers: ['Firefox 140', 'Chrome 147'],
    gpus: ['Mesa Intel(R) UHD Graphics 620', 'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device), SwiftShader driver)'],
    screens: [
      [1920, 1080],
      [1280, 800],
    ],
    type: 'desktop',
    weight: 4,
  },
]

function* devicesOf(model: Model): Generator<SeedDevice> {
  const { platform, type, models = [null] } = model
  const count = model.versions.length * model.browsers.length * model.gpus.length * model.screens.length * models.length
  for (const osVersion of model.versions) {
    for (const browser of model.browsers) {
      const major = browser.slice(browser.lastIndexOf(' ') + 1)
      for (const gpu of model.gpus) {
        for (const [w, h] of model.screens) {
          for (const name of models) {
            yield {
              platform,
              osVersion: osVersion === '' ? null : osVersion,
              browser,
              browserVersion: `${major}.0.0`,
              gpu,
              type,
              screen: { w, h },
              model: name,
              appVersion: null,
              weight: model.weight / count,
            }
          }
        }
      }
    }
  }
}

export const DEVICES: readonly SeedDevice[] = MODELS.flatMap((model) => [...devicesOf(model)])
/** What headless browsers run on. */
export const BOT_DEVICES: readonly number[] = DEVICES.flatMap(({ platform }, i) => (platform === 'Linux' ? [i] : []))

/** A provider in a place: the address facts but for the address, and how addresses in it begin. */
export interface SeedNetwork {
  readonly facts: Omit<IpFacts, 'address'>
  /** The first two bytes of IPv4, or the first three groups of IPv6. */
  readonly prefix: string
  readonly language: string
  readonly weight: number
}

const place = (
  weight: number,
  language: string,
  [country, region, city, lat, lng, timezone]: readonly [string, string, string, number, number, string],
  [prefix, asn, asnName]: readonly [string, number, string],
  more: Partial<Pick<IpFacts, 'datacenter' | 'blocklisted' | 'blocklists'>> = {},
): SeedNetwork => ({
  facts: {
    city,
    region,
    country,
    lat,
    lng,
    timezone,
    asn,
    asnName,
    datacenter: false,
    blocklisted: false,
    blocklists: [],
    ...more,
  },
  prefix,
  language,
  weight,
})

const PRAGUE = ['CZ', 'Prague', 'Prague', 50.0755, 14.4378, 'Europe/Prague'] as const
const BERLIN = ['DE', 'Berlin', 'Berlin', 52.52, 13.405, 'Europe/Berlin'] as const
const LONDON = ['GB', 'England', 'London', 51.5072, -0.1276, 'Europe/London'] as const
const ASHBURN = ['US', 'Virginia', 'Ashburn', 39.0438, -77.4874, 'America/New_York'] as const
const AMSTERDAM = ['NL', 'North Holland', 'Amsterdam', 52.3676, 4.9041, 'Europe/Amsterdam'] as const

/** Where people are at home. */
export const HOMES: readonly SeedNetwork[] = [
  place(14, 'en-US', ['US', 'New York', 'New York', 40.7128, -74.006, 'America/New_York'], ['71.105', 701, 'Verizon']),
  place(
    9,
    'en-US',
    ['US', 'California', 'San Jose', 37.3382, -121.8863, 'America/Los_Angeles'],
    ['73.92', 7922, 'Comcast'],
  ),
  place(4, 'en-US', ['US', 'Texas', 'Austin', 30.2672, -97.7431, 'America/Chicago'], ['2600:1700:8a', 7018, 'AT&T']),
  place(11, 'de-DE', BERLIN, ['91.64', 3320, 'Deutsche Telekom']),
  place(
    6,
    'de-DE',
    ['DE', 'Bavaria', 'Munich', 48.1351, 11.582, 'Europe/Berlin'],
    ['2003:e1:4f', 3320, 'Deutsche Telekom'],
  ),
  place(10, 'en-GB', LONDON, ['81.152', 2856, 'British Telecom']),
  place(8, 'fr-FR', ['FR', 'Ile-de-France', 'Paris', 48.8566, 2.3522, 'Europe/Paris'], ['90.12', 3215, 'Orange']),
  place(7, 'cs-CZ', PRAGUE, ['90.181', 5610, 'O2 Czech Republic']),
  place(5, 'pl-PL', ['PL', 'Mazovia', 'Warsaw', 52.2297, 21.0122, 'Europe/Warsaw'], ['83.11', 5617, 'Orange Polska']),
  place(6, 'ja-JP', ['JP', 'Tokyo', 'Tokyo', 35.6762, 139.6503, 'Asia/Tokyo'], ['126.65', 17676, 'SoftBank']),
  place(
    7,
    'pt-BR',
    ['BR', 'Sao Paulo', 'Sao Paulo', -23.5558, -46.6396, 'America/Sao_Paulo'],
    ['177.62', 27699, 'Vivo'],
  ),
  place(8, 'en-IN', ['IN', 'Maharashtra', 'Mumbai', 19.076, 72.8777, 'Asia/Kolkata'], ['49.36', 55836, 'Reliance Jio']),
  place(3, 'en-NG', ['NG', 'Lagos', 'Lagos', 6.5244, 3.3792, 'Africa/Lagos'], ['105.112', 29465, 'MTN Nigeria']),
  place(
    3,
    'vi-VN',
    ['VN', 'Ho Chi Minh', 'Ho Chi Minh City', 10.8231, 106.6297, 'Asia/Ho_Chi_Minh'],
    ['14.161', 45899, 'VNPT'],
  ),
]

const HOSTED = { datacenter: true } as const
const LISTED = { datacenter: true, blocklisted: true, blocklists: ['spamhaus'] } as const
/** Where VPN providers, in the order of VPN_PROVIDERS, have their exits. */
export const VPN_EXITS: readonly SeedNetwork[] = [
  place(1, 'en-US', AMSTERDAM, ['185.107', 43350, 'NForce Entertainment'], HOSTED),
  place(1, 'en-US', LONDON, ['185.59', 60068, 'Datacamp'], HOSTED),
  place(1, 'en-US', ASHBURN, ['198.54', 11878, 'tzulo'], HOSTED),
]
export const VPN_PROVIDERS: readonly string[] = ['NordVPN', 'Mullvad', 'ProtonVPN']
const TOR_EXITS: readonly SeedNetwork[] = [
  place(1, 'en-US', BERLIN, ['185.220', 60729, 'Stiftung Erneuerbare Freiheit'], {
    ...LISTED,
    blocklists: ['spamhaus', 'tor-exit'],
  }),
]
/** Where bots run. */
export const HOSTINGS: readonly SeedNetwork[] = [
  place(4, 'en-US', ASHBURN, ['54.160', 14618, 'Amazon'], HOSTED),
  place(
    3,
    'en-US',
    ['DE', 'Saxony', 'Falkenstein', 50.4779, 12.3713, 'Europe/Berlin'],
    ['95.217', 24940, 'Hetzner'],
    HOSTED,
  ),
  place(1, 'en-US', AMSTERDAM, ['146.70', 9009, 'M247'], LISTED),
]
/** All of them; a network is known by its place in here. */
export const NETWORKS: readonly SeedNetwork[] = [...HOMES, ...VPN_EXITS, ...TOR_EXITS, ...HOSTINGS]

export const BOT_TYPES: readonly string[] = ['headless_chrome', 'selenium', 'playwright']

export type SiteAction = 'view' | 'login' | 'signup' | 'checkout'
export interface SitePage {
  readonly action: SiteAction
  readonly url: string
  readonly tag: Readonly<Record<string, unknown>>
  readonly weight: number
}
const SHOP = 'https://shop.example'
const PRODUCTS = 120
const AMOUNTS = 60
export const PAGES: readonly SitePage[] = [
  ...Array.from({ length: PRODUCTS }, (_, i): SitePage => {
    const url = `${SHOP}/product/${1_000 + i * 7}`
    return { action: 'view', url, tag: {}, weight: 55 / PRODUCTS }
  }),
  { action: 'login', url: `${SHOP}/login`, tag: { action: 'login' }, weight: 25 },
  { action: 'signup', url: `${SHOP}/signup?plan=free`, tag: { action: 'signup' }, weight: 7 },
  ...Array.from({ length: AMOUNTS }, (_, i): SitePage => {
    const amount = Math.round(500 + i * i * 37) / 100
    return { action: 'checkout', url: `${SHOP}/checkout`, tag: { action: 'checkout', amount }, weight: 13 / AMOUNTS }
  }),
]

export interface SeedRule {
  readonly id: string
  readonly name: string
  readonly priority: number
  readonly status: RuleStatus
  readonly conditions: ConditionGroup
  readonly action: RuleAction
}
const ID_CHARS = 20
const rule = (
  at: number,
  name: string,
  status: RuleStatus,
  action: RuleAction,
  ...leaves: readonly (readonly [field: string, operator: ConditionOperator, value: Leaf['value']])[]
): SeedRule => ({
  // The same in every history, so that two of them in one environment share their rules.
  id: `rul_Seeded${String(at).padStart(ID_CHARS - 6, '0')}`,
  name,
  priority: at * 10,
  status,
  action,
  conditions: {
    operator: 'AND',
    rules: leaves.map(([field, operator, value]) => ({ field, operator, value })),
  },
})

/** Rules whose conditions read nothing but what an outcome of seed-outcomes.ts knows. */
export const RULES: readonly SeedRule[] = [
  rule(1, 'Block bots', 'live', { verdict: 'block' }, ['signals.bot', 'equals', true]),
  rule(2, 'Many accounts on one device', 'live', { verdict: 'block' }, ['visitor.linkedAccounts', 'gte', 5]),
  rule(3, 'Challenge Tor', 'live', { verdict: 'challenge', challengeType: 'captcha' }, ['signals.tor', 'equals', true]),
  rule(4, 'High suspect score', 'live', { verdict: 'challenge' }, ['scores.suspect', 'gte', 60]),
  rule(
    5,
    'New device behind a VPN',
    'live',
    { verdict: 'challenge', challengeType: 'otp' },
    ['signals.vpn', 'equals', true],
    ['visitorFound', 'equals', false],
  ),
  rule(
    6,
    'Data centre at the till',
    'live',
    { verdict: 'challenge', challengeType: 'captcha' },
    ['ip.datacenter', 'equals', true],
    ['tag.action', 'in', ['signup', 'checkout']],
  ),
  rule(
    7,
    'Night sign-ups',
    'monitor',
    { verdict: 'block' },
    ['tag.action', 'equals', 'signup'],
    ['time.hourUtc', 'lt', 5],
  ),
  rule(
    8,
    'Private checkout',
    'monitor',
    { verdict: 'challenge', challengeType: 'email' },
    ['signals.incognito', 'equals', true],
    ['tag.action', 'equals', 'checkout'],
  ),
]
