// SIGTERM: what was answered is durable, what was accepted is finished, and the process leaves by itself, in time.

import t from 'tap'
import { childrenOf, isAlive, pause, until } from '../helpers/processes.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp, launchServer, makeKeys, startServer, temporaryFolder } from '../helpers/server.ts'
import { checkAll, checkById } from './checker.ts'
import { SERVER_ENV } from './embedded.ts'
import { openLedger } from './ledger.ts'
import { openLoad } from './load.ts'
import { createRules, quiet } from './quiet.ts'

const EXIT_MS_MAX = 20_000
/** After the engine was spawned. */
const STARTING_MS = [0, 300, 900]

t.setTimeout(400_000)
t.teardown(cleanUp)

t.test('a drain under load loses nothing it answered, and more signals change nothing', async (t) => {
  const seed = testSeed()
  t.comment(`seed ${seed}`)
  const env = SERVER_ENV
  const first = await startServer({ env })
  const { url, keys, dataDir, port } = first
  const ledger = openLedger()
  const load = openLoad({ random: rng(seed), ledger, keys, url, connections: 12 })
  t.teardown(() => load.close())
  await createRules(load, first)

  const stopped = new AbortController()
  const running = load.run(stopped.signal)
  await pause(1_500)
  const children = childrenOf(first.pid)
  const from = performance.now()
  first.signal('SIGTERM')
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGTERM'] as const) {
    await pause(20)
    first.signal(signal)
  }
  t.equal(await first.exited, 0, 'exit code 0')
  const tookMs = Math.round(performance.now() - from)
  stopped.abort()
  await running
  t.comment(`left after ${tookMs} ms, ${ledger.counts.answered} answered, ${ledger.counts.unknown} unknown`)
  t.ok(tookMs < EXIT_MS_MAX)
  await until('its engine is gone', 60_000, () => !children.some(isAlive))
  t.notMatch(first.logs(), /"level":(50|60)/, 'no error was logged')

  ledger.nextEpoch()
  const second = await startServer({ env, dataDir, keys, port })
  await load.settle(90_000)
  await quiet(load, [second], 4)
  const to = { agent: load.agent, url, secret: keys.secret, ledger }
  const answered = ledger.attempts.filter(({ answer }) => answer !== null)
  t.equal(await checkById(to, answered), null, 'every answer can be read')
  const { violation, listed } = await checkAll(to)
  t.equal(violation, null)
  t.equal(listed, ledger.attempts.filter(({ answer }) => answer !== null).length, 'nothing else is listed')
  t.equal(await second.stop(), 0)
})

t.test('a stop before the start is over is a stop', async (t) => {
  const options = { dataDir: temporaryFolder(), keys: makeKeys() }
  for (const ms of STARTING_MS) {
    const launched = await launchServer(options)
    await until('it starts its engine', 60_000, () => childrenOf(launched.pid).length > 0)
    await pause(ms)
    const from = performance.now()
    const code = await launched.stop()
    t.equal(code, 0, `after ${Math.round(from - launched.startedAt)} ms`)
    t.ok(performance.now() - from < EXIT_MS_MAX)
  }
  const server = await startServer(options)
  t.equal(await server.stop(), 0, 'the folder is none the worse')
})
