// vpn, proxy and tor: these need data about addresses. Without it only a proxy that names itself in a header can be told.

import type { Signal } from '../../domain/event.ts'
import { DETECTED_MIN, PROXY } from '../weights.ts'
import { newTally, raise, type SignalInput, undetermined, verdictOf } from './evidence.ts'

// Content networks and load balancers in front of the customer add this header too.
const FRONTS = /cloudfront|google|varnish|vegur|akamai|fastly|cloudflare|haproxy|envoy|nginx|traefik|caddy/i

export function detectProxy({ attributes }: SignalInput): Signal {
  const headers = attributes.claims.headers
  const via = headers.via
  const tally = newTally()
  if (via !== undefined && via !== '' && !FRONTS.test(via)) raise(tally, 'via_header', PROXY.via_header)
  if (headers.forwarded !== undefined) raise(tally, 'forwarded_header', PROXY.forwarded_header)
  const signal = verdictOf(tally, DETECTED_MIN.proxy, 0, 'server')
  return signal.state === 'detected' ? signal : undetermined()
}

export const detectVpn = (): Signal => undetermined()
export const detectTor = (): Signal => undetermined()
