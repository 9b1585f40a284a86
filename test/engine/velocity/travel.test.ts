// Who could not have come here in time, and whose place is not to be trusted.

import t from 'tap'
import { isImpossible, kmBetween, placeOf } from '../../../src/engine/velocity/travel.ts'
import { NO_FACTS } from '../../../src/ipintel/addresses.ts'

const HOUR = 3_600_000
const T0 = Date.UTC(2026, 9, 1)
const PRAGUE = { lat: 50.08, lng: 14.43 }
const BERLIN = { lat: 52.52, lng: 13.4 }
const NEW_YORK = { lat: 40.71, lng: -74.01 }
const at = (place: { lat: number; lng: number }, hours: number) => ({ ...place, at: T0 + hours * HOUR })

t.test('distances are those of the globe', async (t) => {
  t.ok(Math.abs(kmBetween(PRAGUE, NEW_YORK) - 6_570) < 60)
  t.ok(Math.abs(kmBetween(PRAGUE, BERLIN) - 280) < 10)
  t.ok(Math.abs(kmBetween({ lat: 0, lng: 179.5 }, { lat: 0, lng: -179.5 }) - 111) < 1, 'across the date line')
  t.ok(Math.abs(kmBetween({ lat: 0, lng: 0 }, { lat: 0, lng: 180 }) - 20_015) < 5, 'to the other side')
})

t.test('an airliner is possible, faster is not, and near places say nothing', async (t) => {
  const cases: [from: typeof PRAGUE, to: typeof PRAGUE, hours: number, impossible: boolean][] = [
    [PRAGUE, NEW_YORK, 7, true],
    [PRAGUE, NEW_YORK, 7.5, false],
    [PRAGUE, NEW_YORK, -2, true],
    [PRAGUE, BERLIN, 0, false],
    [PRAGUE, PRAGUE, 0, false],
    [NEW_YORK, PRAGUE, 0, true],
  ]
  for (const [from, to, hours, impossible] of cases) t.equal(isImpossible(at(from, 0), at(to, hours)), impossible)
})

t.test('the address of a VPN, proxy, relay or data centre is nobody’s place', async (t) => {
  const clear = { state: 'clear', confidence: 1, methods: [], source: 'server', dataAgeSeconds: null } as const
  const quiet = { vpn: clear, proxy: clear, tor: clear }
  const place = (signals: object, address: object) =>
    placeOf(T0, PRAGUE, { ...quiet, ...signals }, { ...NO_FACTS, ...address } as typeof NO_FACTS)
  t.same(place({}, {}), { at: T0, ...PRAGUE })
  for (const name of ['vpn', 'proxy', 'tor'])
    t.equal(place({ [name]: { ...clear, state: 'detected' } }, {}), null, name)
  t.same(place({ vpn: { ...clear, state: 'undetermined' } }, {}), { at: T0, ...PRAGUE })
  const untrusted = [
    { hosting: 'datacenter_range' },
    { relay: { name: 'x', isVpn: false } },
    { vpn: { provider: null, method: 'vpn_range' } },
    { tor: true },
    { isPrivate: true },
  ]
  for (const address of untrusted) t.equal(place({}, address), null, JSON.stringify(address))
  t.equal(placeOf(T0, { lat: null, lng: null }, quiet, NO_FACTS), null)
})
