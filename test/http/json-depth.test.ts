import t from 'tap'
import { parseJson } from '../../src/http/json-body.ts'
import { nestsDeeper } from '../../src/http/json-depth.ts'
import { decodeUtf8 } from '../../src/http/utf8.ts'
import { sized } from '../helpers/depth.ts'

const VALUES = sized({ usual: 1_000, long: 4_000 })
/** Far more than a stack has frames. */
const LEVELS = sized({ quick: 100_000, usual: 200_000, long: 1_000_000 })

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

function randomJson(random: () => number, depth: number): unknown {
  const kind = Math.floor(random() * (depth > 0 ? 7 : 4))
  if (kind === 0) return random() * 1e6
  if (kind === 1) return null
  if (kind < 4) return randomText(random)
  const size = Math.floor(random() * 4)
  if (kind === 4) return Array.from({ length: size }, () => randomJson(random, depth - 1))
  if (kind === 5) return [randomJson(random, depth - 1)]
  return Object.fromEntries(Array.from({ length: size }, () => [randomText(random), randomJson(random, depth - 1)]))
}

function randomText(random: () => number): string {
  const letters = ['[', ']', '{', '}', '"', '\\', '\\"', 'a', 'é', '😀', '\n', ',', ':', 'ûÛ']
  return Array.from({ length: Math.floor(random() * 8) }, () => letters[Math.floor(random() * letters.length)]).join('')
}

t.test('nesting is measured right on any value', (t) => {
  const seed = Number(process.env.SEED ?? 20_261_120)
  t.comment(`seed ${seed}`)
  const random = seeded(seed)
  let wrong = 0
  let deepest = 0
  for (let i = 0; i < VALUES; i++) {
    const value = randomJson(random, 12)
    const depth = depthOf(value)
    deepest = Math.max(deepest, depth)
    const parsed = JSON.parse(JSON.stringify(value))
    for (let max = Math.max(0, depth - 2); max <= depth + 2; max++)
      if (nestsDeeper(parsed, max) !== depth > max) wrong++
  }
  t.equal(wrong, 0)
  t.ok(deepest >= 10)
  t.end()
})

t.test('32 levels pass and 33 do not, whatever is around them', (t) => {
  const nest = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  const parse = (text: string) => () => parseJson(Buffer.from(text), 'refuse')
  for (const [before, after] of [
    ['', ''],
    ['{"a":', '}'],
    ['["]]]",', ']'],
    ['["\\"]",', ']'],
    ['["\\\\",', ']'],
  ] as const) {
    const levels = before === '' ? 0 : 1
    t.doesNotThrow(parse(before + nest(32 - levels) + after), `${before} 32`)
    t.throws(parse(before + nest(33 - levels) + after), { code: 'invalid_json', message: /32 levels/ }, `${before} 33`)
  }
  t.doesNotThrow(parse(`["${'['.repeat(1_000)}"]`))
  t.doesNotThrow(parse(`[[],[[],${'[],'.repeat(1_000)}[]]]`))
  t.throws(parse(''), { code: 'invalid_json' })
  t.end()
})

t.test('no depth of nesting exhausts the stack', (t) => {
  for (const inner of ['', '"\\ud800"']) {
    const whole = '['.repeat(LEVELS) + inner + ']'.repeat(LEVELS)
    for (const text of [whole, '['.repeat(LEVELS), '{"a":'.repeat(LEVELS)]) {
      for (const mode of ['refuse', 'keep'] as const)
        t.throws(() => parseJson(Buffer.from(text), mode), { code: 'invalid_json' })
    }
  }
  t.end()
})

t.test('text is decoded exactly or not at all', (t) => {
  for (const text of ['', 'abc', 'h\u00e9', '\u{1f600}', '\u0000', '\ufeff{}', 'x'.repeat(10_000)])
    t.equal(decodeUtf8(new TextEncoder().encode(text)), text)
  for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0x61, 0xe2, 0x82], [0x80]])
    t.equal(decodeUtf8(Uint8Array.from(bytes)), null)
  t.end()
})
