// Where deliveries may go: every special address in every spelling, names that resolve to them, and names that change their mind.

import ipaddr from 'ipaddr.js'
import t from 'tap'
import { openAddressGuard, type Resolve } from '../../src/dispatcher/guard.ts'
import { openPoster } from '../../src/dispatcher/post.ts'
import { parseCidr } from '../../src/domain/ip.ts'
import { isPublicAddress } from '../../src/domain/public-address.ts'
import { openCancel } from '../../src/lib/cancel.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { must } from '../../src/lib/must.ts'
import { sized } from '../helpers/depth.ts'
import { connectionsRest, makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { rng } from '../helpers/rng.ts'

const SPECIAL = [
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '100.127.255.255', '127.0.0.1', '127.255.255.254'],
  ...['169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.1', '192.0.2.1', '192.88.99.1', '192.168.1.1'],
  ...['198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
  ...['::', '::1', '::ffff:127.0.0.1', '::127.0.0.1', '64:ff9b::7f00:1', '64:ff9b:1::1', '100::1', '2001::1'],
  ...['2001:db8::1', '2002:7f00:1::1', '3fff::1', '5f00::1', 'fc00::1', 'fe80::1', 'fec0::1', 'ff02::1'],
]
const PUBLIC = ['1.1.1.1', '8.8.8.8', '100.63.255.255', '172.32.0.1', '198.20.0.1', '2606:4700::1111', '2a00:1450::1']
const SPELLINGS = [
  ...['2130706433', '0x7f000001', '0x7f.1', '127.1', '017700000001', '0251.0376.0251.0376', '①②⑦.0.0.1'],
  ...['127。0。0。1', '[::ffff:7f00:1]', '[0:0:0:0:0:ffff:127.0.0.1]', '[::1]', '%31%32%37.0.0.1'],
]

t.test('no special address is public, and what is public agrees with an independent list', async (t) => {
  for (const address of SPECIAL) t.notOk(isPublicAddress(address), address)
  for (const address of PUBLIC) t.ok(isPublicAddress(address), address)
  for (const nonsense of ['', 'localhost', '1.2.3', '1.2.3.4.5', 'fe80::1%eth0', '8.8.8.8%1']) {
    t.notOk(isPublicAddress(nonsense), nonsense)
  }
  const seed = 20_261_121
  const { int: random } = rng(seed)
  for (let i = 0; i < sized({ quick: 2_000, usual: 5_000, long: 20_000 }); i++) {
    const v4 = Array.from({ length: 4 }, () => random(256)).join('.')
    const v6 = Array.from({ length: 8 }, (_, k) =>
      (k === 0 ? 0x2000 + random(0x2000) : random(65_536)).toString(16),
    ).join(':')
    for (const address of [v4, v6]) {
      const isUnicast = ipaddr.parse(address).range() === 'unicast'
      if (isPublicAddress(address) && !isUnicast) t.fail(`${address} (seed ${seed})`)
    }
    if (ipaddr.parse(v4).range() === 'unicast' && !isPublicAddress(v4)) t.fail(`${v4} (seed ${seed})`)
  }
})

t.test('no address and no name of one reaches a canary, and a failure tells nothing of where it was', async (t) => {
  const authority = makeAuthority(t)
  const canary = await openReceiver(t, authority.leaf('DNS:localhost,DNS:evil.example,IP:127.0.0.1'))
  let answers = 0
  const resolve: Resolve = async (host) => {
    if (host === 'rebinding.example') return answers++ === 0 ? ['127.0.0.1', '8.8.8.8'] : ['127.0.0.1']
    if (host.startsWith('to-')) return [host.slice(3, -'.example'.length).replaceAll('-', '.')]
    return ['127.0.0.1']
  }
  const guard = openAddressGuard([], resolve)
  const poster = openPoster({ guard, clock: systemClock, extraCa: authority.ca, deadlineMs: 30_000 })
  t.teardown(() => poster.close())
  const hosts = [
    ...SPECIAL.map((address) => (address.includes(':') ? `[${address}]` : address)),
    ...SPELLINGS,
    ...['localhost', 'rebinding.example', 'evil.example', 'to-169-254-169-254.example', 'to-10-0-0-1.example'],
  ]
  for (const host of hosts) {
    const url = `https://${host}:${canary.port}/x`
    t.not(await guard.problemOf(url), host.endsWith('.example') ? 'x' : null, `${host} at registration`)
    const posted = await poster.post(new URL(url), {}, Buffer.from('{}'), openCancel())
    t.match(posted, { statusCode: null, error: 'blocked_address' }, host)
  }
  t.equal(canary.hits.length, 0)
})

t.test(
  'a name is resolved once for a connection, and the connection goes to the address that was checked',
  async (t) => {
    const authority = makeAuthority(t)
    const receiver = await openReceiver(t, authority.leaf('DNS:hook.example'))
    const asked: string[] = []
    const resolve: Resolve = async (host) => {
      asked.push(host)
      return asked.length === 1 ? ['127.0.0.1'] : ['169.254.169.254']
    }
    const guard = openAddressGuard([must(parseCidr('127.0.0.0/8'))], resolve)
    const poster = openPoster({ guard, clock: systemClock, extraCa: authority.ca, deadlineMs: 30_000 })
    t.teardown(() => poster.close())
    const url = new URL(`https://hook.example:${receiver.port}/x`)
    const post = () => poster.post(url, {}, Buffer.from('{}'), openCancel())
    t.match(await post(), { statusCode: 200, error: null }, 'name and certificate are those of the host')
    t.equal(receiver.hits[0]?.headers.host, url.host)
    await connectionsRest()
    t.match(await post(), { statusCode: 200 }, 'an open connection needs no name')
    t.same(asked, ['hook.example'])
  },
)
