// Hand-over between shards of a process with embedded storage, and of one that shares its log with others.

import t from 'tap'
import { must } from '../../src/lib/must.ts'
import { startCluster } from '../helpers/cluster.ts'
import { cleanUp, startServer } from '../helpers/server.ts'
import { PARTITIONS, SHARDS, testHandOver } from './hand-over.ts'

t.teardown(cleanUp)

const env = { FINGERPOST_ENGINE_THREADS: String(SHARDS), FINGERPOST_ENGINE_THREADS_MIN: String(SHARDS) }

t.test('embedded', async (t) => {
  const own = { FINGERPOST_DATA_PARTITIONS: String(PARTITIONS), FINGERPOST_LOG_DURABILITY: 'relaxed' }
  await testHandOver(t, await startServer({ env: { ...env, ...own } }))
})

t.test('in a cluster', async (t) => {
  const { members, stop } = await startCluster({ roles: ['all'], partitions: PARTITIONS, env })
  t.teardown(stop)
  await testHandOver(t, must(members[0], 'a process').server)
})
