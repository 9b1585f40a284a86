// proxy: somebody passed the request on. Either a header says so, or a browser speaks from a data centre that is no VPN,
// no relay and no Tor exit. Proxies in homes are on no list.

import type { Signal } from '../../domain/event.ts'
import { DETECTED_MIN, FRESH_SECONDS, PROXY } from '../weights.ts'
import {
  clear,
  type EvidenceTally,
  type NetworkEvidence,
  newTally,
  raise,
  type SignalInput,
  verdictOf,
} from './evidence.ts'
import { aged, hasSource, unsure } from './lists.ts'

// Content networks and load balancers in front of the customer name themselves in this header too.
const FRONTS = /cloudfront|google|varnish|vegur|akamai|fastly|cloudflare|haproxy|envoy|nginx|traefik|caddy/i
const HOPS_MAX = 16

const namesProxy = (via: string): boolean =>
  via.split(',', HOPS_MAX).some((hop) => hop.trim() !== '' && !FRONTS.test(hop))

/** A browser whose address belongs to a data centre, with nothing else that would explain it. */
function isBrowserInDatacenter({ attributes, network }: SignalInput): boolean {
  const { ua } = attributes
  const { hosting, vpn, relay, tor } = network.address
  return hosting !== null && vpn === null && relay === null && !tor && ua.engine !== 'other' && !ua.bot
}

function sourceOf(network: NetworkEvidence): 'datacenter' | 'badAsn' | null {
  if (network.address.hosting === 'bad_asn') return 'badAsn'
  if (hasSource(network, 'datacenter')) return 'datacenter'
  return hasSource(network, 'badAsn') && hasSource(network, 'asn') ? 'badAsn' : null
}

function raiseHeaders(tally: EvidenceTally, headers: Readonly<Record<string, string>>): void {
  const { via, forwarded, 'x-forwarded-for': passedOn } = headers
  if (via !== undefined && namesProxy(via)) raise(tally, 'via_header', PROXY.via_header)
  if (forwarded !== undefined) raise(tally, 'forwarded_header', PROXY.forwarded_header)
  if (passedOn !== undefined) raise(tally, 'forwarded_for', PROXY.forwarded_for)
}

/** Undetermined when no header speaks and no list of data centres is there. */
export function detectProxy(input: SignalInput): Signal {
  const { attributes, network } = input
  const tally = newTally()
  raiseHeaders(tally, attributes.claims.headers)
  const { hosting } = network.address
  const isHosted = hosting !== null && isBrowserInDatacenter(input)
  if (isHosted) raise(tally, hosting, PROXY[hosting])
  const signal = verdictOf(tally, DETECTED_MIN.proxy, PROXY.clear, 'server')
  const source = sourceOf(network)
  if (signal.state === 'detected') {
    return isHosted && source !== null ? aged(signal, network, source, FRESH_SECONDS.ranges) : signal
  }
  if (source === null || network.address.isPrivate) return unsure(tally.methods)
  const confidence = Math.min(signal.confidence, PROXY.clear)
  return aged(clear(confidence, signal.methods, 'server'), network, source, FRESH_SECONDS.ranges)
}
