// Free data about addresses by name: who publishes it, under which licence, what it tells, and what a file of it holds at least.

import type { SourcePlaces } from './sources.ts'

export interface FreeData {
  readonly name: string
  /** What an event learns from it. */
  readonly tells: string
  readonly licence: string
  /** Where the publisher says so. */
  readonly terms: string
  /** What whoever uses it has to do. */
  readonly asks: string
  readonly places: readonly SourcePlaces[]
}

const from = (
  source: SourcePlaces['source'],
  urls: readonly string[],
  limits: Pick<SourcePlaces, 'entriesMin' | 'bytesMax' | 'behind'>,
): SourcePlaces => ({ source, files: [], urls: urls.map((location) => ({ name: null, location })), ...limits })

const MB = 1_000_000
const IP_TO_ASN = 'https://iptoasn.com/data/ip2asn-combined.tsv.gz'
const X4B = 'https://raw.githubusercontent.com/X4BNet/lists_vpn/main/output'

/** In the order in which it is fetched. */
export const FREE_DATA: readonly FreeData[] = [
  {
    name: 'IPtoASN',
    tells: 'country and network (AS number and name)',
    licence: 'Public Domain Dedication and License 1.0 (PDDL)',
    terms: 'https://iptoasn.com/',
    asks: 'nothing',
    places: [
      from('geo', [IP_TO_ASN], { entriesMin: 100_000, bytesMax: 256 * MB }),
      from('asn', [IP_TO_ASN], { entriesMin: 100_000, bytesMax: 256 * MB }),
    ],
  },
  {
    name: 'The Tor Project, exit addresses',
    tells: 'Tor',
    licence: 'CC0 1.0, as all data of Tor Metrics',
    terms: 'https://metrics.torproject.org/',
    asks: 'nothing',
    places: [from('tor', ['https://check.torproject.org/torbulkexitlist'], { entriesMin: 100, bytesMax: 4 * MB })],
  },
  {
    name: 'Apple, exits of iCloud Private Relay',
    tells: 'iCloud Private Relay, which is no VPN',
    licence: 'none is stated: Apple publishes it for operators of web servers',
    terms: 'https://developer.apple.com/support/prepare-your-network-for-icloud-private-relay/',
    asks: 'not to pass it on as your own',
    places: [
      from('relay', ['https://mask-api.icloud.com/egress-ip-ranges.csv'], { entriesMin: 10_000, bytesMax: 64 * MB }),
    ],
  },
  {
    name: 'X4BNet/lists_vpn',
    tells: 'VPNs and data centres (proxies)',
    licence: 'MIT, Copyright (c) 2024 X4B (Mathew Heard)',
    terms: 'https://github.com/X4BNet/lists_vpn#license',
    asks: 'to keep its notice with copies of the lists',
    places: [
      from('datacenter', [`${X4B}/datacenter/ipv4.txt`, `${X4B}/datacenter/ipv6.txt`], {
        entriesMin: 5_000,
        bytesMax: 16 * MB,
      }),
      // It holds the exits of the relay too, which would make a VPN of every iPhone whose owner pays for iCloud.
      from('vpn', [`${X4B}/vpn/ipv4.txt`, `${X4B}/vpn/ipv6.txt`], {
        entriesMin: 1_000,
        bytesMax: 16 * MB,
        behind: 'relay',
      }),
    ],
  },
]

/** The places of every source: those of the settings, and of `accepted` what the settings leave open. */
export function withFreeData(places: readonly SourcePlaces[], accepted: readonly FreeData[]): SourcePlaces[] {
  const set = places.filter(({ files, urls }) => files.length + urls.length > 0)
  const taken = new Set(set.map(({ source }) => source))
  return [...set, ...accepted.flatMap((data) => data.places).filter(({ source }) => !taken.has(source))]
}
