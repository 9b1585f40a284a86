// What the owner of a partition says to who waits for its checkpoint.

import t from 'tap'
import { createFreshness } from '../../src/engine/freshness.ts'

const PARTITION = 3

t.test('an owner says what is stored, and one whose tenure ends says that it does not know', async (t) => {
  const freshness = createFreshness()
  t.equal(await freshness.ask(PARTITION), false, 'nobody owns it')
  const owned = freshness.own(PARTITION, new AbortController().signal)
  t.equal(await freshness.ask(PARTITION), true, 'nothing was decided')
  owned.changed()
  const stored = freshness.ask(PARTITION)
  t.ok(owned.isAsked())
  const committed = owned.taken()
  owned.changed()
  committed()
  t.equal(await stored, true, 'what is decided after the question is not waited for')
  const never = freshness.ask(PARTITION)
  owned.taken()
  const behind = freshness.ask(PARTITION)
  owned.end()
  t.equal(await never, false, 'its checkpoint was not committed')
  t.equal(await behind, false)
  t.equal(await freshness.ask(PARTITION), false)
})

t.test('an owner stops waiting for records when somebody asks, and when its tenure ends', async (t) => {
  const freshness = createFreshness()
  const tenure = new AbortController()
  const owned = freshness.own(PARTITION, tenure.signal)
  owned.changed()
  t.notOk(owned.signal().aborted)
  const stored = freshness.ask(PARTITION)
  t.ok(owned.signal().aborted, 'somebody asked')
  owned.taken()()
  t.equal(await stored, true)
  const waits = owned.signal()
  t.notOk(waits.aborted, 'the next question ends another wait')
  tenure.abort()
  t.ok(waits.aborted, 'the tenure ended')
  t.ok(owned.signal().aborted)
  owned.taken()
  t.ok(owned.signal().aborted, 'and does not begin again')
  owned.end()
})
