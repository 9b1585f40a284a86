// Values written piece by piece are the bytes that msgpackr makes of them.

import { Packr } from 'msgpackr'
import t from 'tap'
import {
  beginPacking,
  closeBytes,
  openBytes,
  packText,
  putArray,
  putBoolean,
  putMaybe,
  putNull,
  putNumbers,
  putRaw,
  putTexts,
  takePacked,
} from '../../src/lib/packing.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const packr = new Packr({ useRecords: false })

function putAny(value: unknown): void {
  if (value === null) putNull()
  else if (typeof value === 'boolean') putBoolean(value)
  else if (typeof value === 'number') putMaybe(value)
  else if (typeof value === 'string') packText(value)
  else if (value instanceof Uint8Array) {
    const start = openBytes()
    putRaw(value)
    closeBytes(start)
  } else if (Array.isArray(value)) {
    putArray(value.length)
    for (const one of value) putAny(one)
  }
}

function packed(value: unknown): Uint8Array {
  beginPacking()
  putAny(value)
  return takePacked()
}

const isSame = (bytes: Uint8Array, value: unknown) => Buffer.compare(bytes, packr.pack(value)) === 0

const EDGES = [
  0,
  0x1f,
  0x20,
  0x7f,
  0x80,
  0xff,
  0x100,
  0x7fff,
  0x8000,
  0xffff,
  0x10000,
  2 ** 31,
  2 ** 32 - 1,
  2 ** 32,
  2 ** 53,
]

t.test('numbers at the edges of their forms', async (t) => {
  const numbers = [...EDGES.flatMap((edge) => [edge - 1, edge, -edge, -edge - 1]), 0.5, -0.001, Number.NaN, 1e300]
  t.same(packed(numbers), packr.pack(numbers))
  beginPacking()
  putNumbers([...numbers, null])
  t.same(takePacked(), packr.pack([...numbers, null]))
})

t.test('texts, lists and bytes of every length that has a form of its own', async (t) => {
  for (const length of [0, 1, 15, 16, 31, 32, 63, 64, 95, 96, 97, 255, 256, 300, 65_535, 65_536, 70_000]) {
    const texts = Array.from({ length }, (_, i) => `k${i}`)
    const values = [...['a', 'é', '漢', '😀'].map((unit) => unit.repeat(length)), new Uint8Array(length).fill(7), texts]
    for (const value of values) t.ok(isSame(packed(value), value), `${length}`)
    beginPacking()
    putTexts(texts)
    t.ok(isSame(takePacked(), texts))
  }
})

t.test('any value within any other', async (t) => {
  const r = rng(testSeed())
  const text = () =>
    Array.from({ length: r.int(r.pick([8, 40, 400])) }, () => r.pick(['a', 'Z', 'é', '漢', '😀'])).join('')
  const any = (depth: number): unknown => {
    const kind = r.int(depth > 3 ? 5 : 7)
    if (kind === 0) return null
    if (kind === 1) return r.chance(0.5)
    if (kind === 2) return Math.floor((r.float() - 0.5) * 2 ** r.int(60))
    if (kind === 3) return text()
    if (kind === 4) return r.bytes(r.int(r.pick([8, 300, 70_000])))
    return Array.from({ length: r.int(20) }, () => any(depth + 1))
  }
  for (let round = 0; round < 200; round++) {
    const value = any(0)
    if (!isSame(packed(value), value)) t.fail(JSON.stringify(value))
  }
})
