// Which addresses are somebody's on the public internet: unicast, global, and no door into another network. Anything that is not
// known to be is none.

import { type Cidr, inCidrs, ipParts, parseCidr } from './ip.ts'

const ranges = (...texts: readonly string[]): readonly Cidr[] => texts.flatMap((text) => parseCidr(text) ?? [])

const SPECIAL_V4 = ranges(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
)
/** All that is given out so far; translation, local and site addresses lie outside. */
const GLOBAL_V6 = ranges('2000::/3')
/** Protocols, documentation, tunnels into IPv4, anycast sinks. */
const SPECIAL_V6 = ranges('2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20')

/** False for what is no address at all. IPv4-mapped ones count as IPv4. */
export function isPublicAddress(address: string): boolean {
  const parts = ipParts(address)
  if (parts === null || address.includes('%')) return false
  if (parts.length === 4) return !inCidrs(address, SPECIAL_V4)
  return inCidrs(address, GLOBAL_V6) && !inCidrs(address, SPECIAL_V6)
}
