// `fingerpost backup` and `restore` as a person runs them: beside a running server, with the master key and without it.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runProgram } from '../helpers/child.ts'
import { browserBody, CHROME, clientOf } from '../helpers/client.ts'
import { cleanUp, historyOpen, type Server, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(400_000)
t.teardown(cleanUp)
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const PASSPHRASE = { FINGERPOST_BACKUP_PASSPHRASE: 'correct horse battery' }

const run = (dataDir: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runProgram(process.execPath, [MAIN, ...args], {
    FINGERPOST_DATA_DIR: dataDir,
    FINGERPOST_LOG_LEVEL: 'silent',
    ...env,
  })

async function visit(server: Server, storageToken?: string) {
  const body = { ...browserBody('A GPU'), userAgent: CHROME, ...(storageToken === undefined ? {} : { storageToken }) }
  const { status, body: event } = await clientOf(server).identify(body)
  if (status !== 200) throw new Error(`identify answers ${status}`)
  return event
}

const folder = temporaryFolder()
const [source, saved, bare] = ['source', 'saved', 'bare'].map((name) => join(folder, name)) as [string, string, string]
const server = await startServer({ dataDir: source })
await historyOpen(server)
const { storageToken, visitorId } = await visit(server)

t.test('a backup is made beside a running server, with its master key only under a passphrase', async (t) => {
  const refused = await run(source, ['backup', saved, '--with-master-key'])
  t.match(refused, { code: 1, said: /needs backup.passphrase/ })
  const short = await run(source, ['backup', saved, '--with-master-key'], { FINGERPOST_BACKUP_PASSPHRASE: 'short' })
  t.match(short, { code: 1, said: /at least 12 characters/ })
  t.match(await run(source, ['backup', saved, '--with-master-key'], PASSPHRASE), {
    code: 0,
    said: /with the master key/,
  })
  t.match(await run(source, ['backup', bare]), { code: 0, said: /without the master key: keep a copy/ })
  const full = await run(source, ['backup', bare])
  t.match(full, { code: 1, said: /^the running server [^\n]* failed\nfingerpost: [^\n]*is not empty[^\n]*\n$/ })
  const key = readFileSync(join(source, 'master.key'), 'utf8').trim()
  for (const dir of [saved, bare]) {
    for (const name of readdirSync(dir)) {
      const bytes = readFileSync(join(dir, name))
      t.notOk(bytes.includes(key) || bytes.includes(Buffer.from(key, 'hex')), `${name} has no key in clear`)
    }
  }
  t.equal((await visit(server, storageToken)).visitorId, visitorId, 'the server goes on')
})

t.test('a restore opens the key, or says in its line that secrets cannot be opened', async (t) => {
  const target = join(folder, 'target')
  mkdirSync(target)
  const wrong = await run(target, ['restore', saved], { FINGERPOST_BACKUP_PASSPHRASE: 'another passphrase' })
  t.match(wrong, { code: 1, said: /does not open with this passphrase/ })
  const restored = await run(target, ['restore', saved], PASSPHRASE)
  t.match(restored, { code: 0, said: /restored: / })
  t.notMatch(restored.said, /cannot be opened/)
  const there = await startServer({ dataDir: target, keys: server.keys })
  t.equal((await visit(there, storageToken)).visitorId, visitorId, 'tokens are known there')
  t.equal(await there.stop(), 0)

  const lost = join(folder, 'lost')
  mkdirSync(lost)
  t.match(await run(lost, ['restore', bare]), { code: 0, said: /1 secrets cannot be opened.*--accept-lost-secrets/ })
  const closed = await startServer({ dataDir: lost, keys: server.keys, until: '/healthz' })
  const response = await fetch(`${closed.url}/readyz`)
  t.equal(response.status, 503)
  t.match(await response.json(), { failing: ['secrets'] })
  t.equal(await closed.stop(), 0)
})
