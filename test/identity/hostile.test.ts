// Whatever JSON a client puts into its components: nothing throws, nothing grows, nothing reaches a prototype.

import t from 'tap'
import type { IdentifyBody } from '../../src/domain/identify.ts'
import { detectSignals } from '../../src/engine/signals/signals.ts'
import { deviceOf, readAttributes } from '../../src/identity/attributes.ts'
import { matchKeys } from '../../src/identity/keys.ts'
import { recognise } from '../../src/identity/matcher.ts'
import { providerOf } from '../../src/identity/provider.ts'
import { hardwareKey } from '../../src/identity/routing.ts'
import { newVisitor, recordVisit } from '../../src/identity/visitor.ts'
import { packVisitor } from '../../src/identity/visitor-record.ts'
import { sized } from '../helpers/depth.ts'
import { NO_NETWORK } from '../helpers/network.ts'
import { attributesOf, CHROME_WINDOWS, windowsPc } from '../helpers/recognition.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'

const VISITS = sized({ quick: 150, usual: 1_000, long: 10_000 })
const IP = '203.0.113.7'

const junkText = (random: Rng): string => JSON.stringify(junk(random, 3)).slice(0, 2_048)

/** The whole way of a visit; returns the stored size. */
function walk(body: IdentifyBody, headers: Record<string, string>, ua: string): number {
  const attributes = readAttributes(body, headers, ua)
  const keys = matchKeys(attributes, IP, providerOf(IP, null))
  const known = newVisitor('pv_00000000000000000000', 0)
  const base = { atMs: 1, ip: IP, method: 'new', token: null, generation: 1, confidence: 1, linkedId: null } as const
  const device = deviceOf(attributes, body)
  recordVisit(known, { ...base, attributes: attributesOf(windowsPc()), device })
  const { confidence } = recognise({
    attributes,
    ip: IP,
    atMs: 2,
    token: null,
    tokenVisitor: null,
    exact: [known],
    linked: [known],
    incognito: false,
  })
  if (!(confidence >= 0 && confidence <= 1)) throw new Error(`confidence ${confidence}`)
  detectSignals({ attributes, evidence: [], network: NO_NETWORK })
  if (hardwareKey(body, headers, ua).length > 512) throw new Error('a long key')
  for (const key of keys) if (!/^[a-f][0-9a-v]{12}$/.test(key)) throw new Error(key)
  for (const value of attributes.profile.values)
    if (value !== null && !Number.isFinite(value)) throw new Error(String(value))
  const visitor = recordVisit(newVisitor('pv_00000000000000000001', 0), { ...base, attributes, device })
  return packVisitor(visitor).length
}

const NAMES = [
  ...Object.keys(windowsPc().body.components ?? {}),
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
]

function deep(levels: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { value }
  return value
}

/** Made once: what it is made of costs more than what is tested. */
const LONG_TEXT = 'x'.repeat(3_000)
const LONG_LIST = Array.from({ length: 2_000 }, (_, i) => `f${i}`)
const DEEP = deep(30)
const POLLUTING = '{"__proto__":{"polluted":true},"constructor":{"prototype":1},"toString":1,"bot":true}'
const INNER = [
  'platform',
  'renderer',
  'rendererUnmasked',
  'geometry',
  'text',
  'maxTouchPoints',
  'isPrivate',
  'browserName',
  'userAgent',
  'fullVersionList',
  'languages',
  'webGlRenderer',
  'brand',
  'version',
]

function junk(random: Rng, level: number): unknown {
  switch (random.int(level > 3 ? 7 : 10)) {
    case 0:
      return null
    case 1:
      return random.pick([0, -0, -1, 1e308, -1e308, 0.1, 2 ** 53, 33, 255])
    case 2:
      return random.chance(0.5)
    case 3:
      return random.pick(['', LONG_TEXT, '\u0000', '\ud800', '__proto__', 'constructor', 'Win32', '147', 'Z̶a̶l'])
    case 4:
      return random.pick([[], {}, [null], [[[]]], [{}], LONG_LIST])
    case 5:
      return JSON.parse(POLLUTING)
    case 6:
      return DEEP
    case 7:
      return Array.from({ length: random.int(6) }, () => junk(random, level + 1))
    default:
      return Object.fromEntries(INNER.filter(() => random.chance(0.5)).map((name) => [name, junk(random, level + 1)]))
  }
}

t.test('no components of any shape make a visit fail or a visitor large', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  for (let i = 0; i < VISITS; i++) {
    const entry = () => (random.chance(0.8) ? { value: junk(random, 0) } : junk(random, 0))
    const components = random.chance(0.05)
      ? junk(random, 0)
      : Object.fromEntries(NAMES.filter(() => random.chance(0.7)).map((name) => [name, entry()]))
    const automation = { webdriver: junk(random, 0), detectors: junk(random, 0) }
    const body = { components, automation } as unknown as IdentifyBody
    const headers = { 'sec-ch-ua': junkText(random), via: junkText(random) }
    const ua = random.chance(0.5) ? CHROME_WINDOWS : junkText(random)
    const bytes = walk(body, headers, ua)
    if (bytes > 1_500) t.fail(`${bytes} bytes`)
  }
  t.equal(({} as { polluted?: boolean }).polluted, undefined)
  t.equal(walk({}, {}, '') < 300, true)
})

t.test('one wrong component costs only itself', async (t) => {
  const whole = attributesOf(windowsPc())
  for (const name of ['canvas', 'fonts', 'webGlBasics', 'userAgentData', 'worker', 'screenResolution']) {
    for (const wrong of [7, 'x', [], {}, null, true, [[[]]]]) {
      const attributes = attributesOf(windowsPc({ [name]: wrong }))
      t.match(attributes, { os: 'Windows', browserFamily: 'Chrome', cores: whole.cores, timezone: whole.timezone })
    }
  }
})

t.test('User-Agents made to be slow are read at once', async (t) => {
  const bombs = [
    '('.repeat(2_048),
    '; '.repeat(1_024),
    'a'.repeat(2_048),
    `Android ${'; x'.repeat(600)}`,
    `${'bot'.repeat(600)}/`,
    'CrOS '.repeat(400),
    'ANGLE ('.repeat(300),
    `Gecko/1${' '.repeat(1_900)}`,
    '-'.repeat(2_048),
    'bot-'.repeat(500),
  ]
  const started = process.cpuUsage()
  for (const bomb of bombs)
    walk({ components: { webGlBasics: { value: { renderer: bomb } } } }, { 'sec-ch-ua': bomb, via: bomb }, bomb)
  // Computing time, which does not grow when others compute too. A pattern that backtracks takes hours.
  const { user } = process.cpuUsage(started)
  t.ok(user < 10_000_000, `${user} µs`)
})
