// Who a client is behind proxies, and how many hops it claims to speak for.

import t from 'tap'
import { type Cidr, parseCidr } from '../../src/domain/ip.ts'
import { clientAddress, findClient } from '../../src/ingress/client-address.ts'

const trusted = ['10.0.0.0/8', '2001:db8::/32'].map(parseCidr) as Cidr[]

// remote, X-Forwarded-For, address, hops before
const ROWS: readonly (readonly [string, string, string, number])[] = [
  ['203.0.113.7', '', '203.0.113.7', 0],
  ['10.0.0.1', '', '10.0.0.1', 0],
  ['203.0.113.7', '198.51.100.1', '203.0.113.7', 1],
  ['203.0.113.7', '198.51.100.1, 10.0.0.9', '203.0.113.7', 2],
  ['10.0.0.1', '203.0.113.7', '203.0.113.7', 0],
  ['10.0.0.1', '203.0.113.7, 10.2.3.4', '203.0.113.7', 0],
  ['10.0.0.1', '198.51.100.1, 203.0.113.7, 2001:db8::7', '203.0.113.7', 1],
  ['10.0.0.1', '198.51.100.1,198.51.100.2 , 203.0.113.7', '203.0.113.7', 2],
  ['10.0.0.1', '10.0.0.5, 10.0.0.6', '10.0.0.5', 0],
  ['10.0.0.1', 'unknown', '10.0.0.1', 1],
  ['10.0.0.1', '203.0.113.7, junk, 10.0.0.2', '10.0.0.2', 2],
  ['10.0.0.1', ',', '10.0.0.1', 2],
  ['10.0.0.1', '203.0.113.7:5555', '203.0.113.7', 0],
  ['10.0.0.1', '198.51.100.1:1, 203.0.113.7:65535, 10.0.0.2:80', '203.0.113.7', 1],
  ['10.0.0.1', '[2001:DB9::1]:80', '2001:db9::1', 0],
  ['10.0.0.1', '203.0.113.7, [2001:db8::5]', '203.0.113.7', 0],
  ['10.0.0.1', '2001:db9::1', '2001:db9::1', 0],
  ['10.0.0.1', '[::ffff:203.0.113.7]:1', '203.0.113.7', 0],
  ['10.0.0.1', '203.0.113.7:', '10.0.0.1', 1],
  ['10.0.0.1', '203.0.113.7:5555555', '10.0.0.1', 1],
  ['10.0.0.1', '[203.0.113.7]:80', '10.0.0.1', 1],
  ['10.0.0.1', '[2001:db9::1', '10.0.0.1', 1],
  ['10.0.0.1', '[2001:db9::1]80', '10.0.0.1', 1],
  ['10.0.0.1', `${'9.9.9.9,'.repeat(1_000)}203.0.113.7`, '203.0.113.7', 31],
]

t.test('the client is the last hop that is not trusted, and what stands before it is its own claim', async (t) => {
  for (const [remote, header, address, hopsBefore] of ROWS) {
    t.same(findClient(remote, header, trusted), { address, hopsBefore }, `${remote} ${header.slice(0, 60)}`)
    t.equal(clientAddress(remote, header, trusted), address)
  }
  t.same(findClient('10.0.0.1', '203.0.113.7', []), { address: '10.0.0.1', hopsBefore: 1 }, 'nobody is trusted')
})
