// `fingerpost restore-drill` and the nightly backup as a person runs them: beside a running server, of a good backup and of a bad one.

import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { sealManifest } from '../../src/ops/backup-format.ts'
import { runProgram } from '../helpers/child.ts'
import { browserBody, clientOf } from '../helpers/client.ts'
import { answer, makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { cleanUp, historyOpen, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(600_000)
t.teardown(cleanUp)
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const SCRIPT = fileURLToPath(new URL('../../../deploy/systemd/backup.sh', import.meta.url))
const PASSPHRASE = { FINGERPOST_BACKUP_PASSPHRASE: 'correct horse battery' }

const folder = temporaryFolder()
const [source, work, nightly] = ['source', 'work', 'nightly'].map((name) => join(folder, name)) as [
  string,
  string,
  string,
]
mkdirSync(work)
const authority = makeAuthority(t)
const receiver = await openReceiver(t, authority.leaf('DNS:localhost'))
receiver.behave = answer(500)
const hooks = {
  FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
  FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
}
const server = await startServer({ dataDir: source, env: hooks })
await historyOpen(server)
const client = clientOf(server)
const key = server.keys.secret
const VISITS = 12

async function fill(): Promise<void> {
  const hook = { url: `https://localhost:${receiver.port}/`, events: ['identification'] }
  const answers = [
    await client.send('POST', '/v1/lists', { key, body: { name: 'Bad', type: 'ip' } }),
    await client.send('POST', '/v1/webhooks', { key, body: hook }),
  ]
  for (let n = 0; n < VISITS; n++) answers.push(await client.identify(browserBody(`GPU ${n}`)))
  for (const { status, body } of answers) if (status >= 300) throw new Error(JSON.stringify(body))
}
await fill()

const environment = { FINGERPOST_DATA_DIR: source, FINGERPOST_LOG_LEVEL: 'warn', ...hooks }
const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runProgram(process.execPath, [MAIN, ...args], { ...environment, ...env })

t.test(
  'a drill beside the running server tells what came back, sends nothing, and leaves nothing behind',
  async (t) => {
    const { code, said } = await run(['restore-drill', '--in', work])
    t.equal(code, 0, said)
    const counts = 'workspaces 1, keys 4, rules 0, lists 1, webhooks 1, identifications to be decided 0'
    t.match(said, new RegExp(`holds events ${VISITS}, visitors \\d+, ${counts}; ready after`))
    t.same(readdirSync(work), [])
    t.equal((await client.identify(browserBody())).status, 200, 'the server goes on')
  },
)

t.test('a backup that lacks something, was changed, or has no key is told of, with exit code 1', async (t) => {
  const saved = join(folder, 'saved')
  t.equal((await run(['backup', saved])).code, 0)
  const lacking = join(folder, 'lacking')
  cpSync(saved, lacking, { recursive: true })
  const manifest = JSON.parse(readFileSync(join(saved, 'manifest.json'), 'utf8'))
  const { kind: _, format: __, seal: ___, ...about } = manifest
  const claims = { ...about, configuration: { ...about.configuration, rules: 3 } }
  writeFileSync(join(lacking, 'manifest.json'), JSON.stringify(sealManifest(claims)))
  t.match(await run(['restore-drill', '--backup', lacking, '--in', work]), {
    code: 1,
    said: /0 rules, the backup had 3/,
  })

  const changed = join(folder, 'changed')
  cpSync(saved, changed, { recursive: true })
  copyFileSync(join(changed, 'dead.gz'), join(changed, 'rows.gz'))
  t.match(await run(['restore-drill', '--backup', changed, '--in', work]), { code: 1, said: /rows\.gz/ })

  const elsewhere = { FINGERPOST_WEBHOOKS_MASTER_KEY_FILE: join(folder, 'no-such.key') }
  t.match(await run(['restore-drill', '--backup', saved, '--in', work], elsewhere), {
    code: 1,
    said: /master key is missing/,
  })
  t.notOk(existsSync(elsewhere.FINGERPOST_WEBHOOKS_MASTER_KEY_FILE), 'a drill makes no key')
  t.same(readdirSync(work), [])
})

t.test(
  'the nightly backup names only what was drilled, keeps the newest, and has the key under a passphrase',
  async (t) => {
    const backUp = (keep: string, env = {}) =>
      runProgram('/bin/sh', [SCRIPT, nightly, keep, process.execPath, MAIN], { ...environment, ...env })
    for (let round = 0; round < 2; round++) {
      const { code, said } = await backUp('1', round === 1 ? PASSPHRASE : {})
      t.equal(code, 0, said)
      t.match(said, /drilled: /)
    }
    const kept = readdirSync(nightly).sort()
    t.equal(kept.length, 1)
    t.ok(
      kept.every((name) => /^\d{4}-\d\d-\d\dT[\d-]+Z$/.test(name)),
      kept.join(),
    )
    t.ok(readdirSync(join(nightly, kept[0] as string)).includes('master-key.json'))
    t.equal((await backUp('0')).code, 2)
    t.equal((await backUp('1', { FINGERPOST_DATA_DIR: join(folder, 'nowhere') })).code, 1)
    t.same(
      readdirSync(nightly)
        .filter((name) => !name.endsWith('.unfinished'))
        .sort(),
      kept,
      'a failure removes no backup',
    )
    t.equal(execFileSync('/bin/sh', ['-n', SCRIPT], { encoding: 'utf8' }), '')
  },
)

t.test('the copy has asked no receiver', async (t) => {
  await server.stop()
  const before = receiver.hits.length
  t.equal((await run(['restore-drill', '--in', work])).code, 0, 'also when the server does not run')
  t.equal(receiver.hits.length, before)
})
