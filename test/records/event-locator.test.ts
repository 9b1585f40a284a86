// What the processes know of an event, put together.

import t from 'tap'
import { combineAnswers, type LocatorAnswer } from '../../src/records/event-locator.ts'

const nothing: LocatorAnswer = { from: 'a', place: null, pending: false, original: null, covers: [] }

t.test('a record that came twice does not lead to itself', (t) => {
  const own = { requestId: 'req_1', conflict: false }
  const other = { requestId: 'req_0', conflict: false }
  t.equal(combineAnswers('req_1', [{ ...nothing, original: own }], [], 1).original, null)
  t.same(
    combineAnswers(
      'req_1',
      [
        { ...nothing, original: own },
        { ...nothing, original: other },
      ],
      [],
      1,
    ).original,
    other,
  )
  t.end()
})

t.test('absence is believed only when all partitions are covered and all who accept have answered', (t) => {
  const first = { ...nothing, from: 'a', covers: [0, 1] }
  const second = { ...nothing, from: 'b', covers: [1, 2] }
  t.equal(combineAnswers('req_1', [first, second], ['a', 'b'], 3).complete, true)
  t.equal(combineAnswers('req_1', [first], ['a'], 3).complete, false, 'a partition is missing')
  t.equal(combineAnswers('req_1', [first, second], ['a', 'b', 'c'], 3).complete, false, 'an ingress is missing')
  t.end()
})

t.test('one who knows is enough', (t) => {
  const place = { partition: 1, seq: 7, index: 0 }
  t.same(combineAnswers('req_1', [nothing, { ...nothing, place }], ['x'], 3).place, place)
  t.equal(combineAnswers('req_1', [nothing, { ...nothing, pending: true }], ['x'], 3).pending, true)
  t.end()
})
