// Ranges against a search that looks at each of them: whatever overlaps whatever.

import t from 'tap'
import { createRanges } from '../../src/ipintel/ranges.ts'
import { openTable, sealTable, verifyTable } from '../../src/ipintel/table.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'

const META = { source: 'vpn', dataAt: null, builtAt: 0, entries: 0, inputs: [] } as const

interface Range {
  readonly first: bigint
  readonly last: bigint
  readonly text: string
}

/** The later start wins, then the shorter, then the earlier in the list; any name wins over none. */
function naive(ranges: readonly Range[], at: bigint): string | null {
  let best: Range | null = null
  for (const one of ranges) {
    if (at < one.first || at > one.last) continue
    if (best !== null && (best.text === '') !== (one.text === '')) {
      if (best.text === '') best = one
      continue
    }
    if (best === null || one.first > best.first || (one.first === best.first && one.last < best.last)) best = one
  }
  return best?.text ?? null
}

const split = (address: bigint): number[] => [96n, 64n, 32n, 0n].map((bits) => Number((address >> bits) & 0xffff_ffffn))

function someRanges(random: Rng, bits: number): Range[] {
  const top = (1n << BigInt(bits)) - 1n
  // Few distinct ends, so that ranges touch, nest, repeat and reach both ends of the space.
  const ends = Array.from({ length: 6 + random.int(10) }, () =>
    BigInt(`0x${Buffer.from(random.bytes(bits / 8)).toString('hex')}`),
  )
  ends.push(0n, 1n, top, top - 1n, 0xffff_ffffn, 1n << BigInt(bits - 1))
  return Array.from({ length: 1 + random.int(30) }, () => {
    const [a, b] = [random.pick(ends) + BigInt(random.int(3)), random.pick(ends) - BigInt(random.int(3))]
    const clamp = (end: bigint) => (end < 0n ? 0n : end > top ? top : end)
    const [first, last] = [clamp(a), clamp(b)]
    const text = random.pick(['', 'one', 'two', 'three'])
    return first <= last ? { first, last, text } : { first: last, last: first, text }
  })
}

t.test('a search finds what looking at every range finds', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)
  let asked = 0
  for (let run = 0; run < 400; run++) {
    const isV6 = run % 2 === 1
    const bits = isV6 ? 128 : 32
    const listed = someRanges(random, bits)
    const ranges = createRanges()
    for (const { first, last, text } of listed) {
      if (isV6) ranges.addV6(split(first), split(last), ranges.intern(text))
      else ranges.addV4(Number(first), Number(last), ranges.intern(text))
    }
    const built = ranges.finish()
    const family = isV6 ? built.v6 : built.v4
    for (let i = 1; i < family.values.length; i++) {
      if (family.values[i] === family.values[i - 1]) t.fail(`run ${run}: segments ${i - 1} and ${i} say the same`)
    }
    const table = openTable(sealTable(built, META))
    const top = (1n << BigInt(bits)) - 1n
    const probes = listed.flatMap(({ first, last }) => [first, last, first - 1n, last + 1n, (first + last) / 2n])
    for (const at of probes) {
      if (at < 0n || at > top) continue
      const value = isV6 ? table.v6(split(at)) : table.v4(Number(at))
      const found = value === 0 ? null : table.text(value)
      asked++
      if (found !== naive(listed, at)) return t.equal(found, naive(listed, at), `run ${run}, ${at}`)
    }
  }
  t.ok(asked > 10_000, `${asked} addresses`)
})

t.test('a reversed range is refused, and the table of nothing finds nothing', async (t) => {
  const ranges = createRanges()
  const value = ranges.intern('x')
  t.throws(() => ranges.addV4(2, 1, value), RangeError)
  t.throws(() => ranges.addV6([1, 0, 0, 0], [0, 9, 9, 9], value), RangeError)
  const table = openTable(sealTable(createRanges().finish(), META))
  t.equal(table.v4(0), 0)
  t.equal(table.v6([0, 0, 0, 0]), 0)
  t.equal(table.asn(1), 0)
  t.equal(table.text(7), '')
})

t.test('every damaged byte of a stored table is noticed', async (t) => {
  const ranges = createRanges()
  ranges.addV4(16, 31, ranges.intern('náme'))
  ranges.addAsn(7, ranges.intern('other'))
  const image = sealTable(ranges.finish(), META)
  verifyTable(image)
  const table = openTable(image)
  t.equal(table.text(table.v4(20)), 'náme')
  t.equal(table.text(table.asn(7)), 'other')
  const bytes = new Uint8Array(image)
  for (let at = 0; at < bytes.length; at++) {
    bytes[at] = (bytes[at] as number) ^ 0x41
    t.throws(() => verifyTable(image), { name: 'BadSource' }, `byte ${at}`)
    bytes[at] = (bytes[at] as number) ^ 0x41
  }
  for (const length of [0, 40, image.byteLength - 4]) {
    const short = new SharedArrayBuffer(length)
    new Uint8Array(short).set(bytes.subarray(0, length))
    t.throws(() => verifyTable(short), { name: 'BadSource' }, `${length} bytes`)
  }
})
