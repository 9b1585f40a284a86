// Whose address a request has: the socket's, or behind trusted proxies the last hop that is not one of them.

import { type Cidr, canonicalIp, inCidrs } from '../domain/ip.ts'

const HOPS_MAX = 32

export interface RequestClient {
  /** Canonical. */
  readonly address: string
  /** Hops the client itself claims to pass on: what X-Forwarded-For says to the left of its address. */
  readonly hopsBefore: number
}

/** `remote` is canonical. A hop that is no address ends the search: whatever is left of it cannot be believed. */
export function findClient(remote: string, forwardedFor: string, trusted: readonly Cidr[]): RequestClient {
  if (forwardedFor === '') return { address: remote, hopsBefore: 0 }
  // One hop is what most proxies tell of.
  const hops = forwardedFor.includes(',') ? forwardedFor.split(',').slice(-HOPS_MAX) : [forwardedFor]
  let client = remote
  let left = hops.length
  while (left > 0 && inCidrs(client, trusted)) {
    const address = canonicalIp(withoutPort((hops[left - 1] as string).trim()))
    if (address === null) break
    client = address
    left--
  }
  return { address: client, hopsBefore: left }
}

/** Some proxies write the port too, and an IPv6 address in brackets. */
function withoutPort(hop: string): string {
  if (!hop.includes(':')) return hop
  const [, ipv4, ipv6] =
    /^(?:([0-9.]+):[0-9]{1,5}|\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\](?::[0-9]{1,5})?)$/.exec(hop) ?? []
  return ipv4 ?? ipv6 ?? hop
}

export const clientAddress = (remote: string, forwardedFor: string, trusted: readonly Cidr[]): string =>
  findClient(remote, forwardedFor, trusted).address
