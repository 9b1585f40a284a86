// What the owner of a partition says to who waits for its checkpoint.

import t from 'tap'
import { createFreshness } from '../../src/engine/freshness.ts'

const PARTITION = 3

t.test('an owner says what is stored, and one whose tenure ends says that it does not know', async (t) => {
  const freshness = createFreshness()
  t.equal(await freshness.ask(PARTITION), false, 'nobody owns it')
  const owned = freshness.own(PARTITION)
  t.equal(await freshness.ask(PARTITION), true, 'nothing was decided')
  owned.changed()
  const stored = freshness.ask(PARTITION)
  t.ok(owned.isAsked())
  const committed = owned.taken()
  owned.changed()
  committed()
  t.equal(await stored, true, 'what is decided after the question is not waited for')
  const never = freshness.ask(PARTITION)
  owned.end()
  t.equal(await never, false)
  t.equal(await freshness.ask(PARTITION), false)
})
