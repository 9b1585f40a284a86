// Where deliveries may go: public addresses, and private ones only inside ranges the operator allows. Names are resolved once,
// every answer must be allowed, and what was checked is what is connected to.

import { lookup, Resolver } from 'node:dns/promises'
import { type Cidr, canonicalIp, inCidrs } from '../domain/ip.ts'
import { isPublicAddress } from '../domain/public-address.ts'
import { type HostKind, readTarget } from '../domain/webhook-url.ts'

/** Says no more than that: which address it was would tell a stranger about the network. */
export class BlockedAddress extends Error {
  override readonly name = 'BlockedAddress'
}

/** No address is known for a name. */
export class UnknownHost extends Error {
  override readonly name = 'UnknownHost'
}

/** All addresses of a name. Rejects, or is empty, when there are none. */
export type Resolve = (host: string, kind: HostKind) => Promise<readonly string[]>

export interface AddressGuard {
  isAllowed(address: string): boolean
  /** Canonical, at least one, all allowed. Throws BlockedAddress, UnknownHost. */
  addressesOf(host: string): Promise<readonly string[]>
  /** Why a webhook may not have this address, or null. Asks a name server only for names of private networks. */
  problemOf(url: string): Promise<string | null>
}

const DNS = { timeout: 2_500, tries: 2 }
const NO_HOST = 'Must name a public host: no address, and no name of a private network.'

/**
 * Public names are asked of the name servers directly: the system's resolver has few threads, and one slow name would hold up
 * the files and stores of the whole process. Names of private networks may be known only to the system.
 */
export function openResolve(): Resolve {
  const resolver = new Resolver(DNS)
  return async (host, kind) => {
    if (kind === 'private') return (await lookup(host, { all: true })).map(({ address }) => address)
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  }
}

export function openAddressGuard(allowed: readonly Cidr[], resolve: Resolve): AddressGuard {
  const isAllowed = (address: string): boolean => isPublicAddress(address) || isPrivateAllowed(address)

  function isPrivateAllowed(address: string): boolean {
    const canonical = canonicalIp(address)
    return canonical !== null && !address.includes('%') && inCidrs(canonical, allowed)
  }

  async function resolved(host: string, kind: HostKind): Promise<readonly string[]> {
    const found = await resolve(host, kind).catch((cause) => {
      throw new UnknownHost('the host could not be resolved', { cause })
    })
    if (found.length === 0) throw new UnknownHost('the host has no address')
    return found
  }

  return {
    isAllowed,
    async addressesOf(host) {
      const target = readTarget(`https://${host.includes(':') ? `[${host}]` : host}/`)
      if (typeof target === 'string') throw new BlockedAddress('not a host')
      const addresses = target.kind === 'literal' ? [target.host] : await resolved(target.host, target.kind)
      return addresses.map((address) => {
        const canonical = canonicalIp(address)
        if (canonical === null || !isAllowed(address)) throw new BlockedAddress('the address may not be connected to')
        return canonical
      })
    },
    async problemOf(url) {
      const target = readTarget(url)
      if (typeof target === 'string') return target
      if (target.kind === 'public') return null
      if (allowed.length === 0) return NO_HOST
      if (target.kind === 'literal') return isPrivateAllowed(target.host) ? null : NO_HOST
      const addresses = await resolved(target.host, target.kind).catch(() => [])
      return addresses.length > 0 && addresses.every(isPrivateAllowed) ? null : NO_HOST
    },
  }
}
