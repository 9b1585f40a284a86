// Whose address a request has: the socket's, or behind trusted proxies the last hop that is not one of them.

import { type Cidr, canonicalIp, inCidrs } from '../domain/ip.ts'

const HOPS_MAX = 32

/** `remote` is canonical. A hop that is no address ends the search: whatever is left of it cannot be believed. */
export function clientAddress(remote: string, forwardedFor: string, trusted: readonly Cidr[]): string {
  if (forwardedFor === '' || !inCidrs(remote, trusted)) return remote
  let client = remote
  for (const hop of forwardedFor.split(',').slice(-HOPS_MAX).reverse()) {
    const address = canonicalIp(hop.trim())
    if (address === null) return client
    client = address
    if (!inCidrs(address, trusted)) return client
  }
  return client
}
