// What ClickHouse has acknowledged survives a power cut: rows that were inserted, also when they were merged since and the parts they
// came in are gone, and what was deleted. The real embedded engine on a disk that forgets what no flush followed.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type EmbeddedClickHouse, openEmbeddedClickHouse } from '../../src/clickhouse/embedded.ts'
import { migrate } from '../../src/clickhouse/migrate.ts'
import { COLUMNS, EVENTS_TABLE, toRow } from '../../src/events/row.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { eraseRows } from '../../src/sink/erase.ts'
import { sized } from '../helpers/depth.ts'
import { isAlive, until } from '../helpers/processes.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { randomEvent } from '../helpers/stored-events.ts'
import { missingForCutDisk, openCutDisk } from './cut-disk.ts'

type Event = ReturnType<typeof randomEvent>

const DATABASE = 'fingerpost'
const INSERTS = 8
const ROWS = 25
const MONDAY = Date.UTC(2026, 9, 5)
const MERGED_MS_MAX = 60_000
/** The engine looks for parts to remove every half minute. */
const CUTS = sized({ usual: 2, long: 5 })

t.setTimeout(300_000)
t.teardown(cleanUp)

async function openOnCutDisk(t: Test, random: Rng) {
  const disk = await openCutDisk()
  const open = () =>
    openEmbeddedClickHouse({
      dataDir: join(disk.dir, 'history'),
      database: DATABASE,
      clock,
      lockWaitMsMax: 10_000,
      log: { info() {}, warn() {} },
    })
  let clickhouse = await open()
  t.teardown(async () => {
    await clickhouse.close()
    await disk.remove()
  })
  await migrate(clickhouse, { database: DATABASE, retentionDays: 3_650, clock })
  let seq = 0
  const events: Event[] = []
  return {
    events,
    get clickhouse() {
      return clickhouse
    },
    async insert(rows: number) {
      const some = Array.from({ length: rows }, () => ({
        ...randomEvent(random, 'ws', seq),
        timestamp: MONDAY + seq++,
      }))
      const lines = some.map((event, at) => `${toRow(event, 3, events.length + at + 1)}\n`)
      await clickhouse.insert(EVENTS_TABLE, COLUMNS, Buffer.from(lines.join('')), { token: `range ${seq}` })
      events.push(...some)
    },
    /** The machine is off, and on again. */
    async cut() {
      const pid = clickhouse.pid() as number
      process.kill(pid, 'SIGSTOP')
      await disk.cutPower()
      process.kill(pid, 'SIGKILL')
      await until('the engine is gone', MERGED_MS_MAX, () => !isAlive(pid))
      await clickhouse.close()
      t.comment(JSON.stringify(await disk.restorePower(random)))
      clickhouse = await open()
    },
  }
}

const seqsOf = async (clickhouse: EmbeddedClickHouse): Promise<number[]> =>
  (await clickhouse.query<{ seq: number }>(`SELECT log_seq AS seq FROM ${EVENTS_TABLE} ORDER BY seq`)).map(
    ({ seq }) => seq,
  )

const lacking = missingForCutDisk()
if (lacking !== null) t.pass(`NOT RUN: ${lacking}`)
else {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const random = rng(seed)

  t.test('rows survive a power cut when they were merged and the parts they came in are gone', async (t) => {
    const history = await openOnCutDisk(t, random)
    for (let cut = 0; cut < CUTS; cut++) {
      for (let insert = 0; insert < INSERTS; insert++) await history.insert(ROWS)
      await history.clickhouse.command(`OPTIMIZE TABLE ${EVENTS_TABLE} FINAL`)
      await until('one part is left on the disk', MERGED_MS_MAX, async () => {
        const [row] = await history.clickhouse.query<{ parts: number }>(
          `SELECT count() AS parts FROM system.parts WHERE table = '${EVENTS_TABLE}' AND database = '${DATABASE}'`,
        )
        return row?.parts === 1
      })
      // Its flush is one of the removals as well.
      await history.insert(1)
      await history.cut()
      t.same(
        await seqsOf(history.clickhouse),
        history.events.map((_, at) => at + 1),
      )
    }
  })

  t.test('what was deleted stays deleted', async (t) => {
    const history = await openOnCutDisk(t, random)
    for (let insert = 0; insert < 2; insert++) await history.insert(ROWS)
    const gone = new Set<string>()
    for (let cut = 0; cut < CUTS; cut++) {
      const { workspace, env, visitorId } = history.events[3 + cut] as Event
      const erasure = { workspace, env, visitorId, erasureId: `era_${cut}`, at: clock.now() }
      await eraseRows(history.clickhouse, erasure, 3, 'test')
      gone.add(visitorId)
      await history.cut()
      const kept = history.events.flatMap((event, at) => (gone.has(event.visitorId) ? [] : [at + 1]))
      t.same(await seqsOf(history.clickhouse), kept)
    }
  })
}
