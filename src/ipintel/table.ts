// A source compiled: one block of shared memory with sorted ranges, texts and a digest over all of it. The same bytes lie in
// a file, cross to threads by reference, and are searched without decoding.

import { createHash } from 'node:crypto'
import type { Ranges, Segments } from './ranges.ts'
import { BadSource, type SourceName } from './sources.ts'

/** What a table was made of. */
export interface TableInput {
  readonly name: string | null
  readonly location: string
  readonly bytes: number
  /** Milliseconds since the epoch: modification of a file, Last-Modified of an answer. null: nobody says. */
  readonly changedAt: number | null
  /** When it was last fetched or found unchanged; null for files. */
  readonly confirmedAt: number | null
  readonly etag: string | null
  /** SHA-256 of what was fetched; null for files. */
  readonly digest: string | null
}

export interface TableMeta {
  readonly source: SourceName
  /** How old the data is at least: when its oldest part was published, milliseconds; null when nobody says. */
  readonly dataAt: number | null
  readonly builtAt: number
  readonly entries: number
  readonly inputs: readonly TableInput[]
}

/** Values are 0 for "nothing is known", else they stand for a text. */
export interface AddressTable {
  readonly image: SharedArrayBuffer
  readonly meta: TableMeta
  v4(address: number): number
  /** Four numbers of 32 bits. */
  v6(address: readonly number[]): number
  asn(asn: number): number
  text(value: number): string
}

const MAGIC = 0x50495046
const FORMAT = 1
const HEADER_WORDS = 24
const DIGEST_AT = 16
const IMAGE_BYTES_MAX = 2_000_000_000
const BOTH_WORDS = 5

/** Over everything but itself. */
const digestOf = (image: Buffer): Buffer =>
  createHash('sha256')
    .update(image.subarray(0, 4 * DIGEST_AT))
    .update(image.subarray(4 * HEADER_WORDS))
    .digest()
const padded = (bytes: number): number => (bytes + 3) & ~3

/** The counts in the header, in its order from word 2 on. */
interface Counts {
  v4: number
  v6: number
  asns: number
  texts: number
  textBytes: number
  metaBytes: number
}
const COUNTS: readonly (keyof Counts)[] = ['v4', 'v6', 'asns', 'texts', 'textBytes', 'metaBytes']

const bytesOf = (c: Counts): number =>
  4 * (HEADER_WORDS + 2 * c.v4 + BOTH_WORDS * c.v6 + 2 * c.asns + c.texts) + padded(c.metaBytes) + c.textBytes

/** The table as one block of shared memory. */
export function sealTable(ranges: Ranges, meta: TableMeta): SharedArrayBuffer {
  const about = Buffer.from(JSON.stringify(meta))
  const { v4, v6, asns, texts } = ranges
  let textBytes = 0
  for (const text of texts) textBytes += Buffer.byteLength(text)
  const counts: Counts = {
    v4: v4.values.length,
    v6: v6.values.length,
    asns: asns.values.length,
    texts: texts.length,
    textBytes,
    metaBytes: about.length,
  }
  const size = bytesOf(counts)
  if (size > IMAGE_BYTES_MAX) throw new BadSource(`the table would take ${Math.ceil(size / 1e6)} MB`)
  const image = new SharedArrayBuffer(size)
  const words = new Uint32Array(image, 0, size >> 2)
  const bytes = Buffer.from(image)
  words[0] = MAGIC
  words[1] = FORMAT
  COUNTS.forEach((name, i) => {
    words[2 + i] = counts[name]
  })
  let at = HEADER_WORDS
  for (const array of [v4.starts, v4.values, v6.starts, v6.values, asns.starts, asns.values]) {
    words.set(array, at)
    at += array.length
  }
  const firstText = 4 * (at + texts.length) + padded(about.length)
  let end = 0
  for (const text of texts) {
    end += bytes.write(text, firstText + end)
    words[at++] = end
  }
  about.copy(bytes, 4 * at)
  digestOf(bytes).copy(bytes, 4 * DIGEST_AT)
  return image
}

function search({ words, starts, values }: Segments, address: readonly number[]): number {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >>> 1
    let difference = 0
    for (let i = 0; i < words && difference === 0; i++) {
      difference = (starts[middle * words + i] as number) - (address[i] as number)
    }
    if (difference <= 0) low = middle + 1
    else high = middle
  }
  return low === 0 ? 0 : (values[low - 1] as number)
}

function searchOne(starts: Uint32Array, values: Uint32Array, address: number): number {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((starts[middle] as number) <= address) low = middle + 1
    else high = middle
  }
  return low === 0 ? 0 : (values[low - 1] as number)
}

/** Throws BadSource when the digest is wrong: a file was cut short or damaged. For bytes that come from a disk. */
export function verifyTable(image: SharedArrayBuffer): void {
  const bytes = Buffer.from(image)
  const isDamaged = () => !digestOf(bytes).equals(bytes.subarray(4 * DIGEST_AT, 4 * HEADER_WORDS))
  if (image.byteLength < 4 * HEADER_WORDS || isDamaged()) throw new BadSource('the table is damaged or cut short')
}

/** Views over the block; nothing is copied. Throws BadSource when its sizes do not add up. */
export function openTable(image: SharedArrayBuffer): AddressTable {
  if (image.byteLength < 4 * HEADER_WORDS) throw new BadSource('the table is cut short')
  const header = new Uint32Array(image, 0, HEADER_WORDS)
  if (header[0] !== MAGIC) throw new BadSource('this is no table of IP data')
  if (header[1] !== FORMAT) throw new BadSource(`the table has format ${header[1]}, this build reads ${FORMAT}`)
  const counts = Object.fromEntries(COUNTS.map((name, i) => [name, header[2 + i] as number])) as unknown as Counts
  if (image.byteLength !== bytesOf(counts)) throw new BadSource('the table is cut short')
  let at = 4 * HEADER_WORDS
  const take = (length: number): Uint32Array => {
    const array = new Uint32Array(image, at, length)
    at += 4 * length
    return array
  }
  const [starts4, values4] = [take(counts.v4), take(counts.v4)]
  const v6 = { words: 4, starts: take(4 * counts.v6), values: take(counts.v6) }
  const [startsAsn, valuesAsn] = [take(counts.asns), take(counts.asns)]
  const ends = take(counts.texts)
  const bytes = Buffer.from(image)
  const meta = JSON.parse(bytes.toString('utf8', at, at + counts.metaBytes)) as TableMeta
  const firstText = at + padded(counts.metaBytes)
  return {
    image,
    meta,
    v4: (address) => searchOne(starts4, values4, address),
    v6: (address) => search(v6, address),
    asn: (asn) => searchOne(startsAsn, valuesAsn, asn),
    text(value) {
      const end = ends[value - 1]
      if (end === undefined) return ''
      return bytes.toString('utf8', firstText + (ends[value - 2] ?? 0), firstText + end)
    },
  }
}
