// Databases in the MMDB format, walked once from end to end: every network with what is said of it. Made for files of
// DB-IP, ip-location-db, IPinfo and MaxMind, whose records name things differently.

import type { DatabaseKind } from './columns.ts'
import { geoText, networkText } from './facts.ts'
import { type MmdbValue, mmdbReader } from './mmdb-data.ts'
import type { RangesBuilder } from './ranges.ts'
import { BadSource } from './sources.ts'

const MARKER = Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1')
const METADATA_BYTES_MAX = 131_072
const DATA_GAP_BYTES = 16
/** A damaged tree can send the walk in circles. */
const VISITS_MAX = 134_217_728

type Fields = { readonly [key: string]: MmdbValue }

const markerAt = (bytes: Buffer): number => {
  const from = Math.max(0, bytes.length - METADATA_BYTES_MAX)
  const at = bytes.subarray(from).lastIndexOf(MARKER)
  return at < 0 ? -1 : from + at
}

export const isMmdb = (bytes: Buffer): boolean => markerAt(bytes) >= 0

const fieldsOf = (value: MmdbValue | undefined): Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const english = (value: MmdbValue | undefined): MmdbValue | undefined =>
  typeof value === 'string' ? value : fieldsOf(fieldsOf(value).names).en

function textOf(record: Fields, kind: DatabaseKind): string | null {
  if (kind === 'asn') {
    return networkText(
      record.autonomous_system_number ?? record.asn,
      record.autonomous_system_organization ?? record.as_name ?? record.name,
    )
  }
  const { subdivisions, location } = record
  const at = fieldsOf(location)
  const flatCountry = record.country_code ?? (typeof record.country === 'string' ? record.country : undefined)
  return geoText({
    country: flatCountry ?? fieldsOf(record.country).iso_code,
    region: record.state1 ?? record.region ?? english(Array.isArray(subdivisions) ? subdivisions[0] : undefined),
    city: english(record.city),
    lat: record.latitude ?? at.latitude,
    lng: record.longitude ?? at.longitude,
    timezone: record.timezone ?? at.time_zone,
  })
}

interface Tree {
  readonly nodes: number
  readonly isV6: boolean
  /** The record on one side (0 or 1) of a node. */
  readonly record: (node: number, side: number) => number
  readonly bytes: number
  /** When the file was made, milliseconds. */
  readonly builtAt: number | null
}

function openTree(bytes: Buffer, marker: number): Tree {
  const metadata = fieldsOf(mmdbReader(bytes.subarray(marker + MARKER.length))(0))
  const { node_count: nodes, record_size: bits, ip_version: version, build_epoch: epoch } = metadata
  if (typeof nodes !== 'number' || nodes < 1 || (version !== 4 && version !== 6)) {
    throw new BadSource('the MMDB file says nothing of its tree')
  }
  const read: Record<string, (at: number, side: number) => number> = {
    24: (at, side) => bytes.readUIntBE(at + 3 * side, 3),
    28: (at, side) => {
      const middle = bytes[at + 3] as number
      return side === 0
        ? (middle >> 4) * 0x1_000000 + bytes.readUIntBE(at, 3)
        : (middle & 15) * 0x1_000000 + bytes.readUIntBE(at + 4, 3)
    },
    32: (at, side) => bytes.readUInt32BE(at + 4 * side),
  }
  const readAt = read[String(bits)]
  if (readAt === undefined) throw new BadSource(`records of ${bits} bits are not known`)
  const nodeBytes = Number(bits) / 4
  const size = nodes * nodeBytes
  if (size + DATA_GAP_BYTES > marker) throw new BadSource('the MMDB file is cut short')
  return {
    nodes,
    isV6: version === 6,
    record: (node, side) => readAt(node * nodeBytes, side),
    bytes: size,
    builtAt: typeof epoch === 'number' && epoch > 0 ? epoch * 1_000 : null,
  }
}

/** Where the tree of IPv6 keeps that of IPv4 (::/96); other places lead there as well and are passed over. */
function v4RootOf({ isV6, nodes, record }: Tree): number {
  let node = 0
  for (let depth = 0; isV6 && depth < 96 && node < nodes; depth++) node = record(node, 0)
  return node
}

/** Adds every network of the file; returns when the file says it was made. Throws BadSource for what it cannot read. */
export function addMmdb(ranges: RangesBuilder, bytes: Buffer, kind: DatabaseKind): number | null {
  const marker = markerAt(bytes)
  if (marker < 0) throw new BadSource('this is no MMDB file')
  const tree = openTree(bytes, marker)
  const { nodes } = tree
  const readData = mmdbReader(bytes.subarray(tree.bytes + DATA_GAP_BYTES, marker))
  const values = new Map<number, number>()

  function valueAt(record: number): number {
    const known = values.get(record)
    if (known !== undefined) return known
    const text = textOf(fieldsOf(readData(record - nodes - DATA_GAP_BYTES)), kind)
    const value = text === null ? 0 : ranges.intern(text)
    values.set(record, value)
    return value
  }

  let visits = 0
  /** `prefix` has one word for IPv4, four for IPv6. */
  function walk(
    root: number,
    skipped: number,
    bits: number,
    add: (prefix: number[], depth: number, value: number) => void,
  ) {
    const prefix = new Array<number>(bits / 32).fill(0)
    function visit(node: number, depth: number): void {
      if (node === nodes) return
      if (node > nodes) {
        const value = valueAt(node)
        if (value !== 0) add(prefix, depth, value)
        return
      }
      if (depth === bits || ++visits > VISITS_MAX) throw new BadSource('the tree of the MMDB file has no end')
      if (node === skipped && depth > 0) return
      const [word, bit] = [depth >> 5, 2 ** (31 - (depth & 31))]
      visit(tree.record(node, 0), depth + 1)
      prefix[word] = (prefix[word] as number) + bit
      visit(tree.record(node, 1), depth + 1)
      prefix[word] = (prefix[word] as number) - bit
    }
    visit(root, 0)
  }

  const v4Root = v4RootOf(tree)
  walk(v4Root, -1, 32, ([first], depth, value) => {
    ranges.addV4(first as number, (first as number) + 2 ** (32 - depth) - 1, value)
  })
  if (tree.isV6) {
    walk(0, v4Root < nodes ? v4Root : -1, 128, (prefix, depth, value) => {
      // A file of IPv4 alone may stand in a tree of IPv6 whose upper part says nothing.
      if (v4Root >= nodes && depth <= 96 && prefix.every((word) => word === 0)) return
      const last = prefix.map((word, i) => word + 2 ** (32 - Math.min(32, Math.max(0, depth - 32 * i))) - 1)
      ranges.addV6(prefix, last, value)
    })
  }
  return tree.builtAt
}
