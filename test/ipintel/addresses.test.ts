// What is known of an address when every source speaks, some do, or none; and what clocks show around the world.

import t from 'tap'
import { createAddresses, NO_FACTS } from '../../src/ipintel/addresses.ts'
import { offsetMinutes, zoneDiffers, zonesOf } from '../../src/ipintel/zones.ts'
import { CHANGED_AT, imageOf, input } from './made.ts'

function known(images: readonly SharedArrayBuffer[], relayIsVpn = false) {
  const addresses = createAddresses()
  addresses.take({ images, relayIsVpn })
  return addresses.lookup
}

const ASN =
  '192.0.2.0,192.0.2.255,64500,Hosting\n198.51.100.0,198.51.100.255,64501,Home\n2001:db8::,2001:db8::ffff,64502,Six\n'

t.test('without data nothing is known, but that an address is private', async (t) => {
  const { lookup } = createAddresses()
  t.same(lookup('203.0.113.7'), NO_FACTS)
  t.same(lookup('no address'), NO_FACTS)
  for (const ip of [
    '10.1.2.3',
    '127.0.0.1',
    '192.168.9.9',
    '172.31.0.1',
    '100.64.0.1',
    '169.254.1.1',
    '::1',
    'fd00::1',
    'fe80::1',
  ])
    t.equal(lookup(ip).isPrivate, true, ip)
  for (const ip of ['203.0.113.7', '172.32.0.1', '100.128.0.1', '2001:db8::1', '::2', 'fe00::1', '255.255.255.255'])
    t.equal(lookup(ip).isPrivate, false, ip)
})

t.test('all sources are asked, by address and by AS number', async (t) => {
  const lookup = known([
    imageOf('asn', ASN),
    imageOf('geo', '192.0.2.0,192.0.2.255,EU,DE,Bavaria,Munich,48.1,11.5\n'),
    imageOf('datacenter', 'AS64500\n203.0.113.0/24\n'),
    imageOf('vpn', 'AS64502 # SixVPN\n', input('192.0.2.128/25\n', { name: 'Named' })),
    imageOf('relay', '198.51.100.0/25\n'),
    imageOf('tor', '192.0.2.9\n2001:db8::9\n'),
    imageOf('badAsn', 'ASN,Entity\n64501,"Home"\n'),
    imageOf('abuse', input('192.0.2.9\n', { name: 'drop' }), '203.0.113.0/25\n'),
  ])
  const dataAt = { geo: CHANGED_AT, asn: CHANGED_AT, tor: CHANGED_AT, abuse: CHANGED_AT }
  t.match(lookup('192.0.2.9'), {
    geo: { country: 'DE', region: 'Bavaria', city: 'Munich', lat: 48.1, lng: 11.5, timezone: 'Europe/Berlin' },
    network: { asn: 64500, name: 'Hosting' },
    hosting: 'datacenter_asn',
    vpn: null,
    relay: null,
    tor: true,
    blocklists: ['tor', 'drop'],
    dataAt,
  })
  t.match(lookup('192.0.2.200'), { vpn: { provider: 'Named', method: 'vpn_range' }, tor: false, blocklists: [] })
  t.match(lookup('198.51.100.1'), {
    relay: { name: 'iCloud Private Relay', isVpn: false },
    hosting: 'bad_asn',
    blocklists: ['bad_asn'],
  })
  t.match(lookup('203.0.113.1'), { network: null, geo: null, hosting: 'datacenter_range', blocklists: ['abuse'] })
  t.match(lookup('2001:db8::9'), { vpn: { provider: 'SixVPN', method: 'vpn_asn' }, tor: true, network: { asn: 64502 } })
  t.match(lookup('8.8.8.8'), { geo: null, network: null, hosting: null, vpn: null, tor: false, blocklists: [], dataAt })
})

t.test('what is told replaces all that was told before', async (t) => {
  const addresses = createAddresses()
  addresses.take({ images: [imageOf('tor', '192.0.2.9\n')], relayIsVpn: true })
  t.equal(addresses.lookup('192.0.2.9').tor, true)
  addresses.take({ images: [imageOf('relay', '192.0.2.9\n')], relayIsVpn: true })
  t.match(addresses.lookup('192.0.2.9'), { tor: false, relay: { isVpn: true }, dataAt: { tor: undefined } })
  addresses.take({ images: [], relayIsVpn: false })
  t.same(addresses.lookup('192.0.2.9'), NO_FACTS)
})

const SUMMER = Date.UTC(2026, 6, 1)
const WINTER = Date.UTC(2026, 0, 1)

t.test('offsets are those of the instant', async (t) => {
  t.equal(offsetMinutes('Europe/Berlin', SUMMER), 120)
  t.equal(offsetMinutes('Europe/Berlin', WINTER), 60)
  t.equal(offsetMinutes('Asia/Kolkata', WINTER), 330)
  t.equal(offsetMinutes('America/St_Johns', WINTER), -210)
  t.equal(offsetMinutes('UTC', WINTER), 0)
  const change = Date.UTC(2026, 2, 29, 1)
  t.same([offsetMinutes('Europe/Prague', change - 1), offsetMinutes('Europe/Prague', change)], [60, 120])
  for (const junk of ['', 'Mars/Olympus', '__proto__', 'x'.repeat(64), '../etc', 'Europe/Berlin\u0000'])
    t.equal(offsetMinutes(junk, WINTER), null, JSON.stringify(junk))
  for (let i = 0; i < 10_000; i++) offsetMinutes('Europe/Berlin', WINTER + i * 900_000)
  t.equal(offsetMinutes('Europe/Berlin', WINTER), 60, 'however many instants were asked for')
})

t.test('a clock differs only when no clock of the place shows nearly the same', async (t) => {
  const berlin = { country: 'DE', timezone: 'Europe/Berlin' }
  t.equal(zoneDiffers('Europe/Prague', berlin, SUMMER), false, 'another name')
  t.equal(zoneDiffers('Europe/London', berlin, SUMMER), true, 'an hour')
  t.equal(zoneDiffers('Asia/Kathmandu', { country: 'IN', timezone: 'Asia/Kolkata' }, SUMMER), false, 'a quarter')
  t.equal(
    zoneDiffers('America/New_York', { country: 'US', timezone: 'America/Los_Angeles' }, SUMMER),
    false,
    'one country',
  )
  t.equal(zoneDiffers('Europe/Berlin', { country: 'US', timezone: null }, SUMMER), true)
  t.equal(zoneDiffers('America/Phoenix', { country: null, timezone: 'America/Denver' }, WINTER), false)
  t.equal(zoneDiffers('America/Phoenix', { country: null, timezone: 'America/Denver' }, SUMMER), true, 'only in summer')
  t.equal(zoneDiffers('Europe/Berlin', { country: null, timezone: null }, SUMMER), null)
  t.equal(zoneDiffers('Europe/Berlin', { country: 'XX', timezone: null }, SUMMER), null)
  t.equal(zoneDiffers('Nowhere/Land', berlin, SUMMER), null)
  t.same([zonesOf('CZ'), zonesOf('XX')], [['Europe/Prague'], []])
})
