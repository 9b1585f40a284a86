// A backup that fails in a process that goes on: the running server writes backups too.

import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { backup } from '../../src/ops/backup.ts'
import { openFrames } from '../../src/ops/backup-files.ts'
import { finishDeployment } from '../../src/ops/rebuild-config.ts'
import { DECIDED_TO, ENGINE_POSITION, partitionScope, SINK_POSITION } from '../../src/records/partitions.ts'
import { createWorkspace, openPorts, PARTITIONS, prepare, startOwner, startSubmit } from '../helpers/control-plane.ts'
import { quiet } from '../helpers/deployment.ts'
import { temporaryFolder } from '../helpers/server.ts'

const openIn = (dir: string): string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`)
      return path.startsWith(dir) ? [path] : []
    } catch {
      return []
    }
  })

t.test('a backup that fails leaves no file open, wherever it fails', async (t) => {
  const ports = await openPorts(t)
  await prepare(ports)
  const owner = startOwner(t, ports)
  await startSubmit(t, ports)(createWorkspace('ws_1'))
  await owner.stop()
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const scope = partitionScope(partition)
    for (const source of [ENGINE_POSITION, SINK_POSITION]) {
      if ((await ports.kv.position(scope, source)) !== null) continue
      await ports.kv.commit([{ scope, guard: { source, expect: null, next: 0 } }])
    }
    await ports.kv.commit([{ scope, put: [{ key: DECIDED_TO, value: 0 }] }])
  }
  await finishDeployment(ports.kv, PARTITIONS)
  const away = () => Promise.reject(new Error('the store is away'))
  const shared = { clock: systemClock, partitions: PARTITIONS, deployment: 'd', product: 'test', progress: quiet }
  const rows = temporaryFolder()
  await t.rejects(backup({ ...ports, ...shared, clickhouse: { query: away } }, rows), /the store is away/)
  t.ok(readdirSync(rows).length > 0, 'it had begun')
  t.same(openIn(rows), [])
  const state = temporaryFolder()
  const kv = { ...ports.kv, walk: () => ({ [Symbol.asyncIterator]: () => ({ next: away }) }) }
  await t.rejects(backup({ ...ports, kv, ...shared, clickhouse: { query: away } }, state), /the store is away/)
  t.ok(readdirSync(state).length > 0, 'it had begun')
  t.same(openIn(state), [])
})

t.test('a file that is given up is closed at once, also one that could not be made', async (t) => {
  const dir = temporaryFolder()
  const out = openFrames(dir, 'one.gz')
  await out.write(Buffer.alloc(100_000))
  await out.abandon()
  t.same(openIn(join(dir)), [])
  const again = openFrames(dir, 'one.gz')
  await t.rejects(again.close(), { code: 'EEXIST' })
  await again.abandon()
  t.same(openIn(dir), [])
})
