// A shard that is lost while its process starts costs a moment, not the process.

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { browserBody, clientOf } from '../helpers/client.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

t.test('a server whose shard dies before it listens starts with another one in its place, and answers', async (t) => {
  const server = await startServer({
    nodeArgs: ['--import', fileURLToPath(new URL('./dies-once.js', import.meta.url))],
    env: {
      FINGERPOST_ENGINE_THREADS: '2',
      FINGERPOST_ENGINE_THREADS_MIN: '2',
      DIES_ONCE_FLAG: join(temporaryFolder(), 'died'),
    },
  })
  t.match(server.logs(), /a shard was lost and is started again/)
  const { identify } = clientOf(server)
  const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => identify(browserBody(`GPU ${i}`))))
  t.same([...new Set(answers.map(({ status }) => status))], [200])
  t.equal(await server.stop(), 0)
})
