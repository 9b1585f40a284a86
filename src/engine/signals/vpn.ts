// vpn: the address is an exit of a VPN, or a browser in a data centre keeps the time of elsewhere. A clock of elsewhere
// alone is a traveller; a relay hides the address within its country and counts only where the operator says so.

import type { Signal } from '../../domain/event.ts'
import { zoneDiffers } from '../../ipintel/zones.ts'
import { FRESH_SECONDS, VPN } from '../weights.ts'
import { clear, detected, type SignalInput } from './evidence.ts'
import { aged, hasSource, unsure } from './lists.ts'

/** Undetermined without a list of VPNs, unless something else gives one away. */
export function detectVpn({ attributes, network }: SignalInput): Signal {
  const { address, atMs } = network
  const fresh = FRESH_SECONDS.ranges
  if (address.relay !== null) {
    const signal = address.relay.isVpn
      ? detected(VPN.relay, ['relay'], 'server')
      : clear(VPN.relay, ['relay'], 'server')
    return aged(signal, network, 'relay', fresh)
  }
  if (address.vpn !== null) {
    const { method } = address.vpn
    return aged(detected(VPN[method], [method], 'server'), network, 'vpn', fresh)
  }
  const differs = attributes.timezone !== null && zoneDiffers(attributes.timezone, network, atMs) === true
  if (differs && address.hosting !== null) {
    const methods = ['timezone_mismatch', address.hosting]
    return aged(detected(VPN.timezone_hosting, methods, 'server'), network, 'geo', fresh)
  }
  const methods = differs ? ['timezone_mismatch'] : []
  if (!hasSource(network, 'vpn') || address.isPrivate) return unsure(methods)
  return aged(clear(differs ? VPN.clear_mismatch : VPN.clear, methods, 'server'), network, 'vpn', fresh)
}

/** Who runs the VPN or relay, where its list says so; a relay is named even where it does not raise the signal. */
export function vpnProviderOf({ network }: SignalInput): string | null {
  return network.address.relay?.name ?? network.address.vpn?.provider ?? null
}
