// vpn, proxy and tor over made-up addresses: what raises each, what must not, and what nobody can tell.

import t from 'tap'
import type { Signal, SignalName } from '../../src/domain/event.ts'
import type { NetworkEvidence } from '../../src/engine/signals/evidence.ts'
import { detectSignals } from '../../src/engine/signals/signals.ts'
import type { AddressFacts } from '../../src/ipintel/addresses.ts'
import { AT_MS, networkOf } from '../helpers/network.ts'
import { attributesOf, firefox, type Request, request, windowsPc } from '../helpers/recognition.ts'

const DAY_MS = 86_400_000
const FRESH = AT_MS - 3_600_000
const FRESH_SECONDS = 3_600

const signalsOf = (r: Request, network: NetworkEvidence) =>
  detectSignals({ attributes: attributesOf(r), evidence: [], network })

const lists = (...names: readonly (keyof AddressFacts['dataAt'])[]) =>
  Object.fromEntries(names.map((name) => [name, FRESH])) as AddressFacts['dataAt']
const ALL = lists('geo', 'asn', 'datacenter', 'vpn', 'relay', 'tor', 'badAsn')
const RELAY = { name: 'iCloud Private Relay', isVpn: false }
const VPN = { provider: 'Example', method: 'vpn_range' } as const

type Said = Partial<Record<'vpn' | 'proxy' | 'tor', Partial<Signal>>> & { provider?: string | null }
type Row = readonly [name: string, Request, NetworkEvidence, Said]

const pc = windowsPc()
const at = (facts: Partial<AddressFacts>, country: string | null = null, timezone: string | null = null) =>
  networkOf({ dataAt: ALL, ...facts }, { country, timezone })

const undetermined = { state: 'undetermined', confidence: 0, dataAgeSeconds: null } as const
const clear = { state: 'clear', methods: [], source: 'server', dataAgeSeconds: FRESH_SECONDS } as const
const detected = (...methods: string[]) => ({ state: 'detected', methods, dataAgeSeconds: FRESH_SECONDS }) as const

const ROWS: readonly Row[] = [
  ['no data', pc, networkOf({}), { vpn: undetermined, proxy: undetermined, tor: undetermined, provider: null }],
  ['an address on no list', pc, at({}), { vpn: clear, proxy: clear, tor: clear, provider: null }],
  [
    'an exit of a VPN',
    pc,
    at({ vpn: VPN }),
    { vpn: { ...detected('vpn_range'), confidence: 0.95 }, provider: 'Example' },
  ],
  [
    'a network of a VPN',
    pc,
    at({ vpn: { provider: null, method: 'vpn_asn' } }),
    { vpn: { ...detected('vpn_asn'), confidence: 0.85 }, provider: null },
  ],
  [
    'a relay',
    pc,
    at({ relay: RELAY, hosting: 'datacenter_range' }),
    { vpn: { state: 'clear', methods: ['relay'] }, proxy: { state: 'clear' }, provider: RELAY.name },
  ],
  [
    'a relay that counts as a VPN, although a list of VPNs holds it as well',
    pc,
    at({ relay: { ...RELAY, isVpn: true }, vpn: VPN }),
    { vpn: detected('relay'), provider: RELAY.name },
  ],
  [
    'a clock of elsewhere in a data centre',
    pc,
    at({ hosting: 'datacenter_asn' }, 'US', 'America/New_York'),
    { vpn: detected('timezone_mismatch', 'datacenter_asn'), provider: null },
  ],
  [
    'the same where no list of VPNs is',
    pc,
    networkOf({ dataAt: lists('geo', 'asn', 'datacenter'), hosting: 'datacenter_asn' }, { country: 'US' }),
    { vpn: { state: 'detected', confidence: 0.7 } },
  ],
  [
    'a traveller',
    pc,
    at({}, 'US', 'America/New_York'),
    { vpn: { state: 'clear', confidence: 0.3, methods: ['timezone_mismatch'] } },
  ],
  [
    'a traveller where no list of VPNs is',
    pc,
    networkOf({ dataAt: lists('geo') }, { country: 'US' }),
    { vpn: { ...undetermined, methods: ['timezone_mismatch'] } },
  ],
  ['a clock of home', pc, at({ hosting: 'datacenter_asn' }, 'CZ', 'Europe/Prague'), { vpn: clear }],
  ['a zone that is none', windowsPc({ timezone: 'Mars/Olympus' }), at({}, 'US'), { vpn: clear }],
  ['no zone at all', windowsPc({ timezone: undefined }), at({ hosting: 'bad_asn' }, 'US'), { vpn: clear }],
  [
    'a browser in a data centre',
    pc,
    at({ hosting: 'datacenter_range' }),
    { proxy: { ...detected('datacenter_range'), confidence: 0.7 }, vpn: clear },
  ],
  ['a browser in a bad network', pc, at({ hosting: 'bad_asn' }), { proxy: detected('bad_asn') }],
  ['a VPN in a data centre', pc, at({ hosting: 'datacenter_range', vpn: VPN }), { proxy: clear }],
  [
    'Tor in a data centre',
    pc,
    at({ hosting: 'datacenter_range', tor: true }),
    { proxy: clear, tor: detected('tor_exit') },
  ],
  [
    'a crawler in a data centre',
    request('Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', {}),
    at({ hosting: 'datacenter_range' }),
    { proxy: clear },
  ],
  [
    'a program in a data centre',
    { body: {}, headers: {}, userAgent: 'curl/8.5.0' },
    at({ hosting: 'datacenter_range' }),
    { proxy: clear },
  ],
  [
    'a bad network, while data centres are not known',
    pc,
    networkOf({ dataAt: lists('badAsn') }),
    { proxy: undetermined },
  ],
  ['networks and bad ones', pc, networkOf({ dataAt: lists('badAsn', 'asn') }), { proxy: clear }],
  [
    'a header that names a proxy, without data',
    windowsPc({}, {}, { via: '1.1 nginx, 1.1 squid.office.example' }),
    networkOf({}),
    { proxy: { state: 'detected', methods: ['via_header'], confidence: 0.6, dataAgeSeconds: null } },
  ],
  ['fronts of the customer', windowsPc({}, {}, { via: '2 Caddy, 1.1 varnish' }), at({}), { proxy: clear }],
  [
    'a client that says whom it speaks for',
    windowsPc({}, {}, { 'x-forwarded-for': '1' }),
    at({}),
    { proxy: { state: 'clear', methods: ['forwarded_for'], confidence: 0.6 } },
  ],
  [
    'the same in one more header and a data centre',
    windowsPc({}, {}, { 'x-forwarded-for': '2', forwarded: 'for=192.0.2.1' }),
    at({ hosting: 'datacenter_asn' }),
    {
      proxy: { state: 'detected', methods: ['forwarded_header', 'forwarded_for', 'datacenter_asn'], confidence: 0.853 },
    },
  ],
  ['an exit of Tor', pc, at({ tor: true }), { tor: { ...detected('tor_exit'), confidence: 0.95 } }],
  [
    'an exit of Tor with its browser',
    firefox({ timezone: 'UTC' }),
    at({ tor: true }),
    { tor: { ...detected('tor_exit', 'tor_browser'), confidence: 0.99 } },
  ],
  ['the clock of Tor Browser alone', firefox({ timezone: 'UTC' }), at({}), { tor: clear }],
  ['a private network', pc, at({ isPrivate: true }), { vpn: undetermined, proxy: undetermined, tor: undetermined }],
  [
    'a private network that is listed',
    pc,
    at({ isPrivate: true, vpn: VPN, tor: true }),
    { vpn: { state: 'detected' }, tor: { state: 'detected' } },
  ],
]

