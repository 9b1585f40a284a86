// An erasure that is interrupted behind the visitor's end: whoever asks again ends it, and is told the same.

import t from 'tap'
import { openErasures } from '../../src/api/visitors/erase.ts'
import { ApiError } from '../../src/domain/errors.ts'
import { homePartition } from '../../src/domain/ids.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { ERASED, erasedId } from '../../src/records/erasures.ts'
import { decodeErasure } from '../../src/records/identification.ts'
import { ENGINE_POSITION, partitionScope } from '../../src/records/partitions.ts'
import { openPorts, PARTITIONS, random } from '../helpers/control-plane.ts'

const [WORKSPACE, ENV, VISITOR] = ['ws_1', 'live', `pv_${'e'.repeat(20)}`] as const

t.test('an erasure whose note fails is unfinished until it is asked for again, and noted once', async (t) => {
  const { kv } = await openPorts(t)
  const scope = partitionScope(homePartition(VISITOR, PARTITIONS))
  await kv.commit([{ scope, guard: { source: ENGINE_POSITION, expect: null, next: 1 } }])
  /** As the owner of the partition does it: the first of several is the one that counts. */
  async function append(_topic: string, _partition: number, [bytes]: readonly Uint8Array[]): Promise<number> {
    const order = decodeErasure(bytes as Uint8Array)
    const key = [ERASED, erasedId(WORKSPACE, ENV, VISITOR)] as const
    const [known] = await kv.get(scope, [key])
    if (order !== null && !known)
      await kv.commit([{ scope, put: [{ key, value: { erasureId: order.erasureId, at: 1 } }] }])
    return 1
  }
  const submitted: string[] = []
  const erasures = openErasures({
    kv,
    clock: systemClock,
    random,
    partitions: PARTITIONS,
    log: { append },
    async submit({ type }) {
      submitted.push(type)
      return { ok: true, seq: submitted.length, at: 1 }
    },
  })
  const isUnfinished = () => erasures.isUnfinished(WORKSPACE, ENV, VISITOR)
  t.equal(await isUnfinished(), false, 'nobody has asked for it')

  const tombstoneOf = async () =>
    (await kv.get<{ erasureId: string }>(scope, [[ERASED, erasedId(WORKSPACE, ENV, VISITOR)]]))[0]
  const failing = async () => Promise.reject(new ApiError('unavailable'))
  await t.rejects(erasures.erase(WORKSPACE, ENV, VISITOR, failing), { code: 'unavailable' })
  const erasureId = (await tombstoneOf())?.value.erasureId
  t.match(erasureId, /^era_/, 'the visitor is gone')
  t.equal(await isUnfinished(), true)

  const noted: string[] = []
  const note = async (one: { readonly erasureId: string }) => void noted.push(one.erasureId)
  const [own] = await erasures.erase(WORKSPACE, ENV, VISITOR, note)
  t.equal(own.erasureId, erasureId, 'the erasure is the one that was begun')
  t.same(noted, [erasureId])
  t.same(submitted, ['list.forget', 'list.forget'])
  t.equal(await isUnfinished(), false)
})
