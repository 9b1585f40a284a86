// Lists and databases as they are published, and as they are when something went wrong on the way.

import { gzipSync } from 'node:zlib'
import t from 'tap'
import { ipParts } from '../../src/domain/ip.ts'
import { spanWords } from '../../src/ipintel/spans.ts'
import type { AddressTable } from '../../src/ipintel/table.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { CHANGED_AT, imageOf, input, mmdb, tableOf } from './made.ts'

function find(table: AddressTable, ip: string): string | null {
  const address = spanWords(ipParts(ip) ?? [])
  const value = address.length === 1 ? table.v4(address[0] as number) : table.v6(address)
  return value === 0 ? null : table.text(value)
}
const findAsn = (table: AddressTable, asn: number): string | null =>
  table.asn(asn) === 0 ? null : table.text(table.asn(asn))

t.test('a list takes ranges, addresses, AS numbers and comments, in all their spellings', async (t) => {
  const list = [
    '\ufeff# a comment',
    '; another',
    '',
    '192.0.2.0/24',
    '198.51.100.7   # inline',
    '  203.0.113.8/30;x',
    '203.0.113.64,GB,GB-ENG,London,',
    '"203.0.113.128","x"',
    '100.64.0.10-100.64.0.20',
    '::ffff:192.88.99.0/120',
    '2001:DB8:1::/48 ; SBL1',
    '2001:db8:2::1',
    'AS64500 # Example',
    'as64501',
    '64502,"Example, Inc."',
    '10.0.0.99/24\r',
  ]
  const table = tableOf('datacenter', list.join('\n'))
  for (const ip of [
    '192.0.2.0',
    '192.0.2.255',
    '198.51.100.7',
    '203.0.113.11',
    '203.0.113.64',
    '203.0.113.128',
    '100.64.0.10',
    '100.64.0.20',
    '192.88.99.255',
    '2001:db8:1:ffff::',
    '2001:db8:2::1',
    '10.0.0.1',
  ]) {
    t.equal(find(table, ip), '', ip)
  }
  for (const ip of ['192.0.3.0', '198.51.100.8', '203.0.113.12', '100.64.0.21', '2001:db8:2::2', '2001:db8:2::', '::1'])
    t.equal(find(table, ip), null, ip)
  for (const asn of [64500, 64501, 64502]) t.equal(findAsn(table, asn), '')
  t.equal(findAsn(table, 64503), null)
  t.same([table.meta.entries, table.meta.dataAt], [13, CHANGED_AT])
})

t.test('a VPN is named by its file, else by a comment, and no name hides one', async (t) => {
  const table = tableOf(
    'vpn',
    'AS64500 # Hoster, GB (ExampleVPN)\nAS64501 # Plain VPN (Holding S.A.)\nAS64502 # https://example.com/why\n192.0.2.7\n192.0.2.0/28',
    input('192.0.2.0/24\n192.0.2.7', { name: 'Named' }),
    input('192.0.2.8/29 # the file knows better', { name: 'Inner' }),
  )
  t.same(
    [64500, 64501, 64502].map((asn) => findAsn(table, asn)),
    ['ExampleVPN', 'Plain VPN', ''],
  )
  t.same(
    ['192.0.2.7', '192.0.2.1', '192.0.2.9', '192.0.2.200'].map((ip) => find(table, ip)),
    ['Named', 'Named', 'Inner', 'Named'],
  )
})

t.test('one line that would flag everybody is passed over', async (t) => {
  const table = tableOf('tor', '0.0.0.0/0\n::/0\n128.0.0.0/1\n0.0.0.0-255.255.255.255\n2000::/3\n192.0.2.9\n10.0.0.0/8')
  t.equal(find(table, '192.0.2.9'), '')
  t.equal(find(table, '10.1.2.3'), '')
  for (const ip of ['8.8.8.8', '200.1.1.1', '2001:db8::1']) t.equal(find(table, ip), null, ip)
})

