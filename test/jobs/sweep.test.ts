// The sweep of the match index over real ports: whom it has erased once more.

import t from 'tap'
import { runSweep } from '../../src/jobs/sweep.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { ERASED, erasedId } from '../../src/records/erasures.ts'
import { decodeErasure } from '../../src/records/identification.ts'
import { indexKey, partitionScope } from '../../src/records/partitions.ts'
import { SYSTEM } from '../../src/records/scopes.ts'
import { eventually } from '../helpers/client.ts'
import { openPorts, PARTITIONS, prepare } from '../helpers/control-plane.ts'
import { cleanUp } from '../helpers/server.ts'

t.teardown(cleanUp)

const [GONE, ALSO_GONE, ALIVE] = ['a', 'b', 'c'].map((char) => `pv_${char.repeat(20)}`) as [string, string, string]
const PARTITION = 1

t.test(
  'whoever is erased and still in the index is erased once more with all its places, and nobody else',
  async (t) => {
    const { log, kv } = await openPorts(t)
    await prepare({ log, kv })
    const scope = partitionScope(PARTITION)
    const tombstone = (visitorId: string, erasureId: string) => ({
      key: [ERASED, erasedId('ws', 'live', visitorId)] as const,
      value: { erasureId, at: 7 },
    })
    // More than are looked at between two pauses.
    const ordinary = Array.from({ length: 300 }, (_, n) => ({
      key: indexKey('ws', 'live', `m${n}`),
      value: [1, ALIVE] as unknown,
    }))
    const put = [
      tombstone(GONE, 'era_1'),
      tombstone(ALSO_GONE, 'era_2'),
      ...ordinary,
      { key: indexKey('ws', 'live', 'a1'), value: [3, ALIVE, GONE] },
      { key: indexKey('ws', 'live', 'z1'), value: [2, GONE, ALSO_GONE] },
      // Of another environment nobody was erased.
      { key: indexKey('ws', 'test', 'a1'), value: [1, GONE] },
    ]
    await kv.commit([{ scope, put }])

    const stopping = new AbortController()
    const onError = (error: unknown) => t.fail(String(error))
    const counts: (number | null)[] = []
    const running = runSweep(
      {
        kv,
        log,
        clock,
        clickhouse: { query: async () => [] },
        partitions: PARTITIONS,
        everyMs: 100,
        visitorsDays: () => 1,
        onError,
        onVisitors: (count) => counts.push(count),
      },
      stopping.signal,
    )
    const limits = { recordsMax: 100, bytesMax: 1_000_000, waitMsMax: 0 }
    const read = async () =>
      (await log.read('identifications', PARTITION, 0, limits)).map(({ bytes }) => decodeErasure(bytes))
    const sweeps = async () => {
      const [entry] = await kv.get<{ finishedAt: number }>(SYSTEM, [['sweep', 'index']])
      return entry?.value.finishedAt ?? 0
    }
    const nextSweep = async () => {
      const before = await sweeps()
      await eventually(sweeps, (at) => at > before)
    }
    await nextSweep()
    const orders = await read()
    const places = orders.flatMap((order) => order?.found?.map((key) => `${order.visitorId} ${key}`) ?? [])
    t.same([...new Set(places)].sort(), [`${GONE} a1`, `${GONE} z1`, `${ALSO_GONE} z1`])
    t.match(orders[0], { workspace: 'ws', env: 'live', at: 7, erasureId: 'era_1', visitorId: GONE })
    t.notOk(orders.some((order) => order === null || order.env === 'test' || order.visitorId === ALIVE))

    await kv.commit([{ scope, drop: [indexKey('ws', 'live', 'a1'), indexKey('ws', 'live', 'z1')] }])
    await nextSweep()
    const settled = (await read()).length
    await nextSweep()
    t.equal((await read()).length, settled, 'what is healed is left alone')
    t.same([...new Set(counts)], [0], 'visitors are counted by the way')
    stopping.abort()
    await running
    t.equal(counts.at(-1), null)
  },
)
