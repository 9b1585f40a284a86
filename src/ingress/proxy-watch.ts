// Notices a proxy in front that is not among the trusted ones: every visitor then has its address, and recognition, counters and
// signals are about the proxy. It says so; whose header is believed is the operator's to decide.

import { isPublicAddress } from '../domain/public-address.ts'
import type { RequestClient } from './client-address.ts'

/**
 * `forwarded`: an address that is not trusted says whom it passes on, a private one or nearly every one.
 * `one-address`: visitors with several browsers all have one private address, and nobody says whose they are.
 */
export type ProxySuspicion = 'forwarded' | 'one-address'

const TRUST = 'FINGERPOST_TRUSTED_PROXIES'

/** What an operator is told of each, and what mends it. */
export const PROXY_SUSPICIONS: Readonly<Record<ProxySuspicion, { readonly says: string; readonly mend: string }>> = {
  forwarded: {
    says: 'visitors are passed on by a proxy that is not trusted: their X-Forwarded-For is not believed, and they have its address',
    mend: `set ${TRUST} to the addresses of the proxy, such as 127.0.0.1/32 or 10.0.0.0/8`,
  },
  'one-address': {
    says: 'all visitors come from one private address, and no X-Forwarded-For says whose they are',
    mend: `let the proxy in front send X-Forwarded-For, and set ${TRUST} to its addresses`,
  },
}

export interface ProxyWatch {
  /** A visit whose address is the one its request came from, or the last one that trusted proxies tell of. */
  saw(client: RequestClient, userAgent: string): void
  suspicion(): ProxySuspicion | null
}

/** After so many visits everything is looked at anew. */
const WINDOW_VISITS = 500
/** One may be somebody who tries things. */
const FORWARDED_PRIVATE_MIN = 5
/** Some visitors have a proxy of their own. */
const FORWARDED_SHARE_MIN = 0.9
const VISITS_MIN = 50
/** One person who tries things has a browser or two. */
const BROWSERS_MIN = 3

export function createProxyWatch(changed: (suspicion: ProxySuspicion | null) => void): ProxyWatch {
  const browsers = new Set<string>()
  let visits = 0
  let forwarded = 0
  let forwardedPrivate = 0
  let onlyAddress: string | null = null
  let known = ''
  let knownPrivate = false
  let suspicion: ProxySuspicion | null = null

  /** Most visits need not ask: it takes longer than all the rest. */
  function isPrivate(address: string): boolean {
    if (address === known) return knownPrivate
    known = address
    knownPrivate = !isPublicAddress(address)
    return knownPrivate
  }

  function begin(): void {
    browsers.clear()
    visits = 0
    forwarded = 0
    forwardedPrivate = 0
    onlyAddress = null
  }

  function judge(): ProxySuspicion | null {
    if (forwardedPrivate >= FORWARDED_PRIVATE_MIN) return 'forwarded'
    if (visits < VISITS_MIN) return null
    if (forwarded >= FORWARDED_SHARE_MIN * visits) return 'forwarded'
    return onlyAddress !== null && browsers.size >= BROWSERS_MIN ? 'one-address' : null
  }

  function tell(found: ProxySuspicion | null): void {
    if (found === suspicion) return
    suspicion = found
    changed(found)
  }

  return {
    saw({ address, hopsBefore }, userAgent) {
      if (visits === 0) onlyAddress = isPrivate(address) ? address : null
      else if (address !== onlyAddress) onlyAddress = null
      visits++
      if (hopsBefore > 0) {
        forwarded++
        if (isPrivate(address)) forwardedPrivate++
      }
      if (onlyAddress !== null && browsers.size < BROWSERS_MIN) browsers.add(userAgent)
      const found = judge()
      if (found !== null) tell(found)
      if (visits < WINDOW_VISITS) return
      tell(found)
      begin()
    },
    suspicion: () => suspicion,
  }
}
