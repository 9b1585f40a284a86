// Visitors behind more events of somebody else than are read at first are found all the same, on pages that go on where the last one ended.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { openEmbeddedClickHouse } from '../../src/clickhouse/embedded.ts'
import { migrate } from '../../src/clickhouse/migrate.ts'
import type { StoredEvent } from '../../src/domain/event.ts'
import { makeRequestId, requestTime } from '../../src/domain/ids.ts'
import { COLUMNS, EVENTS_TABLE, toRow } from '../../src/events/row.ts'
import type { VisitorState } from '../../src/identity/visitor.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { openRandom } from '../../src/lib/random.ts'
import { openEventRows } from '../../src/reads/event-rows.ts'
import { openVisitorSearch } from '../../src/reads/visitor-search.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { randomEvent } from '../helpers/stored-events.ts'

const folder = mkdtempSync(join(tmpdir(), 'fingerpost-search-'))
const clickhouse = await openEmbeddedClickHouse({
  dataDir: folder,
  database: 'fingerpost',
  clock: systemClock,
  log: { info() {}, warn() {} },
})
t.teardown(async () => {
  await clickhouse.close()
  rmSync(folder, { recursive: true, force: true })
})
await migrate(clickhouse, { database: 'fingerpost', retentionDays: 3_650, clock: systemClock })

const random = rng(testSeed())
const bytes = openRandom()
const nowMs = systemClock.now()
/** Newest first: many events of one, then a few of nine others, of whom each comes again. */
const MANY = 5_000
const OTHERS = 9
const idOf = (n: number) => `pv_${String(n).repeat(20)}`
const events = Array.from({ length: MANY + 3 * OTHERS }, (_, i): StoredEvent => {
  const timestamp = nowMs - 1_000 - i
  const visitorId = idOf(i < MANY ? 0 : 1 + ((i - MANY) % OTHERS))
  const identity = { method: 'new', anonymitySet: 1, candidates: 0, generation: 1 } as const
  const drawn = randomEvent(random, 'ws_default', i)
  return { ...drawn, timestamp, requestId: makeRequestId(timestamp, bytes), visitorId, identity }
})
const lines = events.map((event, i) => `${toRow(event, 0, i)}\n`)
await clickhouse.insert(EVENTS_TABLE, COLUMNS, Buffer.from(lines.join('')), { token: 'events' })

const kv = { scan: async () => [], position: async () => 0 }
const search = openVisitorSearch({
  rows: openEventRows({ clickhouse, kv, partitions: 1, clock: systemClock, retentionDays: () => 90 }),
  visitors: {
    idsOf: async (_, __, id) => [id],
    byId: async (_, __, id) => ({ id }) as VisitorState,
  },
})
/** Of each visitor its newest event. */
const expected = [events[0], ...events.slice(MANY, MANY + OTHERS)].map((event) => event?.requestId)

t.test('a visitor is found once, whatever lies before it and however long pages are', async (t) => {
  for (const limit of [1, 3, 4, 100]) {
    const found: string[] = []
    for (let from: Parameters<typeof search>[4] = null; ; ) {
      const page = await search('ws_default', 'live', { prefix: 'pv_' }, limit, from)
      found.push(...page.found.map(({ requestId }) => requestId))
      if (page.last === null) break
      from = { ts: requestTime(page.last) ?? 0, requestId: page.last }
    }
    t.same(found, expected, `by ${limit}`)
  }
})
