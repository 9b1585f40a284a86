// IP addresses as text: one canonical form inside, the masked form outside, the network an address belongs to.
// Own parsing, since the general library takes 20 times as long for IPv6 and this runs for every request.

const IP_CHARS_MAX = 64

function parseV4(text: string): number[] | null {
  const bytes: number[] = []
  let value = -1
  for (let i = 0; i <= text.length; i++) {
    const c = i === text.length ? 46 : text.charCodeAt(i)
    if (c === 46) {
      if (value < 0 || bytes.length === 4) return null
      bytes.push(value)
      value = -1
    } else {
      // No leading zeros: some readers take them for octal.
      if (c < 48 || c > 57 || value === 0) return null
      value = (value < 0 ? 0 : value * 10) + c - 48
      if (value > 255) return null
    }
  }
  return bytes.length === 4 ? bytes : null
}

/** Pushes the groups of a part of an IPv6 address; a dotted tail counts as two. */
function pushGroups(text: string, groups: number[], tail: boolean): boolean {
  if (text === '') return true
  const parts = text.split(':')
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as string
    if (tail && i === parts.length - 1 && part.includes('.')) {
      const v4 = parseV4(part)
      if (v4 === null) return false
      groups.push((v4[0] as number) * 256 + (v4[1] as number), (v4[2] as number) * 256 + (v4[3] as number))
      continue
    }
    if (part.length < 1 || part.length > 4) return false
    let value = 0
    for (let k = 0; k < part.length; k++) {
      const c = part.charCodeAt(k) | 32
      const digit = c >= 48 && c <= 57 ? c - 48 : c >= 97 && c <= 102 ? c - 87 : -1
      if (digit < 0 || (digit < 10 && part.charCodeAt(k) !== c)) return false
      value = value * 16 + digit
    }
    groups.push(value)
  }
  return true
}

function parseV6(text: string): number[] | null {
  const gap = text.indexOf('::')
  const head: number[] = []
  if (gap < 0) return pushGroups(text, head, true) && head.length === 8 ? head : null
  const tail: number[] = []
  if (!pushGroups(text.slice(0, gap), head, false) || !pushGroups(text.slice(gap + 2), tail, true)) return null
  const missing = 8 - head.length - tail.length
  return missing < 1 ? null : [...head, ...new Array<number>(missing).fill(0), ...tail]
}

/** Four numbers (bytes) for IPv4 and IPv4-mapped addresses, eight (groups) for IPv6, null for anything else. */
function parse(text: string): number[] | null {
  if (text.length > IP_CHARS_MAX) return null
  if (!text.includes(':')) return parseV4(text)
  const zone = text.indexOf('%')
  const groups = parseV6(zone < 0 ? text : text.slice(0, zone))
  if (groups === null) return null
  const mapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0)
  if (!mapped) return groups
  const [high, low] = [groups[6] as number, groups[7] as number]
  return [high >> 8, high & 255, low >> 8, low & 255]
}

/** RFC 5952: lower case, the longest run of at least two zero groups (the first of equals) as `::`. */
function printV6(groups: readonly number[]): string {
  let from = -1
  let length = 1
  for (let i = 0; i < 8; i++) {
    let end = i
    while (end < 8 && groups[end] === 0) end++
    if (end - i > length) {
      from = i
      length = end - i
    }
    i = Math.max(i, end - 1)
  }
  const hex = (list: readonly number[]) => list.map((group) => group.toString(16)).join(':')
  return from < 0 ? hex(groups) : `${hex(groups.slice(0, from))}::${hex(groups.slice(from + length))}`
}

/** The one spelling of an address, IPv4-mapped ones as IPv4, without zone; null when the text is no address. */
export function canonicalIp(text: string): string | null {
  const address = parse(text)
  if (address === null) return null
  return address.length === 4 ? address.join('.') : printV6(address)
}

/** Four bytes for IPv4 and IPv4-mapped addresses, eight groups for IPv6, null for what is no address. */
export const ipParts = (text: string): readonly number[] | null => parse(text)

const isV6 = (canonical: string): boolean => canonical.includes(':')

