// Our builders of schemas make what typebox makes of the same calls.

import fc from 'fast-check'
import t from 'tap'
import typebox from 'typebox'
import { type TSchema, Type } from '../../src/domain/schema.ts'
import { testSeed } from '../helpers/rng.ts'

/** A way to build a schema, to be gone with either. */
type Recipe = (build: typeof Type) => TSchema

const options = fc.constantFrom({}, { description: 'so' }, { examples: [1], 'x-shared': 'Name' })
const leaf: fc.Arbitrary<Recipe> = fc.oneof(
  options.map((o) => (b: typeof Type) => b.Boolean(o)),
  options.map((o) => (b: typeof Type) => b.Integer({ minimum: 1, ...o })),
  options.map((o) => (b: typeof Type) => b.Number({ maximum: 2, ...o })),
  options.map((o) => (b: typeof Type) => b.String({ maxLength: 9, pattern: '^a', ...o })),
  options.map((o) => (b: typeof Type) => b.Null(o)),
  options.map((o) => (b: typeof Type) => b.Unknown(o)),
  options.map((o) => (b: typeof Type) => b.Enum(['one', 'two'], o)),
  fc.constantFrom('word', 7, true).map((value) => (b: typeof Type) => b.Literal(value)),
  options.map((o) => (b: typeof Type) => b.Unsafe<string>({ type: ['string', 'null'], ...o })),
)

const { schema } = fc.letrec<{ schema: Recipe }>((tie) => {
  const members = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), tie('schema'), { maxKeys: 4 })
  const object = fc
    .tuple(members, fc.constantFrom({}, { additionalProperties: false }))
    .map(([named, o]) => (b: typeof Type) => {
      const made = Object.fromEntries(Object.entries(named).map(([name, recipe]) => [name, recipe(b)]))
      return { whole: b.Object(made, o), part: b.Partial(b.Object(made), o) }
    })
  return {
    schema: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      leaf,
      object.map((recipe) => (b: typeof Type) => recipe(b).whole),
      object.map((recipe) => (b: typeof Type) => recipe(b).part),
      tie('schema').map((recipe) => (b: typeof Type) => b.Optional(recipe(b))),
      tie('schema').map((recipe) => (b: typeof Type) => b.Unsafe(recipe(b))),
      tie('schema').map((recipe) => (b: typeof Type) => ({ ...recipe(b) })),
      fc.tuple(tie('schema'), options).map(
        ([recipe, o]) =>
          (b: typeof Type) =>
            b.Array(recipe(b), { minItems: 1, ...o }),
      ),
      fc
        .array(tie('schema'), { maxLength: 3 })
        .map((recipes) => (b: typeof Type) => b.Union(recipes.map((recipe) => recipe(b)))),
      tie('schema').map((recipe) => (b: typeof Type) => b.Record(b.String({ maxLength: 3 }), recipe(b))),
    ),
  }
})

t.test('every schema is the one that typebox makes, to the order of its members', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  fc.assert(
    fc.property(schema, (recipe) => {
      // Inside an object it shows which members are required.
      const inside = (b: typeof Type) => JSON.stringify(b.Object({ it: recipe(b) }))
      return inside(Type) === inside(typebox)
    }),
    { seed, numRuns: 2_000 },
  )
  t.pass('2,000 schemas')
})

t.test('the comparison can fail', async (t) => {
  t.not(
    JSON.stringify(Type.Object({ a: Type.Null() })),
    JSON.stringify(typebox.Partial(typebox.Object({ a: typebox.Null() }))),
  )
  t.match(Type.Object({ a: Type.Optional(Type.Null()), b: Type.Null() }), { required: ['b'] })
})
