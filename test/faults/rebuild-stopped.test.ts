// A rebuild that does not come to its end leaves no copy of what events tell of visitors behind in ClickHouse.

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { rebuild } from '../../src/ops/rebuild.ts'
import { dropStagedVisits, STAGED_VISITS } from '../../src/sink/staged-visits.ts'
import { browserBody, CHROME, clientOf } from '../helpers/client.ts'
import { type Ops, quiet, withOps } from '../helpers/deployment.ts'
import { cleanUp, historyOpen, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(400_000)
t.teardown(cleanUp)

const dataDir = join(temporaryFolder(), 'data')
const server = await startServer({ dataDir })
await historyOpen(server)
await clientOf(server).identify({ ...browserBody('A GPU'), userAgent: CHROME })
await server.stop()
rmSync(join(dataDir, 'kv'), { recursive: true })

const stagedIn = async ({ clickhouse }: Ops): Promise<string[]> => {
  const sql = `SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, '${STAGED_VISITS}')`
  return (await clickhouse.query<{ name: string }>(sql)).map(({ name }) => name)
}

t.test('a rebuild that is told to stop drops its copy, wherever it is', async (t) => {
  for (const stage of ['history', 'partition 0']) {
    await withOps(dataDir, async (ops) => {
      const stopping = new AbortController()
      let staged: string[] = []
      const clickhouse = {
        ...ops.clickhouse,
        async command(sql: string, params?: Readonly<Record<string, unknown>>) {
          await ops.clickhouse.command(sql, params)
          if (sql.startsWith('CREATE TABLE')) staged = await stagedIn(ops)
        },
      }
      const progress = {
        ...quiet,
        begin(what: string, count: number | null) {
          if (what.startsWith(stage)) stopping.abort(new Error('told to stop'))
          quiet.begin(what, count)
        },
      }
      const stopped = rebuild({ ...ops, clickhouse, progress, stopping: stopping.signal })
      await t.rejects(stopped, /told to stop/, stage)
      t.equal(staged.length, 1, 'it had made one')
      t.same(await stagedIn(ops), [])
    })
  }
})

t.test('what a killed rebuild left is dropped by its age', async (t) => {
  await withOps(dataDir, async (ops) => {
    for (const ms of [1_000, 2_000]) {
      await ops.clickhouse.command(`CREATE TABLE ${STAGED_VISITS}${ms} (a UInt8) ENGINE = MergeTree ORDER BY a`)
    }
    await dropStagedVisits(ops.clickhouse, 2_000)
    t.same(await stagedIn(ops), [`${STAGED_VISITS}2000`])
    await dropStagedVisits(ops.clickhouse, 2_001)
    t.same(await stagedIn(ops), [])
  })
})
