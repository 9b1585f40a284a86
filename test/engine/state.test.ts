// What a partition keeps in memory of its visitors, and what it lets go.

import t from 'tap'
import { INDEX_IDS_MAX, readIndex } from '../../src/engine/index-entry.ts'
import { createState, type LoadedEntry } from '../../src/engine/state.ts'
import { UNUSED_MS_MAX } from '../../src/engine/table.ts'

const MAX = 8
const index = (id: string): LoadedEntry => ({ kind: 'index', id, value: [1, `of_${id}`] })
const ids = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `k${from + i}`)

t.test('what is used stays in memory, what is not goes first, and the bound holds', async (t) => {
  // Four index entries to a visitor.
  const state = createState(MAX / 4)
  state.load(ids(0, MAX).map(index))
  state.takeDirty(0)
  t.same(
    ids(0, MAX).filter((id) => state.missing('index', id)),
    [],
    'within the bound all stay',
  )
  for (const id of ids(MAX, 50)) {
    t.same(readIndex(state.index('k3') ?? ''), { total: 1, ids: ['of_k3'] }, 'used before each')
    state.load([index(id)])
    state.takeDirty(0)
    t.notOk(state.missing('index', 'k3'), `beside ${id}`)
    t.ok(ids(0, 50).filter((other) => !state.missing('index', other)).length <= MAX + MAX / 2)
  }
  t.ok(ids(0, 50).filter((other) => !state.missing('index', other)).length <= MAX)
})

t.test('what no checkpoint has written yet is never let go, nor what the last one may still be writing', async (t) => {
  const state = createState(1)
  for (let round = 0; round < 10; round++) {
    const some = ids(round * 10, round * 10 + 10)
    for (const id of some) state.addToIndex(id, 'pv_1')
    t.same(
      some.filter((id) => state.missing('index', id)),
      [],
    )
    t.equal([...state.takeDirty(0).dirty].length, 10)
    t.same(
      some.filter((id) => state.missing('index', id)),
      [],
    )
    t.equal(state.dirtyCount(), 0)
  }
  t.ok(state.missing('index', 'k0'))
})

t.test(
  'what nobody used for a while goes although there is room, and what is used or not written yet does not',
  async (t) => {
    const state = createState(1_000)
    state.load(ids(0, 3).map(index))
    state.takeDirty(0)
    for (let nowMs = 0; nowMs < UNUSED_MS_MAX; nowMs += 1_000) {
      t.same(
        ids(0, 3).filter((id) => state.missing('index', id)),
        [],
        `all stay until ${nowMs} ms`,
      )
      state.takeDirty(nowMs)
    }
    for (let nowMs = UNUSED_MS_MAX; nowMs <= 3 * UNUSED_MS_MAX; nowMs += 1_000) {
      state.index('k1')
      state.takeDirty(nowMs)
    }
    t.same(
      ids(0, 3).filter((id) => state.missing('index', id)),
      ['k0', 'k2'],
    )
    state.addToIndex('k3', 'pv_1')
    t.equal(
      [...state.takeDirty(10 * UNUSED_MS_MAX).dirty].length,
      1,
      'what was set is written, however long ago the last time was',
    )
    t.notOk(state.missing('index', 'k3'), 'and stays until the next time at least')
  },
)

t.test('an entry of the index has the latest visitors, the newest last, and how many there ever were', async (t) => {
  const state = createState(100)
  for (let i = 0; i < INDEX_IDS_MAX + 3; i++) state.addToIndex('k', `pv_${i}`)
  state.addToIndex('k', 'pv_9')
  const entry = readIndex(state.index('k') ?? '')
  t.equal(entry.total, INDEX_IDS_MAX + 3)
  t.same([entry.ids.length, entry.ids[0], entry.ids.at(-1)], [INDEX_IDS_MAX, 'pv_3', 'pv_9'])
  state.dropFromIndex('k', 'pv_20')
  state.dropFromIndex('k', 'pv_20')
  const after = readIndex(state.index('k') ?? '')
  t.same([after.total, after.ids.includes('pv_20')], [INDEX_IDS_MAX + 2, false])
  const [dirty] = state.takeDirty(0).dirty
  t.same(dirty, { kind: 'index', id: 'k', value: [after.total, ...after.ids] }, 'as it is stored')
  const other = createState(100)
  other.load([{ kind: 'index', id: 'k', value: [1, 'pv_1'] }])
  other.dropFromIndex('k', 'pv_1')
  t.equal(other.index('k'), null, 'nobody is left')
})
