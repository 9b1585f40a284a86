// Addresses as text: one spelling inside, masked outside. The general-purpose library is the oracle.

import ipaddr from 'ipaddr.js'
import t from 'tap'
import { canonicalIp, inCidrs, maskIp, parseCidr, subnetOf } from '../../src/domain/ip.ts'
import { rng, testSeed } from '../helpers/rng.ts'

t.test('addresses have one spelling', async (t) => {
  const rows: readonly (readonly [string, string | null])[] = [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:CB00:7107', '203.0.113.7'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::', '::'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
  ]
  for (const [text, canonical] of rows) t.equal(canonicalIp(text), canonical, text)
  const wrong = [
    '',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '01.2.3.4',
    '1.2.3.4 ',
    '0x7f.0.0.1',
    '127.1',
    '2130706433',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    'g::',
    '::1.2.3',
    'localhost',
    '1.2.3.4:80',
    '[::1]',
    '1:2:3:4:5:6:7::8:9',
    `${':'.repeat(70)}`,
    '::1\u0010',
    '::\u0011',
  ]
  for (const text of wrong) t.equal(canonicalIp(text), null, text)
})

t.test('any address is spelled as the library spells it', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  for (let i = 0; i < 3_000; i++) {
    const groups = Array.from({ length: 8 }, () => (random.chance(0.5) ? 0 : random.int(65_536)))
    const address = new ipaddr.IPv6(groups)
    if (address.isIPv4MappedAddress()) continue
    const expected = address.toRFC5952String()
    for (const text of [address.toNormalizedString(), address.toString().toUpperCase(), expected]) {
      if (canonicalIp(text) !== expected) t.fail(`${text}: ${canonicalIp(text)} is not ${expected}`)
    }
    const subnet = new ipaddr.IPv6([...groups.slice(0, 3), 0, 0, 0, 0, 0]).toString()
    if (canonicalIp(subnetOf(expected).replace('/48', '')) !== canonicalIp(subnet)) t.fail(subnetOf(expected))
  }
})

t.test('outputs are masked', async (t) => {
  t.equal(maskIp('203.0.113.7'), '203.0.113.*')
  t.equal(maskIp('2001:db8:1:2::7'), '2001:db8:1::*')
  t.equal(maskIp('2001:db8::7'), '2001:db8:0::*')
  t.equal(maskIp('::1'), '0:0:0::*')
  t.equal(subnetOf('203.0.113.7'), '203.0.113.0/24')
  t.equal(subnetOf('2001:db8:1:2::7'), '2001:db8:1::/48')
})

t.test('ranges cover what they say', async (t) => {
  const cidrs = ['10.0.0.0/8', '192.168.1.128/25', '2001:db8::/33', '203.0.113.9', '::ffff:198.51.100.0/120'].map(
    (text) => {
      const cidr = parseCidr(text)
      if (cidr === null) throw new Error(text)
      return cidr
    },
  )
  for (const ip of ['10.255.0.1', '192.168.1.200', '2001:db8:7fff::1', '203.0.113.9', '198.51.100.77'])
    t.ok(inCidrs(ip, cidrs), ip)
  for (const ip of ['11.0.0.1', '192.168.1.127', '2001:db8:8000::1', '203.0.113.8', '::1', 'x'])
    t.notOk(inCidrs(ip, cidrs), ip)
  for (const text of ['10.0.0.0/33', '10.0.0.0/', '10.0.0.0/01', '10.0.0/8', '::/129', 'x/8', '::ffff:1.2.3.4/95'])
    t.equal(parseCidr(text), null, text)
  t.ok(inCidrs('1.2.3.4', [parseCidr('0.0.0.0/0') as never]))
})
