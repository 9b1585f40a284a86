// What subscribers are told of lists: nothing about visitors who were erased, and of an entry whose time was over what it was given.

import t, { type Test } from 'tap'
import { followLists } from '../../src/dispatcher/follow-lists.ts'
import { openSubscriptions } from '../../src/dispatcher/subscriptions.ts'
import { pendingOf } from '../../src/dispatcher/sweep.ts'
import { homePartition } from '../../src/domain/ids.ts'
import type { Kv } from '../../src/kv/kv.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { CommandDraft } from '../../src/records/commands.ts'
import { PAYLOAD, type Payload } from '../../src/records/deliveries.ts'
import { ERASED, erasedId } from '../../src/records/erasures.ts'
import { LISTS_TOLD, readListsMeta } from '../../src/records/list-deltas.ts'
import { partitionScope } from '../../src/records/partitions.ts'
import { tenantScope } from '../../src/records/scopes.ts'
import { eventually } from '../helpers/client.ts'
import { createWorkspace, openPorts, PARTITIONS, prepare, startOwner, startSubmit } from '../helpers/control-plane.ts'

const WEBHOOK = 'wh_00000000000000000001'
const [STAYS, GOES] = ['pv_00000000000000000001', 'pv_00000000000000000002'] as const
const erasedOne = { scope: partitionScope(homePartition(GOES, PARTITIONS)), id: erasedId('ws_1', 'live', GOES) }

/** A list of visitors, and a webhook that is told of everything. */
async function open(t: Test) {
  const ports = await openPorts(t)
  await prepare(ports)
  startOwner(t, ports)
  const submit = startSubmit(t, ports)
  await submit(createWorkspace('ws_1'))
  const order = async (type: CommandDraft['type'], data: object) =>
    t.ok((await submit({ type, workspace: 'ws_1', env: 'live', actor: 'test', data } as CommandDraft)).ok)
  const webhook = { id: WEBHOOK, shape: 'B', url: 'https://shop.example/', events: ['*'], filters: null }
  await order('webhook.create', { ...webhook, description: null, status: 'active', sealed: 'x', webhooksMax: 10 })
  const list = { id: 'lst_a', name: 'a', type: 'visitor', description: null, ttl: null, maxima: { listsMax: 10 } }
  await order('list.create', list)
  const enter = (add: readonly object[]) =>
    order('list.entries', { id: 'lst_a', add, remove: [], source: 'api', entriesMax: 100 })
  const erase = () =>
    ports.kv.commit([
      { scope: erasedOne.scope, put: [{ key: [ERASED, erasedOne.id], value: { erasureId: 'era_1', at: 1 } }] },
    ])
  /** Resolves when everything so far was told. */
  async function follow(kv: Kv = ports.kv): Promise<void> {
    const stopping = new AbortController()
    const needs = {
      ...{ ...ports, kv, clock: systemClock, partitions: PARTITIONS, subscriptions: openSubscriptions(kv) },
      handover: { reserve: () => ({ isAwake: () => false, done() {} }), offer() {} },
      listening: { isHeard: () => false, publish() {} },
      report: (error: unknown) => t.fail(`nothing may fail: ${(error as Error).stack}`),
      onLost: () => t.fail('nothing is lost'),
    }
    const over = followLists(needs, stopping.signal)
    const { last } = await readListsMeta(kv, 'ws_1', 'live')
    await eventually(
      async () => (await kv.get<number>(tenantScope('ws_1', 'live'), [LISTS_TOLD]))[0]?.value,
      (told) => told === last,
    )
    stopping.abort()
    await over
  }
  async function bodies() {
    const scopes = Array.from({ length: PARTITIONS }, (_, partition) => partitionScope(partition))
    const pages = await Promise.all(scopes.map((scope) => ports.kv.scan<Payload>(scope, PAYLOAD, { limit: 100 })))
    return pages.flat().map(({ key, value }) => ({ id: key[1], data: JSON.parse(`{${value.b}`).data }))
  }
  return { ...ports, enter, erase, follow, bodies }
}

t.test('nobody is told of the entry of a visitor who was erased before its turn came', async (t) => {
  const { kv, enter, erase, follow, bodies } = await open(t)
  await enter([{ value: STAYS }, { value: GOES }])
  await erase()
  await follow()
  t.match(await bodies(), [{ data: { value: STAYS } }])
  t.equal((await bodies()).length, 1)
  t.equal(await pendingOf(kv, WEBHOOK), 1)
})

t.test('what was stored of a visitor while it was erased is gone before the place moves on', async (t) => {
  const { kv, enter, erase, follow, bodies } = await open(t)
  await enter([{ value: STAYS }, { value: GOES }])
  const erasing: Kv = {
    ...kv,
    async commit(commits) {
      const done = await kv.commit(commits)
      if (commits.some(({ scope }) => scope === erasedOne.scope)) await erase()
      return done
    },
  }
  await follow(erasing)
  t.same(
    (await bodies()).map(({ data }) => data.value),
    [STAYS],
  )
  t.equal(await pendingOf(kv, WEBHOOK), 1)
})

t.test('an entry whose time was over is told with the seconds that it was last given', async (t) => {
  const { enter, follow, bodies } = await open(t)
  await enter([{ value: STAYS, ttl: 3_600 }])
  await systemClock.sleep(700)
  await enter([{ value: STAYS, ttl: 1 }])
  await systemClock.sleep(1_100)
  await enter([{ value: STAYS, ttl: 60 }])
  await follow()
  const told = (await bodies()).filter(({ data }) => 'ttl' in data)
  t.match(told, [{ data: { value: STAYS, ttl: 1 } }])
  t.equal(told.length, 1)
})
