// The data section of an MMDB file: values decoded from bytes that may be damaged, within bounds of depth and size.

import { BadSource } from './sources.ts'

export type MmdbValue = string | number | boolean | null | readonly MmdbValue[] | { readonly [key: string]: MmdbValue }

const DEPTH_MAX = 16
const ITEMS_MAX = 4_096

const damaged = (): never => {
  throw new BadSource('the MMDB file is damaged')
}

/** Reads the value at an offset of the section; throws BadSource when it leaves the section. */
export function mmdbReader(section: Buffer): (offset: number) => MmdbValue {
  let at = 0

  const byte = (): number => section[at++] ?? damaged()

  function whole(length: number): number {
    let value = 0
    for (let i = 0; i < length; i++) value = value * 256 + byte()
    return value
  }

  function sizeOf(control: number): number {
    const size = control & 31
    if (size < 29) return size
    if (size === 29) return 29 + byte()
    return size === 30 ? 285 + whole(2) : 65_821 + whole(3)
  }

  function pointer(control: number): number {
    const base = control & 7
    switch ((control >> 3) & 3) {
      case 0:
        return base * 256 + byte()
      case 1:
        return base * 65_536 + whole(2) + 2_048
      case 2:
        return base * 16_777_216 + whole(3) + 526_336
      default:
        return whole(4)
    }
  }

  function items(control: number): number {
    const count = sizeOf(control)
    return count <= ITEMS_MAX ? count : damaged()
  }

  function take(length: number): number {
    const start = at
    at += length
    return at <= section.length ? start : damaged()
  }

  function value(depth: number): MmdbValue {
    if (depth > DEPTH_MAX) return damaged()
    const control = byte()
    let type = control >> 5
    if (type === 1) {
      const target = pointer(control)
      const back = at
      at = target
      const found = value(depth + 1)
      at = back
      return found
    }
    if (type === 0) type = 7 + byte()
    switch (type) {
      case 2: {
        const length = sizeOf(control)
        const start = take(length)
        return section.toString('utf8', start, start + length)
      }
      case 3:
        return section.readDoubleBE(take(8))
      case 15:
        return section.readFloatBE(take(4))
      case 8:
        return whole(sizeOf(control)) | 0
      case 5:
      case 6:
      case 9:
      case 10:
        return whole(sizeOf(control))
      case 14:
        return sizeOf(control) !== 0
      case 4:
        take(sizeOf(control))
        return null
      case 7: {
        const map: Record<string, MmdbValue> = Object.create(null)
        for (let left = items(control); left > 0; left--) {
          const key = value(depth + 1)
          map[typeof key === 'string' ? key : damaged()] = value(depth + 1)
        }
        return map
      }
      case 11: {
        const list: MmdbValue[] = []
        for (let left = items(control); left > 0; left--) list.push(value(depth + 1))
        return list
      }
      default:
        return damaged()
    }
  }

  return (offset) => {
    if (offset < 0 || offset >= section.length) return damaged()
    at = offset
    return value(0)
  }
}
