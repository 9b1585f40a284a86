// Small lists and databases made up for tests, as files of the formats that are published.

import { type CompileInput, compileTable } from '../../src/ipintel/compile.ts'
import type { SourceName } from '../../src/ipintel/sources.ts'
import { type AddressTable, openTable } from '../../src/ipintel/table.ts'

export const CHANGED_AT = Date.UTC(2026, 10, 20)

export function input(content: string | Buffer, part: Partial<CompileInput> = {}): CompileInput {
  const bytes = Buffer.from(content)
  return {
    name: null,
    location: 'made up',
    bytes: bytes.length,
    changedAt: CHANGED_AT,
    confirmedAt: null,
    etag: null,
    digest: null,
    content: bytes,
    ...part,
  }
}

export const imageOf = (source: SourceName, ...inputs: readonly (string | Buffer | CompileInput)[]) =>
  compileTable(
    source,
    inputs.map((one) => (typeof one === 'string' || Buffer.isBuffer(one) ? input(one) : one)),
    { builtAt: CHANGED_AT, bytesMax: 1e7 },
  )

export const tableOf = (source: SourceName, ...inputs: readonly (string | Buffer | CompileInput)[]): AddressTable =>
  openTable(imageOf(source, ...inputs))

type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value }

function encode(value: Value): Buffer {
  const head = (type: number, size: number, extended = false): Buffer => {
    const small = size < 29 ? size : size < 285 ? 29 : 30
    const rest = size < 29 ? [] : size < 285 ? [size - 29] : [(size - 285) >> 8, (size - 285) & 255]
    return Buffer.from([(extended ? 0 : type << 5) | small, ...(extended ? [type - 7] : []), ...rest])
  }
  if (typeof value === 'string') {
    const text = Buffer.from(value)
    return Buffer.concat([head(2, text.length), text])
  }
  if (typeof value === 'boolean') return head(14, value ? 1 : 0, true)
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(8)
    if (Number.isInteger(value) && value >= 0) {
      if (value > 0xffff_ffff) {
        bytes.writeBigUInt64BE(BigInt(value))
        return Buffer.concat([head(9, 8, true), bytes])
      }
      bytes.writeUInt32BE(value)
      return Buffer.concat([head(6, 4), bytes.subarray(0, 4)])
    }
    bytes.writeDoubleBE(value)
    return Buffer.concat([head(3, 8), bytes])
  }
  if (Array.isArray(value)) return Buffer.concat([head(11, value.length, true), ...value.map(encode)])
  const members = Object.entries(value)
  return Buffer.concat([head(7, members.length), ...members.flatMap(([key, item]) => [encode(key), encode(item)])])
}

/** A network as bits from the top (32 or 128 of them at most) and what is said of it. */
export type Entry = readonly [prefix: string, record: Value]

interface Node {
  sides: [Node | number, Node | number]
}

export interface MmdbOptions {
  readonly bits?: 24 | 28 | 32
  /** Milliseconds. */
  readonly builtAt?: number
  /** Bits of addresses; in a tree of 128 those of IPv4 lie below 96 zeros. */
  readonly version?: 4 | 6
}

/** An MMDB file. Prefixes must not overlap. `alias`: another prefix that leads to where IPv4 is kept. */
export function mmdb(entries: readonly Entry[], options: MmdbOptions = {}, alias?: string): Buffer {
  const { bits = 24, builtAt = CHANGED_AT, version = 6 } = options
  const data: Buffer[] = []
  const offsets = new Map<string, number>()
  let dataBytes = 0
  const EMPTY = -1
  const root: Node = { sides: [EMPTY, EMPTY] }

  function offsetOf(record: Value): number {
    const key = JSON.stringify(record)
    const known = offsets.get(key)
    if (known !== undefined) return known
    const bytes = encode(record)
    data.push(bytes)
    offsets.set(key, dataBytes)
    dataBytes += bytes.length
    return dataBytes - bytes.length
  }

  function place(prefix: string, what: Node | number): void {
    let node = root
    for (let i = 0; i < prefix.length - 1; i++) {
      const side = Number(prefix[i]) as 0 | 1
      if (typeof node.sides[side] === 'number') node.sides[side] = { sides: [EMPTY, EMPTY] }
      node = node.sides[side] as Node
    }
    node.sides[Number(prefix.at(-1)) as 0 | 1] = what
  }
  // Offsets are told from "nothing" by their sign.
  for (const [prefix, record] of entries) place(prefix, offsetOf(record))
  if (alias !== undefined) {
    let v4 = root
    for (let i = 0; i < 96; i++) v4 = v4.sides[0] as Node
    place(alias, v4)
  }

  const nodes: Node[] = [root]
  const numbers = new Map<Node, number>([[root, 0]])
  for (const node of nodes) {
    for (const side of node.sides) {
      if (typeof side === 'number' || numbers.has(side)) continue
      numbers.set(side, nodes.length)
      nodes.push(side)
    }
  }
  const recordOf = (side: Node | number): number => {
    if (typeof side !== 'number') return numbers.get(side) as number
    return side === EMPTY ? nodes.length : nodes.length + 16 + side
  }
  const tree = Buffer.concat(
    nodes.map(({ sides }) => {
      const [left, right] = sides.map(recordOf) as [number, number]
      const bytes = Buffer.alloc(bits / 4)
      if (bits === 32) {
        bytes.writeUInt32BE(left)
        bytes.writeUInt32BE(right, 4)
      } else {
        bytes.writeUIntBE(left & 0xff_ffff, 0, 3)
        bytes.writeUIntBE(right & 0xff_ffff, bits === 28 ? 4 : 3, 3)
        if (bits === 28) bytes[3] = ((left >>> 24) << 4) | (right >>> 24)
      }
      return bytes
    }),
  )
  const metadata = encode({
    node_count: nodes.length,
    record_size: bits,
    ip_version: version,
    build_epoch: Math.floor(builtAt / 1_000),
    database_type: 'Made-Up',
  })
  return Buffer.concat([tree, Buffer.alloc(16), ...data, Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1'), metadata])
}
