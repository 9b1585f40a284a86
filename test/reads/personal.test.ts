// The addresses a data subject is told of are those its events have, in the one spelling of each.

import t from 'tap'
import type { StoredEvent } from '../../src/domain/event.ts'
import { COLUMNS, EVENTS_TABLE, toRow } from '../../src/events/row.ts'
import { openPersonalReads } from '../../src/reads/personal.ts'
import { openPorts, PARTITIONS } from '../helpers/control-plane.ts'
import { openEngine } from '../helpers/engine.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { ADDRESSES, randomEvent } from '../helpers/stored-events.ts'

const WS = 'ws_default'
const VISITOR = `pv_${'a'.repeat(20)}`

t.test('every address of a visitor is told as its events have it', async (t) => {
  const r = rng(testSeed())
  const { kv } = await openPorts(t)
  const { clickhouse } = await openEngine(t, 3_650)
  const addresses = [...new Set([...ADDRESSES, '2001:db8::ffff:1', '1::ffff:0:1'])]
  const lines = addresses.map((address, i) => {
    const event = randomEvent(r, WS, i)
    const seen: StoredEvent = { ...event, env: 'live', visitorId: VISITOR, ip: { ...event.ip, address } }
    return `${toRow(seen, 0, i)}\n`
  })
  await clickhouse.insert(EVENTS_TABLE, COLUMNS, Buffer.from(lines.join('')), { token: 'events' })
  const personal = await openPersonalReads({ kv, clickhouse, partitions: PARTITIONS })(WS, 'live', [VISITOR])
  t.same(personal.addresses.map(({ value }) => value).sort(), [...addresses].sort())
})
