// How soon a deployment serves: the bound is 3 s on an idle machine; here it may take three times that.

import t from 'tap'
import { cleanUp, startServer } from '../helpers/server.ts'

const READY_MS_MAX = 3_000
const SLOW_MACHINE = 3

t.setTimeout(60_000)
t.teardown(cleanUp)

t.test('an empty folder is ready in seconds, and a used one too', async (t) => {
  const empty = await startServer()
  const { dataDir, keys } = empty
  await empty.stop()
  const used = await startServer({ dataDir, keys })
  await used.stop()
  t.comment(`empty folder ${Math.round(empty.readyMs)} ms, used folder ${Math.round(used.readyMs)} ms`)
  t.ok(empty.readyMs <= READY_MS_MAX * SLOW_MACHINE)
  t.ok(used.readyMs <= READY_MS_MAX * SLOW_MACHINE)
})
