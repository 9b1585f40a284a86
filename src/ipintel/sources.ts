// The sources of IP intelligence: their names, what each may be made of, and how an operator says where one is.

export const IP_SOURCES = ['geo', 'asn', 'datacenter', 'vpn', 'relay', 'tor', 'badAsn', 'abuse'] as const
export type SourceName = (typeof IP_SOURCES)[number]

/** Data that cannot be used: the sentence says why. Whatever was there before stays in use. */
export class BadSource extends Error {
  override readonly name = 'BadSource'
}

/** One place a source is read from. */
export interface SourcePlace {
  /** What the operator calls it: provider of a VPN list, name of an abuse list. */
  readonly name: string | null
  /** An absolute or relative path, or a URL. */
  readonly location: string
}

/** Where a source comes from: files are read in place by servers, URLs are fetched by `fingerpost data update`. */
export interface SourcePlaces {
  readonly source: SourceName
  readonly files: readonly SourcePlace[]
  readonly urls: readonly SourcePlace[]
  /** Fewer entries are another file, or part of one; nothing is known of it where absent. */
  readonly entriesMin?: number
  /** Size beyond which a file is refused, fetched or unpacked, where that is less than `ip.downloadBytesMax`. */
  readonly bytesMax?: number
  /** A source without whose data this one would say what is not so. */
  readonly behind?: SourceName
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,63}$/
const LOOPBACK = new Set(['127.0.0.1', '[::1]', 'localhost'])

/** `Mullvad=/etc/lists/mullvad.txt`, or the place alone. */
export function parsePlace(text: string): SourcePlace {
  const at = text.indexOf('=')
  const name = text.slice(0, Math.max(0, at)).trim()
  return NAME.test(name) ? { name, location: text.slice(at + 1).trim() } : { name: null, location: text.trim() }
}

/** HTTPS, or plain HTTP on this machine. */
export function isFetchable(location: string): boolean {
  if (!URL.canParse(location)) return false
  const { protocol, hostname } = new URL(location)
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname))
}

type Listed = Readonly<Record<`ip.${SourceName}Url` | `ip.${SourceName}File`, readonly string[]>>

/** The places of every source, from the settings. */
export function sourcePlaces(settings: Listed): SourcePlaces[] {
  return IP_SOURCES.map((source) => ({
    source,
    files: settings[`ip.${source}File`].map(parsePlace),
    urls: settings[`ip.${source}Url`].map(parsePlace),
  }))
}

/** What is wrong with the places of a source, or null. */
export function placesProblem({ source, files, urls }: SourcePlaces): string | null {
  if (files.length > 0 && urls.length > 0) return `ip.${source}File and ip.${source}Url: set one of them`
  if (files.some(({ location }) => location === '')) return `ip.${source}File takes paths, as PATH or NAME=PATH`
  const wrong = urls.find(({ location }) => !isFetchable(location))
  return wrong === undefined ? null : `ip.${source}Url takes https addresses, as URL or NAME=URL`
}
