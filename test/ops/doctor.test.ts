// The doctor: each thing that is wrong is found, told with what mends it, and ends the command with 1; nothing is found where nothing is.

import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { lastBackup, markBackup } from '../../src/ops/backup-mark.ts'
import { type Finding, findingsText, isWell } from '../../src/ops/doctor/finding.ts'
import { findFresh } from '../../src/ops/doctor/fresh.ts'
import { findNative, findPresent, findPrivate } from '../../src/ops/doctor/local.ts'
import { findReachable } from '../../src/ops/doctor/reach.ts'
import { runProgram } from '../helpers/child.ts'
import { freePort } from '../helpers/port.ts'
import { authorityIn } from '../helpers/receiver.ts'
import { cleanUp, makeKeys, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const DAY_MS = 86_400_000
const FORMAT = '{"format":2,"createdAt":"2026-01-01T00:00:00.000Z","partitions":4}'
const NOW = Date.UTC(2026, 10, 23)

const said = (findings: readonly Finding[], name: string) =>
  findings.filter((finding) => finding.name === name).map(({ level, says }) => [level, says] as const)
const levels = (findings: readonly Finding[], name: string) => said(findings, name).map(([level]) => level)

function madeFolder(): string {
  const dir = join(temporaryFolder(), 'data')
  mkdirSync(dir, { mode: 0o700 })
  writeFileSync(join(dir, 'format.json'), FORMAT, { mode: 0o600 })
  writeFileSync(join(dir, 'master.key'), 'ab'.repeat(32), { mode: 0o600 })
  return dir
}

t.test('what is native is told of this machine, and a driver that is asked for in vain is to be mended', async (t) => {
  const found = await findNative(readConfig({}))
  t.ok(isWell(found))
  t.match(said(found, 'Node.js'), [[/ok|note/, process.version]])
  t.same(
    found.map(({ name }) => name),
    ['Node.js', 'HTTP', 'LMDB', 'ClickHouse'],
  )
  t.same(levels(await findNative(readConfig({ FINGERPOST_HTTP_DRIVER: 'node' })), 'HTTP'), ['note'])
  const cluster = await findNative(readConfig({ FINGERPOST_DEPLOYMENT_MODE: 'cluster' }))
  t.same(
    cluster.map(({ name }) => name),
    ['Node.js', 'HTTP'],
    'a cluster needs no engine of its own',
  )
})

t.test('what is missing of a deployment is to be mended, and a folder that is not there yet is not', async (t) => {
  const dir = madeFolder()
  const env = { FINGERPOST_DATA_DIR: dir }
  t.ok(isWell(findPresent(readConfig(env))))
  t.same(levels(findPresent(readConfig({ FINGERPOST_DATA_DIR: join(dir, 'later') })), 'data folder'), ['note'])
  t.notOk(existsSync(join(dir, 'later')), 'it makes nothing')
  const full = { ...env, FINGERPOST_DATA_FREE_BYTES_MIN: '900000000000000' }
  t.same(levels(findPresent(readConfig(full)), 'disk'), ['bad'])
  const key = { ...env, FINGERPOST_WEBHOOKS_MASTER_KEY_FILE: join(dir, 'elsewhere.key') }
  t.same(levels(findPresent(readConfig(key)), 'master key'), ['bad'])
  const tls = { ...env, FINGERPOST_TLS_CERT_FILE: '/nowhere.pem', FINGERPOST_TLS_KEY_FILE: '/nowhere.key' }
  const found = findPresent(readConfig(tls))
  t.match(
    [said(found, 'TLS certificate'), said(found, 'TLS key')],
    [[['bad', /nowhere\.pem/]], [['bad', /nowhere\.key/]]],
  )
})

t.test('a certificate that is none is one finding, and a good one with its key is none to mend', async (t) => {
  const dir = temporaryFolder()
  const { cert, key } = authorityIn(dir).leaf('DNS:localhost')
  const [certFile, keyFile] = [join(dir, 'cert.pem'), join(dir, 'key.pem')]
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  const env = {
    FINGERPOST_DATA_DIR: madeFolder(),
    FINGERPOST_TLS_CERT_FILE: certFile,
    FINGERPOST_TLS_KEY_FILE: keyFile,
  }
  const found = async () => [...findPresent(readConfig(env)), ...(await findFresh(readConfig(env), Date.now(), ''))]
  const well = await found()
  t.ok(isWell(well))
  t.same(said(well, 'TLS key'), [['ok', keyFile]])
  writeFileSync(certFile, 'no PEM at all')
  t.match(said(await found(), 'TLS certificate'), [['bad', /cert\.pem holds no certificate/]])
  t.equal(said(await found(), 'TLS certificate').length, 1)
})

t.test('a folder that a start would refuse is to be mended', async (t) => {
  const dir = madeFolder()
  const present = (env = {}) => findPresent(readConfig({ FINGERPOST_DATA_DIR: dir, ...env }))
  writeFileSync(join(dir, 'format.json'), FORMAT.replace('2', '99'))
  t.match(said(present(), 'data folder'), [['bad', /has format 99/]])
  writeFileSync(join(dir, 'format.json'), '{}')
  t.match(said(present(), 'data folder'), [['bad', /format\.json is damaged/]])
  writeFileSync(join(dir, 'format.json'), FORMAT)
  writeFileSync(join(dir, 'master.key'), 'no key')
  t.match(said(present(), 'master key'), [['bad', /holds no master key/]])
  const file = join(dir, 'format.json')
  t.match(said(present({ FINGERPOST_DATA_DIR: file }), 'data folder'), [['bad', /format\.json/]])
})

t.test('a folder that this user may not enter is a finding', async (t) => {
  const dir = madeFolder()
  const config = readConfig({ FINGERPOST_DATA_DIR: dir })
  const isRoot = process.getuid?.() === 0
  chmodSync(dir, 0)
  if (isRoot) process.seteuid?.('nobody')
  const found = [...findPresent(config), ...findPrivate(config, '')]
  if (isRoot) process.seteuid?.(0)
  chmodSync(dir, 0o700)
  t.match(said(found, 'data folder'), [['bad', /EACCES/]])
})

t.test(
  'files that others can read are named with what closes them, a file of settings where it holds a secret',
  async (t) => {
    const dir = madeFolder()
    const settings = join(temporaryFolder(), 'settings.json')
    for (const content of [
      { http: { port: 8080 }, keys: { public: 'pk_live_x' } },
      { redis: { url: 'redis://redis:6379' } },
    ]) {
      writeFileSync(settings, JSON.stringify(content), { mode: 0o644 })
      t.ok(isWell(findPrivate(readConfig({ FINGERPOST_DATA_DIR: dir }), settings)), JSON.stringify(content))
    }
    writeFileSync(settings, '{"redis":{"url":"redis://:hidden@redis:6379"}}')
    const named = { ...readConfig({ FINGERPOST_DATA_DIR: dir }), 'config.file': settings }
    t.notOk(isWell(findPrivate(named, '')), 'whichever name it was given by')
    chmodSync(settings, 0o600)
    const config = readConfig({ FINGERPOST_DATA_DIR: dir })
    t.ok(isWell(findPrivate(config, settings)))
    for (const [path, mode, closed] of [
      [dir, 0o755, 0o700],
      [join(dir, 'master.key'), 0o640, 0o600],
      [settings, 0o604, 0o600],
    ] as const) {
      chmodSync(path, mode)
      const [finding, ...others] = findPrivate(config, settings).filter(({ level }) => level === 'bad')
      t.match(finding, { name: 'files', says: `others can read ${path}`, mend: `chmod go= ${path}` })
      t.same(others, [])
      chmodSync(path, closed)
    }
  },
)

t.test('keys that can be guessed or are used twice are to be mended, and none of them is shown', async (t) => {
  const keys = makeKeys()
  const env = {
    FINGERPOST_DATA_DIR: join(temporaryFolder(), 'none'),
    FINGERPOST_SECRET_KEY: keys.secret,
    FINGERPOST_OPERATOR_TOKEN: 'correct-horse-battery-staple-0123456789',
  }
  const found = findPrivate(readConfig(env), '')
  t.ok(isWell(found))
  t.notMatch(findingsText(found), keys.secret)
  for (const token of ['change-me-change-me-change-me-change-me', '0123012301230123012301230123012301']) {
    const weak = findPrivate(readConfig({ ...env, FINGERPOST_OPERATOR_TOKEN: token }), '')
    t.match(said(weak, 'keys'), [['bad', 'operator.token can be guessed']])
    t.notMatch(findingsText(weak), token)
  }
  const doubled = findPrivate(readConfig({ ...env, FINGERPOST_OPERATOR_TOKEN: keys.secret }), '')
  t.same(levels(doubled, 'keys'), ['bad', 'bad'])
  const open = { ...env, FINGERPOST_HOST: '0.0.0.0', FINGERPOST_ALLOW_PLAIN_HTTP: 'true' }
  t.match(said(findPrivate(readConfig(open), ''), 'settings'), [['note', /plain HTTP/]])
})

async function serverThat(t: Test, status: number, body: object): Promise<string> {
  const port = await freePort()
  const server = createServer((_, response) => response.writeHead(status).end(JSON.stringify(body)))
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return String(port)
}

t.test('a server that is not ready is to be mended with its own words, one that does not run is none', async (t) => {
  const ask = async (port: string) =>
    said(await findReachable(readConfig({ FINGERPOST_PORT: port }), systemClock), 'server')
  t.match(await ask(await serverThat(t, 200, { status: 'ready' })), [['ok', /ready/]])
  const failing = { failing: ['log'], checks: { log: 'the disk is nearly full', kv: null } }
  t.match(await ask(await serverThat(t, 503, failing)), [['bad', /log: the disk is nearly full/]])
  t.match(await ask(String(await freePort())), [['note', /none answers .*ECONNREFUSED/]])
})

t.test('a proxy in front that the server does not trust is told with what mends it', async (t) => {
  const advice = [{ code: 'untrusted_proxy', says: 'visitors are passed on', mend: 'set FINGERPOST_TRUSTED_PROXIES' }]
  const port = await serverThat(t, 200, { status: 'ready', advice })
  const found = await findReachable(readConfig({ FINGERPOST_PORT: port }), systemClock)
  t.same(said(found, 'proxy'), [['note', 'visitors are passed on']])
  t.match(findingsText(found), /→ set FINGERPOST_TRUSTED_PROXIES/)
})

t.test('servers of a cluster that cannot be reached are named without their passwords', async (t) => {
  const [nats, redis, clickhouse] = [await freePort(), await freePort(), await freePort()]
  const found = await findReachable(
    readConfig({
      FINGERPOST_DEPLOYMENT_MODE: 'cluster',
      FINGERPOST_PORT: String(await freePort()),
      FINGERPOST_NATS_SERVERS: `nats://127.0.0.1:${nats}`,
      FINGERPOST_REDIS_URL: `redis://:hidden@127.0.0.1:${redis}`,
      FINGERPOST_CLICKHOUSE_URL: `http://127.0.0.1:${clickhouse}`,
      FINGERPOST_CLICKHOUSE_PASSWORD: 'hidden',
    }),
    systemClock,
  )
  for (const name of ['NATS', 'Redis', 'ClickHouse']) t.same(levels(found, name), ['bad'], name)
  t.notMatch(findingsText(found), 'hidden')
})

t.test('data about addresses and backups have an age, and what was never fetched is to be mended', async (t) => {
  const dir = madeFolder()
  const env = { FINGERPOST_DATA_DIR: dir }
  const none = await findFresh(readConfig(env), NOW, '')
  t.same([levels(none, 'IP data'), levels(none, 'backup')], [['note'], ['note']])
  t.match(findingsText(none), /undetermined: vpn, proxy, tor and country\n +→ fingerpost data update --recommended/)
  t.ok(isWell(none))

  const list = join(dir, 'tor.txt')
  writeFileSync(list, '192.0.2.1\n')
  const age = async (source: string, days: number) => {
    utimesSync(list, (NOW - days * DAY_MS) / 1_000, (NOW - days * DAY_MS) / 1_000)
    const config = readConfig({ ...env, [`FINGERPOST_IP_${source.toUpperCase()}_FILE`]: list })
    return said(await findFresh(config, NOW, ''), `IP data, ${source}`)
  }
  t.same(await age('tor', 1), [['ok', '1.0 days old']])
  t.same(await age('tor', 3), [['note', '3.0 days old']])
  t.same(await age('vpn', 30), [['ok', '30.0 days old']])
  t.same(await age('vpn', 36), [['note', '36.0 days old']])
  const fetched = { ...env, FINGERPOST_IP_TOR_URL: 'https://lists.example/tor' }
  t.match(
    (await findFresh(readConfig(fetched), NOW, '')).find(({ level }) => level === 'bad'),
    {
      name: 'IP data, tor',
      mend: 'fingerpost data update',
    },
  )

  t.equal(lastBackup(dir), null)
  markBackup(dir, new Date(NOW - 2 * DAY_MS).toISOString())
  t.equal(statSync(join(dir, 'last-backup.json')).mode & 0o077, 0)
  t.same(said(await findFresh(readConfig(env), NOW, ''), 'backup'), [['ok', '2.0 days old']])
  t.same(levels(await findFresh(readConfig(env), NOW + 6 * DAY_MS, ''), 'backup'), ['note'])
  t.same(levels(await findFresh(readConfig(env), NOW, dir), 'backup'), ['bad'], 'a folder that is no backup')
})

t.test('a certificate that has ended is to be mended, and one that soon will is told of', async (t) => {
  const dir = temporaryFolder()
  const leaf = authorityIn(dir).leaf('DNS:localhost')
  const file = join(dir, 'leaf.pem')
  writeFileSync(file, leaf.cert)
  const config = readConfig({ FINGERPOST_TLS_CERT_FILE: file, FINGERPOST_TLS_KEY_FILE: file })
  t.same(levels(await findFresh(config, Date.now(), ''), 'TLS certificate'), ['note'])
  t.same(levels(await findFresh(config, Date.now() + 30 * DAY_MS, ''), 'TLS certificate'), ['bad'])
})

t.test(
  'fingerpost doctor ends with 0 when nothing must be mended and with 1 otherwise, as text and as JSON',
  async (t) => {
    const dir = madeFolder()
    const env = { FINGERPOST_DATA_DIR: dir, FINGERPOST_PORT: String(await freePort()) }
    const well = await runProgram(process.execPath, [MAIN, 'doctor'], env)
    t.equal(well.code, 0, well.said)
    for (const topic of ['native', 'present', 'private', 'reachable', 'fresh'])
      t.match(well.said, new RegExp(`^${topic}$`, 'm'))
    chmodSync(join(dir, 'master.key'), 0o644)
    const { code, said } = await runProgram(process.execPath, [MAIN, 'doctor', '--json'], env)
    t.equal(code, 1)
    const { ok, findings } = JSON.parse(said) as { ok: boolean; findings: Finding[] }
    t.equal(ok, false)
    t.match(
      findings.filter(({ level }) => level === 'bad'),
      [{ topic: 'private', name: 'files', mend: /^chmod/ }],
    )
    t.equal(readFileSync(join(dir, 'format.json'), 'utf8'), FORMAT, 'it changes nothing')
  },
)
