// What is known of one address, looked up in all tables at once. Lives in the threads that decide.

import { ipParts } from '../domain/ip.ts'
import { type Geo, type Network, readGeo, readNetwork } from './facts.ts'
import type { SourceName } from './sources.ts'
import { spanWords } from './spans.ts'
import { type AddressTable, openTable } from './table.ts'

export type VpnMethod = 'vpn_range' | 'vpn_asn'
export type HostingMethod = 'datacenter_range' | 'datacenter_asn' | 'bad_asn'

/** When the data of each source was made: null when nobody says, absent when there is no such source. */
export type DataTimes = Readonly<Partial<Record<SourceName, number | null>>>

export interface AddressFacts {
  readonly geo: Geo | null
  readonly network: Network | null
  /** Why it counts as an address of a data centre. */
  readonly hosting: HostingMethod | null
  readonly vpn: { readonly provider: string | null; readonly method: VpnMethod } | null
  /** The relay whose exit it is, and whether the operator takes it for a VPN. */
  readonly relay: { readonly name: string; readonly isVpn: boolean } | null
  readonly tor: boolean
  /** Names of the lists that hold the address against its user. */
  readonly blocklists: readonly string[]
  /** Of no public network: lists say nothing of it. */
  readonly isPrivate: boolean
  readonly dataAt: DataTimes
}

/** All that lookups need, as it crosses to a thread by reference. */
export interface IpData {
  readonly images: readonly SharedArrayBuffer[]
  readonly relayIsVpn: boolean
}

export interface Addresses {
  /** Replaces all that there was. */
  take(data: IpData): void
  /** `ip` is canonical. */
  lookup(ip: string): AddressFacts
}

const RELAY = 'iCloud Private Relay'
const DECODED_MAX = 8_192
/** Addresses whose facts are remembered. */
const KNOWN_MAX = 8_192
const NONE: readonly string[] = []

/** An address of which nothing is known, because there is no data at all. */
export const NO_FACTS: AddressFacts = {
  geo: null,
  network: null,
  hosting: null,
  vpn: null,
  relay: null,
  tor: false,
  blocklists: NONE,
  isPrivate: false,
  dataAt: {},
}

const within = (address: number, prefix: number, bits: number): boolean =>
  address >>> (32 - bits) === prefix >>> (32 - bits)
const PRIVATE_V4: readonly (readonly [prefix: number, bits: number])[] = [
  [0x00000000, 8],
  [0x0a000000, 8],
  [0x64400000, 10],
  [0x7f000000, 8],
  [0xa9fe0000, 16],
  [0xac100000, 12],
  [0xc0a80000, 16],
]

const isSelf = ([a, b, c, d = 0]: readonly number[]): boolean => a === 0 && b === 0 && c === 0 && d < 2

function isPrivate(address: readonly number[]): boolean {
  const [high = 0, ...rest] = address
  if (rest.length === 0) return PRIVATE_V4.some(([prefix, bits]) => within(high, prefix, bits))
  // Unique local, link local, and the two addresses of the machine itself.
  return within(high, 0xfc000000, 7) || within(high, 0xfe800000, 10) || isSelf(address)
}

/** Texts of a table decoded once, as most events come from few places. */
function createReader<T>(table: AddressTable, read: (text: string) => T): (value: number) => T | null {
  const decoded = new Map<number, T>()
  return (value) => {
    if (value === 0) return null
    const known = decoded.get(value)
    if (known !== undefined) return known
    const fresh = read(table.text(value))
    if (decoded.size >= DECODED_MAX) decoded.clear()
    decoded.set(value, fresh)
    return fresh
  }
}

interface Source<T> {
  readonly address: (address: readonly number[]) => T | null
  readonly asn: (asn: number) => T | null
}

const NOWHERE = { address: () => null, asn: () => null }

function openSource<T>(table: AddressTable | undefined, read: (text: string) => T): Source<T> {
  if (table === undefined) return NOWHERE
  const decode = createReader(table, read)
  return {
    address: (address) => decode(address.length === 1 ? table.v4(address[0] as number) : table.v6(address)),
    asn: (asn) => decode(table.asn(asn)),
  }
}

const asText = (text: string): string => text

function openSources(tables: ReadonlyMap<SourceName, AddressTable>) {
  const named = (source: SourceName) => openSource(tables.get(source), asText)
  return {
    geo: openSource(tables.get('geo'), readGeo),
    asn: openSource(tables.get('asn'), readNetwork),
    datacenter: named('datacenter'),
    vpn: named('vpn'),
    relay: named('relay'),
    tor: named('tor'),
    badAsn: named('badAsn'),
    abuse: named('abuse'),
    dataAt: Object.fromEntries([...tables].map(([source, { meta }]) => [source, meta.dataAt])) as DataTimes,
  }
}

export function createAddresses(): Addresses {
  let sources: ReturnType<typeof openSources> | null = null
  let relayIsVpn = false

  /** By address: most come again, and each needs a search in every table. */
  const known = new Map<string, AddressFacts>()

  function lookup(ip: string): AddressFacts {
    const facts = known.get(ip)
    if (facts !== undefined) return facts
    const found = search(ip)
    if (known.size >= KNOWN_MAX) known.clear()
    known.set(ip, found)
    return found
  }

  function search(ip: string): AddressFacts {
    const parts = ipParts(ip)
    if (parts === null) return NO_FACTS
    const address = spanWords(parts)
    const privately = isPrivate(address)
    if (sources === null) return privately ? { ...NO_FACTS, isPrivate: true } : NO_FACTS
    const { geo, asn, datacenter, vpn, relay, tor, badAsn, abuse, dataAt } = sources
    const network = asn.address(address)
    const byAsn = <T>(source: Source<T>): T | null => (network === null ? null : source.asn(network.asn))

    const isBadAsn = byAsn(badAsn) !== null || badAsn.address(address) !== null
    let hosting: HostingMethod | null = null
    if (datacenter.address(address) !== null) hosting = 'datacenter_range'
    else if (byAsn(datacenter) !== null) hosting = 'datacenter_asn'
    else if (isBadAsn) hosting = 'bad_asn'

    const range = vpn.address(address)
    const provider = range ?? byAsn(vpn)
    const isTor = tor.address(address) !== null
    const abused = abuse.address(address) ?? byAsn(abuse)
    const relayed = relay.address(address)
    return {
      geo: geo.address(address),
      network,
      hosting,
      vpn: provider === null ? null : { provider: provider || null, method: range === null ? 'vpn_asn' : 'vpn_range' },
      relay: relayed === null ? null : { name: relayed || RELAY, isVpn: relayIsVpn },
      tor: isTor,
      blocklists: isTor || isBadAsn || abused !== null ? listsOf(isTor, isBadAsn, abused) : NONE,
      isPrivate: privately,
      dataAt,
    }
  }

  return {
    take(data) {
      const tables = data.images.map(openTable)
      relayIsVpn = data.relayIsVpn
      known.clear()
      sources = tables.length === 0 ? null : openSources(new Map(tables.map((table) => [table.meta.source, table])))
    },
    lookup,
  }
}

function listsOf(isTor: boolean, isBadAsn: boolean, abused: string | null): string[] {
  return [...(isTor ? ['tor'] : []), ...(isBadAsn ? ['bad_asn'] : []), ...(abused === null ? [] : [abused])]
}
