// A cluster whose NATS and Redis speak only TLS and know users: settings are enough, and whoever has a wrong one is told which.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CHROME, clientOf, eventually } from '../helpers/client.ts'
import { startCluster } from '../helpers/cluster.ts'
import { freePort } from '../helpers/port.ts'
import { pause } from '../helpers/processes.ts'
import { authorityIn } from '../helpers/receiver.ts'
import { cleanUp, launchServer, temporaryFolder } from '../helpers/server.ts'

const NATS_PASSWORD = 'nats-password-0123456789'
const REDIS_PASSWORD = 'redis-password-0123456789'
const WRONG = 'wrong-password-0123456789'
const SAID_MS_MAX = 60_000
const ENDING_MS_MAX = 10_000

t.setTimeout(400_000)
t.teardown(cleanUp)

function authority(): ReturnType<typeof authorityIn> {
  const dir = join(temporaryFolder(), 'authority')
  mkdirSync(dir)
  return authorityIn(dir)
}

const trusted = authority()
const other = authority()
const leaf = trusted.leaf('DNS:localhost,IP:127.0.0.1')
const folder = temporaryFolder()
const [keyFile, certFile] = [join(folder, 'server.key'), join(folder, 'server.pem')]
writeFileSync(keyFile, leaf.key)
writeFileSync(certFile, leaf.cert)

t.test('roles reach NATS and Redis over TLS as users, and tell what is wrong with what they were given', async (t) => {
  const redisPort = await freePort()
  const redisUrl = (password: string) => `rediss://fingerpost:${password}@127.0.0.1:${redisPort}`
  const secured = {
    FINGERPOST_NATS_USER: 'fingerpost',
    FINGERPOST_NATS_PASSWORD: NATS_PASSWORD,
    FINGERPOST_NATS_CA_FILE: trusted.caFile,
    FINGERPOST_REDIS_URL: redisUrl(REDIS_PASSWORD),
    FINGERPOST_REDIS_CA_FILE: trusted.caFile,
  }
  const cluster = await startCluster({
    roles: ['ingress,engine,api,jobs,dispatcher'],
    partitions: 2,
    natsConfig: [
      `tls { cert_file: "${certFile}", key_file: "${keyFile}" }`,
      `authorization { users = [ { user: fingerpost, password: "${NATS_PASSWORD}" } ] }`,
    ].join('\n'),
    // The plain port, for the test itself, knows the default user only.
    redisArgs: [
      ...['--tls-port', `${redisPort}`, '--tls-cert-file', certFile, '--tls-key-file', keyFile],
      ...['--tls-ca-cert-file', trusted.caFile, '--tls-auth-clients', 'no'],
      ...['--user', 'fingerpost', 'on', `>${REDIS_PASSWORD}`, '~*', '&*', '+@all'],
    ],
    env: secured,
  })
  t.teardown(() => cluster.stop())
  const [member] = cluster.members
  if (member === undefined) throw new Error('no member')
  const { server } = member
  const client = clientOf(server)
  const identify = () => client.identify({ userAgent: CHROME }, { key: server.keys.secret })

  t.test('it serves', async (t) => {
    const visit = await eventually(identify, ({ status }) => status === 200)
    t.equal(visit.status, 200, visit.text)
    const { requestId } = visit.body
    t.equal((await client.get(`/v1/events/${requestId}`)).status, 200)
  })

  async function saysAtStart(env: Readonly<Record<string, string>>, what: RegExp) {
    const launched = await launchServer({
      keys: server.keys,
      env: { ...cluster.env, FINGERPOST_PROCESS_ROLES: 'ingress', ...env },
    })
    const ended = launched.exited.then((code) => ({ code }))
    let code: number | null | undefined
    for (const from = performance.now(); performance.now() - from < SAID_MS_MAX && !what.test(launched.logs()); ) {
      const over = await Promise.race([ended, pause(100).then(() => null)])
      if (over !== null) {
        code = over.code
        break
      }
    }
    if (code === undefined) {
      // One that is about to end has time to.
      code = await Promise.race([launched.exited, pause(ENDING_MS_MAX).then(() => undefined)])
    }
    await launched.kill9()
    return { code, said: launched.logs() }
  }

  const CASES = [
    {
      wrong: 'the password of NATS',
      env: { FINGERPOST_NATS_PASSWORD: WRONG },
      what: /NATS at nats:\/\/localhost:\d+ refuses the credentials/,
      ends: true,
    },
    {
      wrong: 'the authority of NATS',
      env: { FINGERPOST_NATS_CA_FILE: other.caFile },
      what: /NATS cannot be reached at [^\n"]*(certificate|signature)/,
      ends: false,
    },
    {
      wrong: 'the password of Redis',
      env: { FINGERPOST_REDIS_URL: redisUrl(WRONG) },
      what: /Redis refuses the credentials/,
      ends: true,
    },
    {
      wrong: 'the authority of Redis',
      env: { FINGERPOST_REDIS_CA_FILE: other.caFile },
      what: /Redis cannot be reached: [^\n"]*(certificate|signature)/,
      ends: false,
    },
  ] as const
  for (const { wrong, env, what, ends } of CASES) {
    t.test(`a start with ${wrong} wrong says so`, async (t) => {
      const { code, said } = await saysAtStart(env, what)
      t.match(said, what)
      t.equal(
        code === undefined,
        !ends,
        ends ? 'it ends: nobody but a person can help' : 'it waits for it to be mended',
      )
      if (ends) t.not(code, 0)
      for (const secret of [NATS_PASSWORD, REDIS_PASSWORD, WRONG]) t.notMatch(said, secret, 'and tells no secret')
    })
  }

  t.test('a running process tells what refuses it, and goes on when it is mended', async (t) => {
    const redis = await cluster.redis.client()
    const readiness = async () => {
      const { status, body, text } = await client.get('/readyz')
      return { status, body, text }
    }
    const kvAnswers = (expected: boolean) => eventually(readiness, ({ body }) => body.kv.answers === expected)
    await redis.call('ACL', 'SETUSER', 'fingerpost', 'resetpass', `>${WRONG}`)
    await redis.call('CLIENT', 'KILL', 'USER', 'fingerpost')
    const without = await kvAnswers(false)
    t.equal(without.status, 200, 'what is accepted meanwhile waits in the log')
    t.notMatch(without.text, REDIS_PASSWORD)
    await eventually(
      async () => server.logs(),
      (said) => /a connection to Redis failed/.test(said) && /WRONGPASS/.test(said),
    )
    await redis.call('ACL', 'SETUSER', 'fingerpost', 'resetpass', `>${REDIS_PASSWORD}`)
    await kvAnswers(true)
    t.equal((await eventually(identify, ({ status }) => status === 200)).status, 200)
    for (const secret of [NATS_PASSWORD, REDIS_PASSWORD, WRONG]) t.notMatch(server.logs(), secret)
  })
})