/** The first groups of a canonical IPv6 address, 16 bits each. */
function groups(canonical: string, count: number): string {
  const gap = canonical.indexOf('::')
  if (gap < 0) return canonical.split(':', count).join(':')
  const head = gap === 0 ? [] : canonical.slice(0, gap).split(':')
  const tail = gap + 2 === canonical.length ? [] : canonical.slice(gap + 2).split(':')
  const all = [...head, ...new Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0'), ...tail]
  return all.slice(0, count).join(':')
}

/** What may be shown of a canonical address: `203.0.113.*`, or `2001:db8:1::*` (the first 48 bits). */
export function maskIp(canonical: string): string {
  if (isV6(canonical)) return `${groups(canonical, 3)}::*`
  return `${canonical.slice(0, canonical.lastIndexOf('.') + 1)}*`
}

let lastAddress = ''
let lastSubnet = '/48'

/** The network a canonical address belongs to: `203.0.113.0/24` or `2001:db8:1::/48`. */
export function subnetOf(canonical: string): string {
  // One event asks several times.
  if (canonical === lastAddress) return lastSubnet
  lastSubnet = isV6(canonical)
    ? `${groups(canonical, 3)}::/48`
    : `${canonical.slice(0, canonical.lastIndexOf('.') + 1)}0/24`
  lastAddress = canonical
  return lastSubnet
}

/**
 * The line an address belongs to: an IPv4 address itself; of IPv6 the /64, since devices change the rest daily (RFC 8981)
 * and a household or a phone has one (RFC 6177, RFC 6459).
 */
export const lineOf = (canonical: string): string => (isV6(canonical) ? `${groups(canonical, 4)}::/64` : canonical)

/** What stands for the provider of a canonical address where nobody says whose it is: its /16, of IPv6 its /32. */
export function regionOf(canonical: string): string {
  if (isV6(canonical)) return `${groups(canonical, 2)}::/32`
  const end = canonical.indexOf('.', canonical.indexOf('.') + 1)
  return `${end < 0 ? canonical : canonical.slice(0, end)}.0.0/16`
}

export interface Cidr {
  readonly v6: boolean
  readonly bytes: readonly number[]
  readonly bits: number
}

const bytesOf = (address: readonly number[]): number[] =>
  address.length === 4 ? [...address] : address.flatMap((group) => [group >> 8, group & 255])

/** Parses `203.0.113.0/24`, `2001:db8::/32` or a single address; null when it is neither. */
export function parseCidr(text: string): Cidr | null {
  const slash = text.indexOf('/')
  const address = parse(slash < 0 ? text : text.slice(0, slash))
  if (address === null) return null
  const bytes = bytesOf(address)
  const v6 = bytes.length === 16
  if (slash < 0) return { v6, bytes, bits: bytes.length * 8 }
  const length = text.slice(slash + 1)
  if (!/^(0|[1-9]\d{0,2})$/.test(length)) return null
  const mapped = !v6 && text.includes(':')
  const bits = Number(length) - (mapped ? 96 : 0)
  return bits >= 0 && bits <= bytes.length * 8 ? { v6, bytes, bits } : null
}

function covers(cidr: Cidr, bytes: readonly number[]): boolean {
  const whole = cidr.bits >> 3
  for (let i = 0; i < whole; i++) if (cidr.bytes[i] !== bytes[i]) return false
  const rest = cidr.bits & 7
  if (rest === 0) return true
  const mask = (0xff << (8 - rest)) & 0xff
  return ((cidr.bytes[whole] as number) & mask) === ((bytes[whole] as number) & mask)
}

let lastAsked = ''
let lastRanges: readonly Cidr[] = []
let wasInside = false

/** Whether a canonical address lies in any of the ranges. Linear: for short lists such as trusted proxies. */
export function inCidrs(canonical: string, cidrs: readonly Cidr[]): boolean {
  if (cidrs.length === 0) return false
  // One request asks several times, and many come by the same proxy.
  if (canonical === lastAsked && cidrs === lastRanges) return wasInside
  wasInside = liesIn(canonical, cidrs)
  lastAsked = canonical
  lastRanges = cidrs
  return wasInside
}

function liesIn(canonical: string, cidrs: readonly Cidr[]): boolean {
  const address = parse(canonical)
  if (address === null) return false
  const bytes = bytesOf(address)
  return cidrs.some((cidr) => cidr.v6 === (bytes.length === 16) && covers(cidr, bytes))
}

/** The address with all bits after the prefix cleared, as `bytes` of a Cidr. */
function clearHost({ bytes, bits }: Cidr): number[] {
  return bytes.map((byte, i) => byte & (0xff << Math.max(0, 8 - Math.max(0, bits - i * 8))))
}

/** The canonical text of a range, its host bits cleared; a range of one address is that address. */
export function formatCidr(cidr: Cidr): string {
  const bytes = clearHost(cidr)
  const groups = (): number[] =>
    Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] as number) << 8) | (bytes[2 * i + 1] as number))
  const text = cidr.v6 ? printV6(groups()) : bytes.join('.')
  return cidr.bits === bytes.length * 8 ? text : `${text}/${cidr.bits}`
}

/** All ranges that hold a canonical address, itself first: the entries a list of ranges may have it under. */
export function rangesAround(canonical: string): string[] {
  const cidr = parseCidr(canonical)
  if (cidr === null) return []
  return Array.from({ length: cidr.bits + 1 }, (_, i) => formatCidr({ ...cidr, bits: cidr.bits - i }))
}
