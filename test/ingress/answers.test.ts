// The memory of answers gives back what was remembered of a nonce within its window, forgets rather than outgrow its bounds, and keeps none
// of it in V8's heap.

import t from 'tap'
import { NONCE_WINDOW_MS } from '../../src/domain/identify.ts'
import type { KeyKind } from '../../src/domain/workspace.ts'
import { createAnswers } from '../../src/ingress/answers.ts'
import { built, measurePromoted } from '../helpers/promoted.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const ROUNDS = 40
const STEPS = 400
const BYTES_MAX = 8_192
const ENTRIES_MAX = 24
const KINDS: readonly KeyKind[] = ['public', 'secret']

interface Told {
  readonly bodyHash: number
  /** When the first request with the nonce was accepted. */
  readonly at: number
  readonly bodies: Partial<Record<KeyKind, string>>
}

t.test('what is found is what was told last, and what was told just now is found', async (t) => {
  const seed = testSeed()
  t.comment(`SEED=${seed}`)
  const random = rng(seed)
  for (let round = 0; round < ROUNDS; round++) {
    let now = 0
    const answers = createAnswers(() => now, BYTES_MAX, ENTRIES_MAX)
    const told = new Map<number, Told>()
    for (let step = 0; step < STEPS; step++) {
      now += Math.floor(random.float() ** 2 * NONCE_WINDOW_MS * 0.2)
      // Some of them begin at the same place of the table.
      const nonceHash = 1 + random.int(20) * random.pick([1, 65_536])
      const kind = random.pick(KINDS)
      const known = told.get(nonceHash)
      const isNew = known === undefined || now - known.at > NONCE_WINDOW_MS
      if (random.chance(0.6)) {
        const entry: Told = isNew ? { bodyHash: random.int(1e9), at: now, bodies: {} } : known
        const body = `{"é€😀":"${'x'.repeat(random.int(600))}${step}"}`
        entry.bodies[kind] = body
        told.set(nonceHash, entry)
        answers.add(nonceHash, entry.bodyHash, kind, body, entry.at)
        if (answers.find(nonceHash, kind)?.body !== body) return t.fail('it was forgotten at once')
      }
      const found = answers.find(nonceHash, kind)
      if (found === null) continue
      const its = told.get(nonceHash)
      const isRight =
        its !== undefined &&
        now - its.at <= NONCE_WINDOW_MS &&
        found.bodyHash === its.bodyHash &&
        (found.body === null || found.body === its.bodies[kind])
      if (!isRight) return t.fail(JSON.stringify({ found, its }))
    }
  }
  return t.pass()
})

t.test('nothing is found when the window is over, and an answer too long for it is not remembered', async (t) => {
  let now = 0
  const answers = createAnswers(() => now, BYTES_MAX, ENTRIES_MAX)
  answers.add(1, 7, 'public', 'told', now)
  now = NONCE_WINDOW_MS
  t.same(answers.find(1, 'public'), { bodyHash: 7, body: 'told' })
  t.same(answers.find(1, 'secret'), { bodyHash: 7, body: null })
  now++
  t.equal(answers.find(1, 'public'), null)
  answers.add(2, 7, 'public', 'x'.repeat(BYTES_MAX), now)
  t.equal(answers.find(2, 'public'), null)
  answers.add(3, 7, 'public', 'late', now - NONCE_WINDOW_MS - 1)
  t.equal(answers.find(3, 'public'), null)
})

t.test('what is remembered does not make the heap old', async (t) => {
  const perAnswer = (await measurePromoted(`
    import { createAnswers } from ${built('ingress/answers.js')}
    const answers = createAnswers(() => 0)
    const STEPS = 60_000
    const promoted = await promotedBy((n) => {
      const body = Buffer.alloc(1_000, 97 + (n % 26)).toString('latin1')
      answers.add(1 + n * 7_919, n, 'public', body, 0)
    }, STEPS)
    console.log(Math.round(promoted / STEPS))`)) as number
  t.comment(`${perAnswer} bytes of each answer of 1,000`)
  t.ok(perAnswer < 100)
})