for (const [name, r, network, said] of ROWS) {
  t.test(`signals of ${name}`, async (t) => {
    const { provider, ...states } = said
    const signals = signalsOf(r, network)
    for (const [signal, expected] of Object.entries(states)) t.match(signals[signal as SignalName], expected, signal)
    if (provider !== undefined) t.equal(signals.vpnProvider, provider)
  })
}

t.test(
  'data loses weight with age, and an old list of exits says nothing of an address it does not hold',
  async (t) => {
    const aged = (source: 'tor' | 'vpn', ms: number | null, facts: Partial<AddressFacts>) => {
      const { state, confidence, dataAgeSeconds } = signalsOf(
        pc,
        networkOf({ ...facts, dataAt: { [source]: ms === null ? null : AT_MS - ms } }),
      )[source]
      return [state, confidence, dataAgeSeconds]
    }
    const HIT = { tor: true }
    t.same(aged('tor', DAY_MS, HIT), ['detected', 0.95, 86_400])
    t.same(aged('tor', DAY_MS + 1_000, HIT), ['detected', 0.7125, 86_401])
    t.same(aged('tor', 30 * DAY_MS, HIT), ['detected', 0.475, 30 * 86_400])
    t.same(aged('tor', null, HIT), ['detected', 0.7125, null])
    t.same(aged('tor', 2 * DAY_MS, {}), ['clear', 0.7125, 2 * 86_400])
    t.same(aged('tor', 8 * DAY_MS, {}), ['undetermined', 0, null])
    t.same(aged('tor', null, {}), ['undetermined', 0, null])
    t.same(aged('tor', -DAY_MS, HIT), ['detected', 0.95, 0], 'data from the future is fresh')
    t.same(aged('vpn', 20 * DAY_MS, { vpn: VPN }), ['detected', 0.95, 20 * 86_400])
    t.same(aged('vpn', 100 * DAY_MS, { vpn: VPN }), ['detected', 0.7125, 100 * 86_400])
    t.same(aged('vpn', 400 * DAY_MS, {}), ['clear', 0.4, 400 * 86_400])
  },
)
