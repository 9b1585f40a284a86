// The search of `contains`: it finds what String.prototype.includes finds, and no text makes it take the product of the lengths.

import fc from 'fast-check'
import t from 'tap'
import { containsText } from '../../src/rules/contains.ts'
import { testSeed } from '../helpers/rng.ts'

t.test('it finds what includes finds, in texts of few letters as well', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const letters = fc.constantFrom('a', 'b', 'é', '\ud83d')
  const textOf = (maxLength: number) => fc.array(letters, { maxLength }).map((all) => all.join(''))
  fc.assert(
    fc.property(textOf(40), textOf(12), fc.nat(400), fc.nat(60), (text, part, texts, parts) => {
      const [longText, longPart] = [text.repeat(texts), part.repeat(parts)]
      return (
        containsText(longText, longPart) === longText.includes(longPart) &&
        containsText(longText + longPart, longPart) &&
        containsText(`${longPart}${longText}`, longPart)
      )
    }),
    { seed, numRuns: 3_000 },
  )
  for (const part of ['', 'a', 'a'.repeat(1_024), 'a'.repeat(2_000)]) {
    t.equal(containsText('a'.repeat(1_500), part), part.length <= 1_500, `${part.length} of 1,500`)
  }
})

t.test(
  'a text and a part made against a search are looked through in a few comparisons for each character',
  async (t) => {
    const part = `${'a'.repeat(500)}b${'a'.repeat(499)}`
    const text = 'a'.repeat(4_000)
    let asked = 0
    const counted = {
      length: text.length,
      charCodeAt(at: number) {
        asked++
        return text.charCodeAt(at)
      },
    }
    t.equal(containsText(counted as unknown as string, part), false)
    t.equal(asked, text.length)
  },
)