t.test('what is no list is refused, with a reason', async (t) => {
  const page = `<html>\n${'<p>Not found</p>\n'.repeat(50)}</html>`
  t.throws(() => imageOf('tor', page), { name: 'BadSource', message: /made up: 5\d of 5\d lines cannot be read/ })
  t.throws(() => imageOf('tor', ''), { name: 'BadSource', message: /no entries/ })
  t.throws(() => imageOf('tor', '# nothing\n'), { message: /no entries/ })
  t.throws(() => imageOf('geo', page), { name: 'BadSource' })
  t.throws(() => imageOf('tor', Buffer.alloc(1_000_000)), { name: 'BadSource' }, 'one line of zeros')
  t.throws(() => imageOf('tor', 'x'.repeat(5_000_000)), { name: 'BadSource' }, 'one endless line')
  t.throws(() => imageOf('tor', gzipSync('192.0.2.1\n').subarray(0, 20)), { message: /unpacked/ })
  t.throws(() => imageOf('tor', gzipSync(Buffer.alloc(20_000_000))), { message: /unpacked/ }, 'a bomb')
  const reversed = '192.0.2.9-192.0.2.1\n192.0.2.5-2001:db8::1\nAS0\nAS4294967295\n1.2.3.4/33\n300.1.1.1\n'
  t.throws(() => imageOf('tor', reversed), { message: /no entries/ })
  const mostly = `${'192.0.2.1\n'.repeat(600)}${'nonsense\n'.repeat(9)}`
  t.equal(find(tableOf('tor', mostly), '192.0.2.1'), '', 'a few broken lines among many are none')
})

t.test('networks are read from CSV and TSV', async (t) => {
  const csv = [
    'start,end,asn,name',
    '192.0.2.0,192.0.2.255,64500,"Example, ""Inc."""',
    '3325256704,3325256959,AS64501,Numbers',
    '2001:db8::,2001:db8:0:ffff:ffff:ffff:ffff:ffff,64502,Six',
    '42540766490265467095195186098406817792,42540766490265485541939260,64503,Reversed',
    '198.18.0.0,198.18.0.255,0,Not routed',
    `198.18.1.0,198.18.1.255,64504,\u0007${'n'.repeat(300)}`,
  ]
  const table = tableOf('asn', csv.join('\r\n'))
  t.equal(find(table, '192.0.2.77'), '64500 Example, "Inc."')
  t.equal(find(table, '198.51.100.1'), '64501 Numbers')
  t.equal(find(table, '2001:db8::7'), '64502 Six')
  t.equal(find(table, '198.18.0.1'), null)
  t.equal(find(table, '198.18.1.1'), `64504 ${'n'.repeat(128)}`)
  const tsv = '192.0.2.0\t192.0.2.255\t64500\tDE\tEXAMPLE-NET\n198.51.100.0\t198.51.100.255\t0\tNone\tNot routed\n'
  t.equal(find(tableOf('asn', tsv), '192.0.2.1'), '64500 EXAMPLE-NET')
  const geo = tableOf('geo', tsv)
  t.equal(find(geo, '192.0.2.1'), '["DE",null,null,null,null,null]')
  t.equal(find(geo, '198.51.100.1'), null)
})

t.test('places are read from the layouts there are, with the time zone of their coordinates', async (t) => {
  const city = '192.0.2.0,192.0.2.255,DE,Bavaria,Upper Bavaria,Munich,80331,48.13743,11.57549,\n'
  const zoned = '192.0.2.0,192.0.2.255,DE,Bavaria,,Munich,,48.1,11.5,Europe/Vienna\n'
  const lite = '192.0.2.0,192.0.2.255,EU,DE,Bavaria,Munich,48.13743,11.57549\n'
  const country = '192.0.2.0,192.0.2.255,DE\n'
  const odd = '192.0.2.0,192.0.2.255,xx,,,,,91,500,\n198.51.100.0,198.51.100.1,US,,,,,91,500,Mars/Olympus\n'
  t.equal(find(tableOf('geo', city), '192.0.2.1'), '["DE","Bavaria","Munich",48.1374,11.5755,"Europe/Berlin"]')
  t.equal(find(tableOf('geo', zoned), '192.0.2.1'), '["DE","Bavaria","Munich",48.1,11.5,"Europe/Vienna"]')
  t.equal(find(tableOf('geo', lite), '192.0.2.1'), '["DE","Bavaria","Munich",48.1374,11.5755,"Europe/Berlin"]')
  t.equal(find(tableOf('geo', country), '192.0.2.1'), '["DE",null,null,null,null,null]')
  t.equal(find(tableOf('geo', odd), '192.0.2.1'), null)
  t.equal(find(tableOf('geo', odd), '198.51.100.1'), '["US",null,null,null,null,null]')
})

