// What a partition keeps in memory of its visitors, and what it lets go.

import t from 'tap'
import { createState, type Loaded } from '../../src/engine/state.ts'

const MAX = 3
const index = (id: string): Loaded => ({ kind: 'index', id, value: [1, `visitor of ${id}`] })
const ids = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `k${from + i}`)

t.test('what is used stays in memory, what is not goes first, and the bound holds', async (t) => {
  // Four index entries to a visitor.
  const state = createState(MAX / 4)
  state.load(ids(0, 3).map(index))
  state.takeDirty()
  t.same(
    ids(0, 3).filter((id) => state.missing('index', id)),
    [],
    'within the bound all stay',
  )
  state.load(ids(3, 4).map(index))
  state.takeDirty()
  t.equal(ids(0, 4).filter((id) => !state.missing('index', id)).length, MAX)
  for (const id of ids(4, 20)) {
    t.match(state.index('k3'), { total: 1 }, 'used before each')
    state.load([index(id)])
    state.takeDirty()
    t.notOk(state.missing('index', 'k3'), `beside ${id}`)
    t.equal(ids(0, 20).filter((other) => !state.missing('index', other)).length, MAX)
  }
})

t.test('what no checkpoint has written yet is never let go', async (t) => {
  const state = createState(MAX / 4)
  for (const id of ids(0, 10)) state.addToIndex(id, 'pv_1')
  t.same(
    ids(0, 10).filter((id) => state.missing('index', id)),
    [],
  )
  t.equal(state.takeDirty().length, 10)
  t.equal(ids(0, 10).filter((id) => !state.missing('index', id)).length, MAX)
  t.equal(state.dirtyCount(), 0)
})
