// A drill that is told to stop, wherever it is: it ends with 1, and neither its backup nor its copy of the deployment stays behind.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { browserBody, clientOf } from '../helpers/client.ts'
import { until } from '../helpers/processes.ts'
import { cleanUp, historyOpen, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(400_000)
t.teardown(cleanUp)
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const STEP_MS_MAX = 60_000

const folder = temporaryFolder()
const [source, work] = ['source', 'work'].map((name) => join(folder, name)) as [string, string]
mkdirSync(work)
const server = await startServer({ dataDir: source })
await historyOpen(server)
await clientOf(server).identify(browserBody('A GPU'))

/** The copy's folder has something of this name. */
const has = (name: string) => readdirSync(work).some((drill) => existsSync(join(work, drill, name)))

/** Starts a drill, sends `signal` as soon as `isThere` holds, and tells how it ended. */
async function stopDrill(signal: NodeJS.Signals, isThere: (said: string) => boolean) {
  const { PATH = '', HOME = '' } = process.env
  const env = { PATH, HOME, FINGERPOST_DATA_DIR: source, FINGERPOST_LOG_LEVEL: 'warn' }
  const child = spawn(process.execPath, [MAIN, 'restore-drill', '--in', work], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      said += chunk
    })
  }
  const closed = once(child, 'close')
  await until('the step to stop at', STEP_MS_MAX, () => isThere(said) || child.exitCode !== null)
  child.kill(signal)
  child.kill(signal)
  const [code, killedBy] = await closed
  return { code, killedBy, said }
}

const STEPS: readonly [step: string, signal: NodeJS.Signals, isThere: (said: string) => boolean][] = [
  ['while the running server writes the backup', 'SIGINT', () => has('backup')],
  ['while it writes the backup', 'SIGTERM', () => has('backup')],
  ['while it restores', 'SIGHUP', () => has('data')],
  ['while the copy is counted and runs', 'SIGINT', (said) => said.includes('configuration: ')],
]

for (const [at, [step, signal, isThere]] of STEPS.entries()) {
  t.test(`a drill that gets ${signal} ${step} leaves nothing behind`, async (t) => {
    if (at === 1) await server.stop()
    const { code, killedBy, said } = await stopDrill(signal, isThere)
    t.equal(killedBy, null)
    t.equal(code, 1, said)
    t.match(said, /^fingerpost: stopped: the copy is thrown away$/m)
    t.same(readdirSync(work), [])
  })
}
