// The embedded engine keeps the contract of the ClickHouse port, and its process never outlives its owner.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
import { type EmbeddedClickHouse, openEmbeddedClickHouse } from '../../src/clickhouse/embedded.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { must } from '../../src/lib/must.ts'
import { sized } from '../helpers/depth.ts'
import { clickhouseContract } from './clickhouse.ts'

/** The quick run kills and restarts no engine. */
const WHOLE = sized({ quick: false, usual: true, long: true })
const SOURCES = fileURLToPath(new URL('../../src', import.meta.url))
const quiet = { info() {}, warn() {} }
const openAt = (dataDir: string, database: string, lockWaitMsMax = 60_000) =>
  openEmbeddedClickHouse({ dataDir, database, clock: systemClock, log: quiet, lockWaitMsMax })

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'fingerpost-clickhouse-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const alive = (pid: number) => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  // A process that ended stays in the table until its parent collects it.
  const stat = `/proc/${pid}/stat`
  return !existsSync(stat) || !/\) Z /.test(readFileSync(stat, 'utf8'))
}

async function gone(pid: number, msMax: number): Promise<boolean> {
  const deadline = performance.now() + msMax
  while (alive(pid) && performance.now() < deadline) await systemClock.sleep(20)
  return !alive(pid)
}

clickhouseContract(t, 'the embedded engine', async () => {
  const dataDir = temporary()
  let engine: EmbeddedClickHouse = await openAt(dataDir, 'fingerpost')
  return {
    clickhouse: engine,
    async kill() {
      const pid = must(engine.pid())
      process.kill(pid, 'SIGKILL')
      await gone(pid, 30_000)
    },
    async restart() {
      await engine.close()
      engine = await openAt(dataDir, 'fingerpost')
      return engine
    },
  }
})

t.test('the engine ignores the signals of its group, keeps its folder to itself, and ends with close', async (t) => {
  const dataDir = temporary()
  const engine = await openAt(dataDir, 'default')
  t.teardown(() => engine.close())
  const pid = must(engine.pid())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.kill(pid, signal)
  await t.rejects(openAt(dataDir, 'default', 300), {
    message: new RegExp(`Another process uses the data folder ${dataDir}`),
  })
  t.same(await engine.query('SELECT 1 AS one'), [{ one: 1 }])
  t.equal(engine.pid(), pid)
  await Promise.all([engine.close(), engine.close()])
  t.notOk(alive(pid))
})

if (WHOLE) {
  t.test('the engine dies with a killed parent, and the next owner gets the folder', async (t) => {
    const dataDir = temporary()
    const module = pathToFileURL(join(SOURCES, 'clickhouse/embedded.js')).href
    const clock = pathToFileURL(join(SOURCES, 'lib/clock.js')).href
    const script = `
      const { openEmbeddedClickHouse } = await import(${JSON.stringify(module)})
      const { systemClock } = await import(${JSON.stringify(clock)})
      const log = { info() {}, warn() {} }
      const engine = await openEmbeddedClickHouse({ dataDir: ${JSON.stringify(dataDir)}, database: 'default', clock: systemClock, log })
      engine.query('SELECT sleep(3)').catch(() => {})
      setTimeout(() => console.log(engine.pid()), 200)`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [output] = await once(parent.stdout, 'data')
    const pid = Number(output)
    t.ok(alive(pid))
    parent.kill('SIGKILL')
    const engine = await openAt(dataDir, 'default')
    t.teardown(() => engine.close())
    t.ok(await gone(pid, 30_000))
    t.same(await engine.query('SELECT 1 AS one'), [{ one: 1 }])
  })
}

t.test('without chdb the failure says what to install', async (t) => {
  const folder = temporary()
  cpSync(join(SOURCES, 'clickhouse'), join(folder, 'clickhouse'), { recursive: true })
  cpSync(join(SOURCES, 'lib'), join(folder, 'lib'), { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  mkdirSync(join(folder, 'node_modules'))
  const client = dirname(dirname(dirname(fileURLToPath(import.meta.resolve('@clickhouse/client')))))
  symlinkSync(client, join(folder, 'node_modules/@clickhouse'))
  const { openEmbeddedClickHouse: open } = await import(pathToFileURL(join(folder, 'clickhouse/embedded.js')).href)
  const opening = open({ dataDir: join(folder, 'data'), database: 'default', clock: systemClock, log: quiet })
  // Found all the same where a folder above has it: then the test fails, and nothing stays behind.
  t.teardown(() => opening.then((engine: { close(): Promise<void> }) => engine.close()).catch(() => undefined))
  await t.rejects(opening, { message: /npm i chdb@3\.4\.0/ })
})
