// The tag of an event as its row has it: the engine can read it, and so can we, whatever numbers are in it.

import fc from 'fast-check'
import t from 'tap'
import { readTag, tagText } from '../../src/events/cells.ts'

const LONG = /(?<![\d.])\d{19,}(?![\d.eE])/
/** Without what stands between quotes. */
const bare = (text: string): string => text.replace(/"(?:[^"\\]|\\.)*"/g, '""')

t.test('numbers of every size come back as they were, and none is an integer beyond 64 bits', (t) => {
  const table = [
    0.00012345678901234567,
    -0.00012345678901234567,
    1e-7,
    0.1 + 0.2,
    123456789012345680000,
    -1e20,
    -(2 ** 63),
    -9.3e18,
    9.3e18,
    2 ** 64,
    1e21,
    5e-324,
    1.7e308,
  ]
  for (const x of table) {
    const tag = { x, nested: { list: [x, `${x}`, '123456789012345678901234'] } }
    const text = tagText(tag)
    t.same(JSON.parse(text), tag, text)
    t.notMatch(bare(text), LONG)
  }
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.double({ min: 0, max: 1e-3, noNaN: true }),
    fc.integer().map((n) => n * 1e16),
  )
  fc.assert(
    fc.property(fc.array(number, { minLength: 1, maxLength: 8 }), (numbers) => {
      const tag = { numbers: numbers.map((n) => (n === 0 ? 0 : n)) }
      const text = tagText(tag)
      return JSON.stringify(JSON.parse(text)) === JSON.stringify(tag) && !LONG.test(bare(text))
    }),
    { numRuns: 2_000 },
  )
  t.end()
})

t.test('a tag that an earlier release wrote so that nobody can read it counts as empty', (t) => {
  t.same(readTag('{"x":0.1.2345678901234568e+16}'), {})
  t.same(readTag('{"x":1}'), { x: 1 })
  t.end()
})
