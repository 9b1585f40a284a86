// Who connects a visitor: the third level of where a visit comes from, beside its address and the network around that.

import { hash32 } from '../domain/ids.ts'
import { partsOf } from './address.ts'

/** Providers kept of a visitor: home, work, carrier and one more. Unlike addresses they say little of anybody, and stay. */
export const PROVIDERS_MAX = 4

/**
 * 32 bits for the provider of a canonical address: its AS number where address data tells it, else the /16 (IPv4) or /32 (IPv6)
 * around it.
 */
export const providerOf = (ip: string, asn: number | null): number =>
  asn === null ? partsOf(ip).regionHash : hash32(`AS${asn}`)

/** With one more seen, the latest first. */
export function withProvider(providers: readonly number[], provider: number): number[] {
  return [provider, ...providers.filter((one) => one !== provider)].slice(0, PROVIDERS_MAX)
}

/** Of the addresses a visitor was seen at, of which no more is told than what they are. */
export const providersOf = (seen: readonly { readonly ip: string; readonly at: number }[]): number[] =>
  seen
    .toSorted((a, b) => a.at - b.at)
    .reduce<number[]>((found, { ip }) => withProvider(found, providerOf(ip, null)), [])
