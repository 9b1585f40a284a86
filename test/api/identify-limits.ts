// Bodies at the edge of every limit of an identify request: the last accepted one and the first refused one of each.

export interface LimitCase {
  readonly name: string
  readonly body: unknown
  /** The `field` of the refusal; null: accepted. */
  readonly refused: string | null
}

const filled = (n: number, unit = 'x') => unit.repeat(n)
const nested = (levels: number): unknown => (levels === 1 ? { a: 1 } : { a: nested(levels - 1) })
const tagOf = (bytes: number) => ({ k: filled(bytes - '{"k":""}'.length) })

/** A text member with its longest value, and one character more. */
function upTo(field: string, charsMax: number, make: (text: string) => unknown, unit = 'x'): LimitCase[] {
  return [
    { name: `${field} of ${charsMax}`, body: make(filled(charsMax, unit)), refused: null },
    { name: `${field} of ${charsMax + 1}`, body: make(filled(charsMax + 1, unit)), refused: field },
  ]
}

const ok = (name: string, body: unknown): LimitCase => ({ name, body, refused: null })
const no = (field: string, name: string, body: unknown): LimitCase => ({
  name: `${field}: ${name}`,
  body,
  refused: field,
})

const native = (more: object) => ({ native: { platform: 'android', ...more } })
const mocked = (mock: unknown) => ({ mock })

