// What identity makes of an address: the line and the network it belongs to, as texts and as the hashes that records and keys have of
// them. Each event asks for them several times, and most addresses come again: the latest are remembered.

import { hash32, hash53 } from '../domain/ids.ts'
import { lineOf, maskIp, regionOf, subnetOf } from '../domain/ip.ts'

export interface AddressParts {
  readonly ip: string
  readonly line: string
  readonly subnet: string
  readonly lineHash: number
  readonly subnetHash: number
  /** 32 bits for what stands for the provider where nobody says whose the address is. */
  readonly regionHash: number
  /** As records of visitors keep it. */
  readonly masked: string
}

/** A power of two. */
const REMEMBERED_MAX = 2_048
const remembered: (AddressParts | undefined)[] = new Array(REMEMBERED_MAX).fill(undefined)

/** `ip` is canonical. */
export function partsOf(ip: string): AddressParts {
  const place = hash32(ip) & (REMEMBERED_MAX - 1)
  const known = remembered[place]
  if (known !== undefined && known.ip === ip) return known
  const [line, subnet] = [lineOf(ip), subnetOf(ip)]
  const parts = {
    ip,
    line,
    subnet,
    lineHash: hash53(line),
    subnetHash: hash53(subnet),
    regionHash: hash32(regionOf(ip)),
    masked: maskIp(ip),
  }
  remembered[place] = parts
  return parts
}
