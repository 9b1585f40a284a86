// The files for NATS, Redis and ClickHouse, read by the real programs where they are installed.

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { SETTINGS } from '../../src/settings.ts'
import { freePort } from '../helpers/port.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'
import { environmentOf, processes, read, services } from './deploy.ts'

t.teardown(cleanUp)

const SECRETS = {
  NATS_NAME: 'nats-1',
  NATS_PASSWORD: 'psecret',
  NATS_ROUTE_PASSWORD: 'proute',
  NATS_ROUTE_1: 'nats-route://route:proute@nats-1:6222',
  NATS_ROUTE_2: 'nats-route://route:proute@nats-2:6222',
  NATS_ROUTE_3: 'nats-route://route:proute@nats-3:6222',
}

/** What /etc of the container would say to `nats-server -t`; servers before 2.10 do not know sync_interval. */
function checkNats(
  config: string,
  env: Record<string, string>,
): { readonly status: number | null; readonly said: string } {
  const version = execFileSync('nats-server', ['--version'], { encoding: 'utf8' })
  const [major = 0, minor = 0] = (/v(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number)
  const known = major > 2 || minor >= 10 ? config : config.replace(/^ *sync_interval.*\n/m, '')
  const file = join(temporaryFolder(), 'nats.conf')
  writeFileSync(file, known)
  const { status, stdout, stderr } = spawnSync('nats-server', ['-t', '-c', file], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...env },
  })
  return { status, said: stdout + stderr }
}

t.test('nats-server accepts its file with the secrets, and not without them', async (t) => {
  const config = read('deploy/nats/nats.conf')
  const accepted = checkNats(config, SECRETS)
  t.equal(accepted.status, 0, accepted.said)
  for (const name of Object.keys(SECRETS)) {
    const { [name as keyof typeof SECRETS]: _, ...rest } = SECRETS
    t.not(checkNats(config, rest).status, 0, `without ${name}`)
  }
  const variables = new Set([...config.matchAll(/\$([A-Z0-9_]+)/g)].map(([, name = '']) => name))
  for (const { name, service } of services.filter(({ name }) => name.startsWith('nats-'))) {
    t.same(new Set(Object.keys(environmentOf(service))), variables, name)
    t.equal(environmentOf(service).NATS_NAME, name)
  }
})

t.test('NATS flushes before it acknowledges, and has room for the whole log', async (t) => {
  const config = read('deploy/nats/nats.conf')
  t.match(config, /^ *sync_interval: always$/m)
  const gigabytes = Number(/^ *max_file_store: (\d+)GB$/m.exec(config)?.[1])
  const standard = SETTINGS.find(({ name }) => name === 'log.bytesMax')?.standard
  for (const { name, service } of processes) {
    const bytesMax = Number(environmentOf(service).FINGERPOST_LOG_BYTES_MAX ?? standard)
    t.ok(bytesMax < gigabytes * 1_000_000_000, name)
  }
})

t.test(
  'Redis starts with its file, keeps an append-only file, drops nothing, and lets in who has the password',
  async (t) => {
    const dir = temporaryFolder()
    const port = await freePort()
    // Only where it listens differs from the container.
    const config = read('deploy/redis/redis.conf').replace('port 6379', `port ${port}`).replace('0.0.0.0', '127.0.0.1')
    writeFileSync(join(dir, 'redis.conf'), `${config}requirepass psecret\n`)
    const child = spawn('redis-server', [join(dir, 'redis.conf')], { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => void child.kill('SIGKILL'))
    let said = ''
    child.stdout.on('data', (chunk) => (said += chunk))
    const ask = (lines: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', () => socket.end(lines))
        let answer = ''
        socket.on('data', (chunk) => (answer += chunk))
        socket.on('error', reject)
        socket.on('close', () => resolve(answer))
      })
    while (!/Ready to accept connections/.test(said)) {
      if (child.exitCode !== null) throw new Error(said)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    t.match(await ask('PING\r\n'), /NOAUTH/)
    const facts = await ask(
      'AUTH psecret\r\nCONFIG GET appendonly\r\nCONFIG GET appendfsync\r\nCONFIG GET maxmemory-policy\r\n',
    )
    for (const fact of ['yes', 'everysec', 'noeviction']) t.match(facts, `\r\n${fact}\r\n`)
    child.kill('SIGTERM')
    await once(child, 'exit')
  },
)

t.test('ClickHouse has no user without a password, and none that may leave its database', async (t) => {
  const users = read('deploy/clickhouse/users.d/fingerpost.xml').replace(/<!--[\s\S]*?-->/g, '')
  const passwords = [...users.matchAll(/<password from_env="(\w+)"\/>/g)].map(([, name = '']) => name)
  t.same(passwords, ['HISTORY_PASSWORD', 'HISTORY_READER_PASSWORD'])
  t.equal([...users.matchAll(/<networks>/g)].length, passwords.length, 'one password for each user')
  t.match(users, '<default remove="remove"/>')
  const clickhouse = services.find(({ name }) => name === 'clickhouse')
  for (const name of passwords) t.ok(name in environmentOf(clickhouse?.service ?? {}), name)
  const grants = [...users.matchAll(/<query>(.*)<\/query>/g)].map(([, grant = '']) => grant)
  const facts = ['tables', 'settings', 'mutations'].map((table) => `SELECT ON system.${table}`)
  const outside = ['SHOW DATABASES ON default.*', ...facts]
  for (const grant of grants) {
    t.ok(/^GRANT [A-Z, ]+ ON fingerpost\.\*$/.test(grant) || outside.includes(grant.replace('GRANT ', '')), grant)
  }
  const user = environmentOf(processes[0]?.service ?? {}).FINGERPOST_CLICKHOUSE_USER ?? ''
  t.match(users, `<${user}>`)
})

t.test('the XML is well-formed', async (t) => {
  for (const file of ['users.d', 'config.d'].map((folder) => `deploy/clickhouse/${folder}/fingerpost.xml`)) {
    const open: string[] = []
    const text = read(file).replace(/<!--(?:(?!--)[\s\S])*-->/g, '')
    for (const [, close, name = '', self] of text.matchAll(/<(\/?)([a-z_]+)(?: [a-z_]+="[^"<]*")*(\/?)>/g)) {
      if (close) t.equal(open.pop(), name, `${file}: ${name} ends what was begun last`)
      else if (!self) open.push(name)
    }
    t.same(open, [], `${file}: everything is ended`)
    t.notMatch(
      text.replace(/<\/?[a-z_]+(?: [a-z_]+="[^"<]*")*\/?>/g, ''),
      /[<>]/,
      `${file}: nothing else looks like a tag`,
    )
  }
})
