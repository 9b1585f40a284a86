// With clock, ids and tokens seeded, what visits are answered does not depend on how the work was cut: shards, and visits decided at once.

import { fileURLToPath } from 'node:url'
import t from 'tap'
import { answersOf, openAnswersBuild } from '../../bench/answers/build.ts'
import { corpusVisits } from '../../bench/answers/corpus.ts'
import { createDifferences, differencesText } from '../../bench/answers/differences.ts'

const OWN = fileURLToPath(new URL('../../..', import.meta.url))
const CORPUS = { visits: 500, seed: 7 }
const PARTITIONS = 4

t.test('a corpus is answered the same to the byte whatever the number of shards and the size of batches', async (t) => {
  const build = await openAnswersBuild(OWN)
  const answers = (shards: number, batch: number) => [
    ...answersOf(build, { seed: CORPUS.seed, partitions: PARTITIONS, shards, batch }, corpusVisits(CORPUS)),
  ]
  const one = answers(1, 1)
  t.equal(one.length, CORPUS.visits)
  t.same(new Set(one).size, CORPUS.visits, 'every answer is of its own visit')
  const events = one.map((text) => JSON.parse(text).event)
  for (const method of ['new', 'token', 'linked']) {
    t.ok(
      events.some(({ identity }) => identity.method === method),
      `some were recognised by ${method}`,
    )
  }
  for (const verdict of ['allow', 'challenge', 'block']) {
    t.ok(
      events.some((event) => event.verdict === verdict),
      `some were told ${verdict}`,
    )
  }
  t.same(answers(1, 1), one, 'again')
  for (const shards of [2, 4]) t.same(answers(shards, 1), one, `${shards} shards`)

  // What is drawn at once comes from one stream for each partition.
  const some = answers(1, 2)
  for (const [shards, batch] of [
    [2, 5],
    [4, 200],
  ] as const) {
    t.same(answers(shards, batch), some, `${shards} shards, ${batch} at once`)
  }
  const differences = createDifferences()
  for (const [at, text] of one.entries()) differences.add(text, some[at] ?? '')
  t.equal(differences.result().differing, 0, 'and one at once differs in nothing but the ids that were drawn')
})

t.test('what differs is told by member, with its count', async (t) => {
  const answer = (visitorId: string, bot: number, verdict: string) =>
    JSON.stringify({ reply: { visitorId }, event: { visitorId, scores: { bot }, verdict } })
  const ids = ['pv_aaaaaaaaaaaaaaaaaaaa', 'pv_bbbbbbbbbbbbbbbbbbbb', 'pv_cccccccccccccccccccc'] as const
  const differences = createDifferences()
  differences.add(answer(ids[0], 0, 'allow'), answer(ids[0], 0, 'allow'))
  differences.add(answer(ids[1], 0, 'allow'), answer(ids[2], 0, 'allow'))
  differences.add(answer(ids[1], 0, 'allow'), answer(ids[2], 0.5, 'allow'))
  differences.add(answer(ids[1], 0, 'allow'), answer(ids[0], 0.5, 'block'))
  const { visits, renamed, differing, differingSameVisitor, members } = differences.result()
  t.same([visits, renamed, differing, differingSameVisitor], [4, 1, 2, 1])
  t.same(
    members.map(({ member, visits: n, sameVisitor }) => [member, n, sameVisitor]),
    [
      ['event.scores.bot', 2, 1],
      ['reply.visitorId', 1, 0],
      ['event.visitorId', 1, 0],
      ['event.verdict', 1, 0],
    ],
  )
  t.match(differencesText(differences.result()), /event\.scores\.bot +2 +1 +visit 2: 0 → 0\.5/)
})
