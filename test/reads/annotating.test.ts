// What was said of an event is asked of the partition that decided it, where that is known, and of all others only where it is not.

import t from 'tap'
import type { StoredEvent } from '../../src/domain/event.ts'
import { makeRequestId } from '../../src/domain/ids.ts'
import type { DecidedItem } from '../../src/events/packed-items.ts'
import { encodeEventsRecord } from '../../src/events/record.ts'
import { toRow } from '../../src/events/row.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openRandom } from '../../src/lib/random.ts'
import { openEventReads } from '../../src/reads/events.ts'
import type { EventPlace } from '../../src/records/event-locator.ts'
import { partitionScope } from '../../src/records/partitions.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { randomEvent } from '../helpers/stored-events.ts'

const PARTITIONS = 16
const seed = testSeed()
const event: StoredEvent = {
  ...randomEvent(rng(seed), 'ws_default', 1),
  requestId: makeRequestId(systemClock.now(), openRandom()),
}
const { workspace, env, requestId } = event

function recordOf(named: string): Uint8Array {
  const row = `${toRow(event, 5, 7)}\n`
  const item: DecidedItem = {
    seq: 7,
    requestId: named,
    workspace,
    env,
    visitorId: event.visitorId,
    state: new Uint8Array(0),
    indexed: [],
    matches: [],
    nonceHash: 0,
    bodyHash: 0,
    acceptedAt: 0,
    keyKind: 'secret',
    replyTo: '',
    rowBytes: Buffer.byteLength(row),
  }
  return encodeEventsRecord({ from: 7, to: 7, items: [item], rows: Buffer.from(row) })
}

/**
 * Reads the event; the scopes that were asked what was said of it. `named`: whose record is at the place. `pending`: whether who
 * accepted it still waits for its decision.
 */
async function askedFor(place: EventPlace | null, named = requestId, pending = false): Promise<readonly string[]> {
  const asked: string[] = []
  const kv = {
    get: async (_: string, keys: readonly unknown[]) => keys.map(() => null),
    position: async () => 0,
    async scan(scope: string, collection: string) {
      if (collection === 'annotating') asked.push(scope)
      return []
    },
  }
  const reads = openEventReads({
    kv,
    partitions: PARTITIONS,
    clock: systemClock,
    retentionDays: () => 90,
    clickhouse: { query: async () => [] },
    log: { at: async () => ({ seq: 7, bytes: recordOf(named) }) },
    sight: async () => ({ place, pending, original: null, complete: true }),
  })
  const found = await reads.byId(workspace, env, requestId)
  if (pending) t.equal(found, 'pending')
  else t.equal(found !== null, place !== null && named === requestId, `seed ${seed}`)
  return asked
}

const PLACE = { partition: 5, seq: 7, index: 0 }
const everyScope = Array.from({ length: PARTITIONS }, (_, partition) => partitionScope(partition)).sort()

t.test('an event whose place is known costs one question', async (t) => {
  t.same(await askedFor(PLACE), [partitionScope(5)])
})

t.test('of any other all partitions are asked, and of one that was taken for another', async (t) => {
  t.same([...(await askedFor(null))].sort(), everyScope)
  t.same([...new Set(await askedFor(PLACE, makeRequestId(1, openRandom())))].sort(), everyScope)
})

t.test('of one that seems to wait as well, since it may be stored by now', async (t) => {
  t.same([...(await askedFor(null, requestId, true))].sort(), everyScope)
})
