// tor: the address is a known exit. Exits come and go within days, so an old list says less of an address it holds, and
// nothing of one it does not.

import type { Signal } from '../../domain/event.ts'
import { FRESH_SECONDS, STALE, TOR } from '../weights.ts'
import { clear, detected, type SignalInput, undetermined } from './evidence.ts'
import { aged, hasSource, listAgeOf } from './lists.ts'

// What Tor Browser shows as its time zone, by version.
const TOR_BROWSER_ZONES = new Set(['UTC', 'Etc/UTC', 'Atlantic/Reykjavik'])

/** Undetermined without a list, with one that is too old, and for addresses of private networks. */
export function detectTor({ attributes, network }: SignalInput): Signal {
  if (!hasSource(network, 'tor')) return undetermined()
  const fresh = FRESH_SECONDS.tor
  if (network.address.tor) {
    const { timezone, ua } = attributes
    const looksIt = ua.engine === 'Gecko' && timezone !== null && TOR_BROWSER_ZONES.has(timezone)
    const methods = looksIt ? ['tor_exit', 'tor_browser'] : ['tor_exit']
    return aged(detected(looksIt ? TOR.exit_and_browser : TOR.exit, methods, 'server'), network, 'tor', fresh)
  }
  const age = listAgeOf(network, 'tor')
  if (network.address.isPrivate || age === null || age > STALE.oldFactor * fresh) return undetermined()
  return aged(clear(TOR.clear, [], 'server'), network, 'tor', fresh)
}