const bitsOf = (ip: string, length: number): string =>
  spanWords(ipParts(ip) ?? [])
    .map((word) => word.toString(2).padStart(32, '0'))
    .join('')
    .slice(0, length)
const V4 = '0'.repeat(96)

t.test('MMDB files are read whole, whatever their records are called', async (t) => {
  const maxmind = {
    country: { iso_code: 'DE', names: { en: 'Germany' } },
    subdivisions: [{ names: { en: 'Bavaria', de: 'Bayern' } }],
    city: { names: { en: 'München' } },
    location: { latitude: 48.137, longitude: 11.575, time_zone: 'Europe/Berlin' },
  }
  const flat = { country_code: 'JP', city: 'Tokyo', state1: 'Tokyo', latitude: 35.68, longitude: 139.76 }
  const entries = [
    [V4 + bitsOf('192.0.2.0', 24), maxmind],
    [V4 + bitsOf('198.51.100.0', 25), { country_code: 'CZ' }],
    [bitsOf('2001:db8::', 32), flat],
    [bitsOf('2001:db9::1', 128), { country: 'FR' }],
  ] as const
  for (const bits of [24, 28, 32] as const) {
    const builtAt = Date.UTC(2026, 5, 1)
    const table = tableOf('geo', mmdb(entries, { bits, builtAt }, bitsOf('2002::', 16)))
    t.equal(find(table, '192.0.2.200'), '["DE","Bavaria","München",48.137,11.575,"Europe/Berlin"]')
    t.equal(find(table, '198.51.100.127'), '["CZ",null,null,null,null,null]')
    t.equal(find(table, '198.51.100.128'), null)
    t.equal(find(table, '2001:db8:ffff::'), '["JP","Tokyo","Tokyo",35.68,139.76,"Asia/Tokyo"]')
    t.equal(find(table, '2001:db9::1'), '["FR",null,null,null,null,null]')
    t.equal(find(table, '2001:db9::2'), null)
    t.equal(find(table, '2002:c000:200::1'), null, 'another way to IPv4 is not followed')
    t.equal(table.meta.dataAt, builtAt, 'the file says when it was made')
  }
  const v4 = mmdb(
    [[bitsOf('192.0.2.0', 24), { autonomous_system_number: 64500, autonomous_system_organization: 'X' }]],
    {
      version: 4,
    },
  )
  t.equal(find(tableOf('asn', gzipSync(v4)), '192.0.2.1'), '64500 X')
  const ipinfo = mmdb([[V4 + bitsOf('192.0.2.0', 24), { asn: 'AS64501', as_name: 'Y' }]])
  t.equal(find(tableOf('asn', ipinfo), '192.0.2.1'), '64501 Y')
  t.throws(() => imageOf('tor', v4), { name: 'BadSource' }, 'a database is no list')
})

t.test('a damaged MMDB file is refused or read, and nothing else happens', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  const whole = mmdb(
    [
      [
        V4 + bitsOf('192.0.2.0', 24),
        { country_code: 'DE', city: { names: { en: 'x' } }, list: [1, true, -1.5, 2 ** 40] },
      ],
      [V4 + bitsOf('10.0.0.0', 8), { country_code: 'FR' }],
    ],
    {},
    bitsOf('2002::', 16),
  )
  let refused = 0
  const from = Math.max(0, whole.length - 400)
  for (let run = 0; run < 1_500; run++) {
    let bytes = Buffer.from(whole)
    // Mostly where the data and what is said of it are; the tree is long and dull.
    for (let i = 0; i <= random.int(4); i++) {
      bytes[random.chance(0.7) ? from + random.int(bytes.length - from) : random.int(bytes.length)] = random.int(256)
    }
    if (random.chance(0.2)) bytes = bytes.subarray(random.int(bytes.length))
    try {
      imageOf('geo', bytes)
    } catch (error) {
      refused++
      if ((error as Error).name !== 'BadSource') return t.fail(`run ${run}: ${(error as Error).stack}`)
    }
  }
  t.ok(refused > 100, `${refused} refused`)
})

t.test('a tree that leads back into itself ends', async (t) => {
  // One node whose two sides lead to itself, at any depth.
  const loop = mmdb([[V4 + bitsOf('192.0.2.0', 24), { country_code: 'DE' }]])
  loop.writeUIntBE(0, 0, 3)
  loop.writeUIntBE(0, 3, 3)
  t.throws(() => imageOf('geo', loop), { name: 'BadSource' })
})
