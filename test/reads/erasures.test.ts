// How far an erasure has come, as its receipt tells it, from what sink, jobs and dispatcher have noted.

import t from 'tap'
import { homePartition } from '../../src/domain/ids.ts'
import { openErasureReads } from '../../src/reads/erasures.ts'
import { executedPuts, notePurge, noteRequested, noteRewrite } from '../../src/records/erasure-progress.ts'
import { erasedId } from '../../src/records/erasures.ts'
import { deltaKey, LISTS_TOLD } from '../../src/records/list-deltas.ts'
import { DISPATCHER_POSITION, partitionScope } from '../../src/records/partitions.ts'
import { tenantScope } from '../../src/records/scopes.ts'
import { openPorts, PARTITIONS } from '../helpers/control-plane.ts'

const AT = { workspace: 'ws_1', env: 'live' } as const
const VISITOR = `pv_${'b'.repeat(20)}`

t.test('a visitor erased twice is in the log until the log is past the second', async (t) => {
  const { kv, log } = await openPorts(t)
  const partition = homePartition(VISITOR, PARTITIONS)
  const erased = erasedId(AT.workspace, AT.env, VISITOR)
  await noteRequested(kv, AT.workspace, AT.env, { at: 1, parts: [{ erasureId: 'era_1', partition }] })
  // The owner of the partition is told of a merged visitor by the request and once more by whoever takes it out of lists.
  for (const [n, erasureId] of ['era_1', 'era_2'].entries()) {
    const put = executedPuts([{ ...AT, erasureId, at: 1, erased }], { at: 2 + n, seq: 5 + n })
    await kv.commit([{ scope: partitionScope(partition), put }])
  }
  const read = openErasureReads({ kv, log, clock: { now: () => 1_000 }, partitions: PARTITIONS })
  const statusBehind = async (oldestOfIt: number) => {
    const oldest = Array.from({ length: PARTITIONS }, (_, one) => (one === partition ? oldestOfIt : 1))
    await noteRewrite(kv, { startedAt: 10, oldest })
    const progress = await read(AT.workspace, AT.env, 'era_1')
    return progress?.stores.find(({ store }) => store === 'log')?.status
  }
  t.equal(await statusBehind(6), 'pending', 'the second still names it')
  t.equal(await statusBehind(7), 'done')
})

t.test('what a clock noted that was ahead proves nothing about erasures until that moment has come', async (t) => {
  const { kv, log } = await openPorts(t)
  const partition = homePartition(VISITOR, PARTITIONS)
  const erased = erasedId(AT.workspace, AT.env, VISITOR)
  await noteRequested(kv, AT.workspace, AT.env, { at: 1, parts: [{ erasureId: 'era_1', partition }] })
  const put = executedPuts([{ ...AT, erasureId: 'era_1', at: 1, erased }], { at: 100, seq: 5 })
  await kv.commit([{ scope: partitionScope(partition), put }])
  const statusesAt = async (nowMs: number) => {
    const read = openErasureReads({ kv, log, clock: { now: () => nowMs }, partitions: PARTITIONS })
    const { stores = [] } = (await read(AT.workspace, AT.env, 'era_1')) ?? {}
    return Object.fromEntries(stores.map(({ store, status }) => [store, status]))
  }
  await noteRewrite(kv, { startedAt: 3_600_000, oldest: Array.from({ length: PARTITIONS }, () => 1) })
  await notePurge(kv, { startedAt: 3_600_000, finishedAt: 3_600_001, left: [], cleanAt: 3_600_001 })
  t.match(await statusesAt(200), { profile: 'pending', lists: 'pending', events: 'pending' })
  await noteRewrite(kv, { startedAt: 150, oldest: Array.from({ length: PARTITIONS }, () => 1) })
  await notePurge(kv, { startedAt: 150, finishedAt: 151, left: [], cleanAt: 151 })
  t.match(await statusesAt(200), { profile: 'done', lists: 'done', events: 'done' })
})

t.test(
  'what was to be told of webhooks is not done before the changes of lists from before the erasure were told',
  async (t) => {
    const { kv, log } = await openPorts(t)
    const partition = homePartition(VISITOR, PARTITIONS)
    const scope = partitionScope(partition)
    const erased = erasedId(AT.workspace, AT.env, VISITOR)
    await noteRequested(kv, AT.workspace, AT.env, { at: 1, parts: [{ erasureId: 'era_1', partition }] })
    const put = executedPuts([{ ...AT, erasureId: 'era_1', at: 1, erased }], { at: 100, seq: 5 })
    await kv.commit([{ scope, put, guard: { source: DISPATCHER_POSITION, expect: null, next: 5 } }])
    await noteRewrite(kv, { startedAt: 150, oldest: Array.from({ length: PARTITIONS }, () => 1) })
    const lists = tenantScope(AT.workspace, AT.env)
    const delta = (seq: number, previous: number, at: number) => ({
      key: deltaKey(seq),
      value: { seq, previous, at, changes: [] },
    })
    const read = openErasureReads({ kv, log, clock: { now: () => 200 }, partitions: PARTITIONS })
    const status = async () =>
      (await read(AT.workspace, AT.env, 'era_1'))?.stores.find(({ store }) => store === 'webhooks')?.status
    t.equal(await status(), 'done', 'no list was ever changed')
    await kv.commit([{ scope: lists, put: [delta(3, 0, 90), delta(4, 3, 110)] }])
    t.equal(await status(), 'pending')
    await kv.commit([{ scope: lists, put: [{ key: LISTS_TOLD, value: 3 }] }])
    t.equal(await status(), 'done', 'what came later does not name it')
  },
)