/** For a secret test key. */
export const LIMITS: readonly LimitCase[] = [
  ok('an empty object', {}),
  no('body', 'a list', []),
  no('body', 'null', null),
  no('body', 'a text', 'x'),
  no('body', 'a number', 1),
  no('unheardOf', 'unknown', { unheardOf: 1 }),
  no('nonce', '15 characters', { nonce: filled(15) }),
  ok('a nonce of 16', { nonce: `${filled(14)}-_` }),
  ok('a nonce of 64', { nonce: filled(64, 'Z') }),
  no('nonce', '65 characters', { nonce: filled(65) }),
  no('nonce', 'a character that is not url-safe', { nonce: `${filled(19)}+` }),
  no('nonce', 'a line break at the end', { nonce: `${filled(19)}\n` }),
  no('nonce', 'null', { nonce: null }),
  ...upTo('sdk.name', 64, (name) => ({ sdk: { name, version: '1' } })),
  ...upTo('sdk.version', 64, (version) => ({ sdk: { name: 'js', version } })),
  no('sdk.version', 'missing', { sdk: { name: 'js' } }),
  no('sdk.build', 'unknown', { sdk: { name: 'js', version: '1', build: 1 } }),
  ok('no storage token', { storageToken: null }),
  ok('an empty storage token', { storageToken: '' }),
  ...upTo('storageToken', 512, (storageToken) => ({ storageToken })),
  no('storageToken', 'a number', { storageToken: 7 }),
  no('linkedId', 'empty', { linkedId: '' }),
  ok('a linkedId of one', { linkedId: 'u' }),
  ...upTo('linkedId', 256, (linkedId) => ({ linkedId })),
  ...upTo('linkedId', 256, (linkedId) => ({ linkedId }), '💡'),
  no('linkedId', 'a number', { linkedId: 42 }),
  ok('an email of 320', { email: `${filled(310)}@b.example` }),
  no('email', '321 characters', { email: `${filled(311)}@b.example` }),
  no('email', 'no @', { email: 'nobody' }),
  no('email', 'two @', { email: 'a@b@c' }),
  no('email', 'a space inside', { email: 'a b@c.example' }),
  no('email', 'empty', { email: '' }),
  ok('an empty tag', { tag: {} }),
  no('tag', 'a list', { tag: [] }),
  no('tag', 'a text', { tag: 'login' }),
  no('tag', 'null', { tag: null }),
  ok('a tag of 4,096 bytes', { tag: tagOf(4_096) }),
  no('tag', '4,097 bytes', { tag: tagOf(4_097) }),
  no('tag', '4,098 bytes in two-byte characters', { tag: { k: filled(2_045, 'ä') } }),
  ok('a tag four levels deep', { tag: nested(4) }),
  no('tag', 'five levels deep', { tag: nested(5) }),
  no('tag', 'five levels of lists', { tag: { a: [[[[]]]] } }),
  ...upTo('url', 8_192, (url) => ({ url })),
  ...upTo('referrer', 8_192, (referrer) => ({ referrer })),
  ok('empty url and referrer', { url: '', referrer: '' }),
  no('components', 'a list', { components: [] }),
  no('components.canvas', 'no entry but a text', { components: { canvas: 'x' } }),
  no('components.canvas', 'null', { components: { canvas: null } }),
  no('components.canvas.ms', 'a text', { components: { canvas: { value: 1, ms: '3' } } }),
  ok('component entries of every kind', {
    components: {
      a: { value: null },
      b: { error: 'no' },
      c: {},
      d: { value: [1, { x: 1 }], ms: 0 },
      é: { error: { n: 1 } },
    },
  }),
  no('automation.webdriver', 'a text', { automation: { webdriver: 'false' } }),
  no('automation.ai', 'unknown', { automation: { ai: true } }),
  no('automation.detectors', 'a list', { automation: { detectors: [] } }),
  ok('detectors of any name', { automation: { webdriver: true, detectors: { anything: [1], else: null } } }),
  no('native.platform', 'missing', { native: {} }),
  no('native.platform', 'unheard of', { native: { platform: 'symbian' } }),
  ...upTo('native.model', 128, (model) => native({ model })),
  ...upTo('native.osVersion', 32, (osVersion) => native({ osVersion })),
  ...upTo('native.appVersion', 64, (appVersion) => native({ appVersion })),
  ...upTo('native.manufacturer', 64, (manufacturer) => native({ manufacturer })),
  ...upTo('native.osBuild', 128, (osBuild) => native({ osBuild })),
  ...upTo('native.appId', 255, (appId) => native({ appId })),
  ...upTo('native.appSignature', 128, (appSignature) => native({ appSignature }), 'a'),
  ...upTo('native.installId', 128, (installId) => native({ installId })),
  ...upTo('native.vendorId', 128, (vendorId) => native({ vendorId })),
  no('native.installId', 'of seven characters', native({ installId: filled(7) })),
  no('native.vendorId', 'with a space', native({ vendorId: 'a b c d e f' })),
  no('native.appSignature', 'not hexadecimal', native({ appSignature: filled(64, 'g') })),
  ...upTo('native.evidence.rooted[0]', 64, (code) => native({ evidence: { rooted: [code] } })),
  no('native.evidence.rooted', 'nine codes', native({ evidence: { rooted: Array(9).fill('su') } })),
  ok('eight codes of evidence for each flag', native({ evidence: { hooked: Array(8).fill('frida'), cloned: [] } })),
  no('native.evidence.tired', 'unknown', native({ evidence: { tired: [] } })),
  no('native.attestation.provider', 'unheard of', native({ attestation: { provider: 'x', verdicts: [] } })),
  no('native.attestation.verdicts', 'missing', native({ attestation: { provider: 'app_attest' } })),
  no('native.attestation.verdicts', 'nine of them', {
    native: { platform: 'ios', attestation: { provider: 'app_attest', verdicts: Array(9).fill('ok') } },
  }),
  no('native.hooked', 'null', native({ hooked: null })),
  no('native.rooted', 'a number', native({ rooted: 1 })),
  no('native.jailbroken', 'unknown', native({ jailbroken: true })),
  no('mock', 'null', mocked(null)),
  no('mock.weather', 'unknown', mocked({ weather: 'rain' })),
  no('mock.ip', 'no address', mocked({ ip: '203.0.113.256' })),
  no('mock.ip', 'a range', mocked({ ip: '203.0.113.0/24' })),
  no('mock.ip', 'octal', mocked({ ip: '0203.0.113.1' })),
  no('mock.ip', '46 characters', mocked({ ip: filled(46, ':') })),
  no('mock.country', 'lower case', mocked({ country: 'jp' })),
  no('mock.country', 'three letters', mocked({ country: 'JPN' })),
  no('mock.country', 'one letter', mocked({ country: 'J' })),
  no('mock.signals.magic', 'unknown', mocked({ signals: { magic: true } })),
  no('mock.signals.vpn.strength', 'unknown', mocked({ signals: { vpn: { detected: true, strength: 1 } } })),
  ...upTo('mock.signals.vpn.provider', 64, (provider) => mocked({ signals: { vpn: { detected: true, provider } } })),
  no('mock.signals.vpn.provider', 'empty', mocked({ signals: { vpn: { detected: true, provider: '' } } })),
  ok(
    'a signal without a provider',
    mocked({ signals: { vpn: { detected: true, provider: null }, tor: { detected: true } } }),
  ),
  no('mock.signals.tor', 'a text', mocked({ signals: { tor: 'yes' } })),
  no('mock.signals.tor.detected', 'missing', mocked({ signals: { tor: {} } })),
  ok('scores at both ends', mocked({ scores: { abuse: 0, ato: 1, bot: 1, suspect: 100 } })),
  no('mock.scores.abuse', 'above 1', mocked({ scores: { abuse: 1.0001 } })),
  no('mock.scores.ato', 'below 0', mocked({ scores: { ato: -0.0001 } })),
  no('mock.scores.bot', 'a text', mocked({ scores: { bot: '1' } })),
  no('mock.scores.suspect', 'above 100', mocked({ scores: { suspect: 100.01 } })),
  no('mock.scores.suspect', 'below 0', mocked({ scores: { suspect: -1 } })),
  no('mock.scores.karma', 'unknown', mocked({ scores: { karma: 1 } })),
  no('mock.at', 'not a time', mocked({ at: 'yesterday' })),
  no('mock.at', 'no zone', mocked({ at: '2026-11-01T10:00:00' })),
  no('mock.at', 'an impossible day', mocked({ at: '2026-02-30T10:00:00Z' })),
  no('mock.at', 'a number', mocked({ at: 1 })),
  no('mock.at', 'the year 9999', mocked({ at: '9999-12-31T23:59:59Z' })),
  no('mock.at', 'the year 0000', mocked({ at: '0000-01-01T00:00:00Z' })),
  no('ip', 'no address', { ip: 'localhost' }),
  no('ip', '46 characters', { ip: filled(46, '1') }),
  ok('an IPv6 address in its longest form', { ip: '2001:0db8:0000:0000:0000:0000:0000:0001' }),
  ...upTo('userAgent', 2_048, (userAgent) => ({ userAgent })),
  ok('64 headers', { headers: Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`x-${i}`, 'v'])) }),
  no('headers', '65 of them', { headers: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`x-${i}`, 'v'])) }),
  ...upTo('headers.accept', 4_096, (accept) => ({ headers: { accept } })),
  no('headers.accept', 'a list', { headers: { accept: ['*/*'] } }),
]
