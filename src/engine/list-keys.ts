// How entries of lists become digests, the same for whoever stores them and whoever asks. A range of addresses is the digest
// of its network and its length, and a single address is the longest range there is.

import { canonicalIp, parseCidr } from '../domain/ip.ts'
import type { ListType } from '../domain/list.ts'
import { createDigest } from '../lib/digest.ts'

/** Lengths of IPv6 networks are told apart from those of IPv4 by this. */
const V6_LENGTHS = 64
/** No network: the entry is a text. */
export const NO_LENGTH = -1

export interface ListKeys {
  /** The digest of the last call. */
  readonly words: Int32Array
  /** Takes in an entry as it is stored; its network's length, or NO_LENGTH. */
  entry(type: ListType, value: string): number
  text(text: string): void
  /** Takes in an address that networks are then asked for; false when the text is not the canonical spelling of one. */
  address(text: string): boolean
  /** The network of `length` around the address; false when the address is of the other version. */
  network(length: number): boolean
}

export function createListKeys(key: readonly number[]): ListKeys {
  const digest = createDigest(key)
  const groups = new Int32Array(4)
  let isV6 = false

  function network(length: number): boolean {
    if (isV6 !== length >= V6_LENGTHS) return false
    const bits = isV6 ? length - V6_LENGTHS : length
    digest.numbers(
      (groups[0] as number) & maskOf(bits),
      (groups[1] as number) & maskOf(bits - 32),
      (groups[2] as number) & maskOf(bits - 64),
      (groups[3] as number) & maskOf(bits - 96),
      length,
    )
    return true
  }

  function setBytes(bytes: readonly number[]): void {
    isV6 = bytes.length === 16
    groups.fill(0)
    for (const [i, byte] of bytes.entries()) groups[i >> 2] = ((groups[i >> 2] as number) << 8) | byte
  }

  return {
    words: digest.words,
    entry(type, value) {
      if (type !== 'ip') {
        digest.text(value)
        return NO_LENGTH
      }
      const cidr = parseCidr(value)
      if (cidr === null) throw new RangeError('an entry of a list of addresses is no range')
      setBytes(cidr.bytes)
      const length = cidr.v6 ? V6_LENGTHS + cidr.bits : cidr.bits
      network(length)
      return length
    },
    text: digest.text,
    address(text) {
      const v4 = parseV4(text)
      if (v4 !== null) {
        isV6 = false
        groups[0] = v4
        groups[1] = 0
        groups[2] = 0
        groups[3] = 0
        return true
      }
      // What is compared is text: an address in another spelling is another text.
      if (!text.includes(':') || canonicalIp(text) !== text) return false
      const cidr = parseCidr(text)
      if (cidr === null) return false
      setBytes(cidr.bytes)
      return true
    },
    network,
  }
}

const maskOf = (bits: number): number => (bits <= 0 ? 0 : bits >= 32 ? -1 : -1 << (32 - bits))

/** As a signed number of 32 bits; null for anything but four numbers without leading zeros. */
function parseV4(text: string): number | null {
  const { length } = text
  if (length > 15 || length < 7) return null
  let address = 0
  let part = -1
  let dots = 0
  for (let i = 0; i < length; i++) {
    const c = text.charCodeAt(i)
    if (c === 46) {
      if (part < 0 || ++dots > 3) return null
      address = (address << 8) | part
      part = -1
    } else {
      if (c < 48 || c > 57 || part === 0) return null
      part = (part < 0 ? 0 : part * 10) + c - 48
      if (part > 255) return null
    }
  }
  return dots === 3 && part >= 0 ? (address << 8) | part : null
}
