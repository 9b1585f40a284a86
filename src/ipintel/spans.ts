// One range as a line spells it (a CIDR range, an address, or both ends of a range), as the numbers that are searched.

import { ipParts, parseCidr } from '../domain/ip.ts'
import type { RangesBuilder } from './ranges.ts'

/** Both ends, included: one number each for IPv4, four for IPv6. */
export interface Span {
  readonly first: readonly number[]
  readonly last: readonly number[]
}

const V4_MAX = 0xffff_ffff

/** Four bytes as one number, or eight groups as four numbers of 32 bits. */
export function spanWords(parts: readonly number[]): number[] {
  const step = parts.length === 4 ? 4 : 2
  const factor = parts.length === 4 ? 256 : 65_536
  const out: number[] = []
  for (let i = 0; i < parts.length; i += step) {
    let word = 0
    for (let k = i; k < i + step; k++) word = word * factor + (parts[k] as number)
    out.push(word)
  }
  return out
}

/** `203.0.113.0/24`, `2001:db8::/32` or one address; null for anything else. Host bits are ignored. */
export function cidrSpan(text: string): (Span & { readonly bits: number }) | null {
  const cidr = parseCidr(text)
  if (cidr === null) return null
  const { bytes, bits } = cidr
  const first: number[] = []
  const last: number[] = []
  for (let i = 0; i < bytes.length; i += 4) {
    const word =
      (bytes[i] as number) * 0x1_000000 +
      (bytes[i + 1] as number) * 0x1_0000 +
      (bytes[i + 2] as number) * 0x100 +
      (bytes[i + 3] as number)
    const fixed = Math.min(32, Math.max(0, bits - i * 8))
    const size = 2 ** (32 - fixed)
    const start = word - (word % size)
    first.push(start)
    last.push(start + size - 1)
  }
  return { first, last, bits }
}

/** One end as it is written: an address, or its number in decimal digits. */
function endOf(text: string): number[] | null {
  const parts = ipParts(text)
  if (parts !== null) return spanWords(parts)
  if (!/^\d{1,39}$/.test(text)) return null
  if (text.length < 10 || Number(text) <= V4_MAX) return [Number(text)]
  const number = BigInt(text)
  if (number >> 128n !== 0n) return null
  return [96n, 64n, 32n, 0n].map((shift) => Number((number >> shift) & 0xffff_ffffn))
}

/** Both ends of a range; null when one is no address, they are of two families, or in reverse. */
export function endsSpan(from: string, to: string): Span | null {
  let [first, last] = [endOf(from), endOf(to)]
  if (first === null || last === null) return null
  // Numbers alone do not tell the low addresses of IPv6 from those of IPv4; the other end of the range does.
  if (first.length === 1 && last.length === 4) first = [0, 0, 0, first[0] as number]
  if (first.length === 4 && last.length === 1) last = [0, 0, 0, last[0] as number]
  for (let i = 0; i < first.length; i++) {
    if (first[i] === last[i]) continue
    return (first[i] as number) < (last[i] as number) ? { first, last } : null
  }
  return { first, last }
}

export function addSpan(ranges: RangesBuilder, { first, last }: Span, value: number): void {
  if (first.length === 1) ranges.addV4(first[0] as number, last[0] as number, value)
  else ranges.addV6(first, last, value)
}
