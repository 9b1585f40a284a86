// What a server writes: one line tells what has started, and nothing of a session of everything clients do is in any line, no key, token,
// secret, e-mail nor full address, at the most talkative level.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { browserBody, CHROME, clientOf } from '../helpers/client.ts'
import { until } from '../helpers/processes.ts'
import { answer, makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { cleanUp, historyOpen, makeKeys, startServer } from '../helpers/server.ts'

t.setTimeout(180_000)
t.teardown(cleanUp)

const WAIT_MS_MAX = 60_000
const EMAIL = 'jane.roe.77@customer.example'
const ADDRESSES = ['203.0.113.77', '2001:db8:77::7a77']
const SLACK = 'https://hooks.slack.com/services/T0000077/B0000077/abcdefghijklmnopqrst77'

const authority = makeAuthority(t)
const receiver = await openReceiver(t, authority.leaf('DNS:localhost'))
const env = {
  FINGERPOST_LOG_LEVEL: 'debug',
  FINGERPOST_TRUSTED_PROXIES: '127.0.0.0/8',
  FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
  FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
}
const server = await startServer({ env })
await historyOpen(server)
const client = clientOf(server)
const { keys } = server
const lines = () =>
  server
    .logs()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))

t.test('one line tells what has started', async (t) => {
  const started = () => lines().filter(({ msg }) => msg === 'the server has started')
  await until('it is written', WAIT_MS_MAX, async () => started().length > 0)
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  t.equal(started().length, 1)
  t.match(started()[0], {
    level: 'info',
    version,
    commit: String,
    node: process.version,
    driver: /^(uws|node)$/,
    mode: 'embedded',
    roles: ['ingress', 'engine', 'api', 'dispatcher', 'jobs'],
    partitions: Number,
    shards: Number,
    ...{ workspaces: 1, keys: 4, rules: 0, lists: 0, webhooks: 0 },
  })
})

t.test('no line has a key, token, secret, e-mail or full address of a session', async (t) => {
  const key = keys.secret
  const send = async (method: string, path: string, body: unknown) => {
    const answered = await client.send(method, path, { key, body })
    t.ok(answered.status < 300, `${path}: ${JSON.stringify(answered.body)}`)
    return answered.body
  }
  receiver.behave = answer(500)
  const { signingSecret: secret } = await send('POST', '/v1/webhooks', {
    url: `https://localhost:${receiver.port}/`,
    events: ['identification.complete'],
  })
  t.type(secret, 'string')
  const list = await send('POST', '/v1/lists', { name: 'Mails', type: 'email' })
  await send('PATCH', `/v1/lists/${list.id}/entries`, { add: [EMAIL] })
  const conditions = { operator: 'AND', rules: [{ field: 'linkedId', operator: 'exists', value: true }] }
  await send('POST', '/v1/rules', {
    name: 'Slack',
    conditions,
    action: { verdict: 'challenge' },
    sideEffects: [{ type: 'slack', url: SLACK }],
    status: 'live',
  })
  const tokens: string[] = []
  for (const ip of ADDRESSES) {
    const about = { ...browserBody(), userAgent: CHROME, ip, email: EMAIL, linkedId: EMAIL, tag: { mail: EMAIL } }
    const { status, body } = await client.identify(about, { key })
    t.equal(status, 200, JSON.stringify(body))
    tokens.push(body.storageToken)
    // Each of these is refused, or fails: what is said of them must not be what was sent.
    const headers = { 'X-Forwarded-For': ip }
    await client.identify({ ...about, email: 'not one', nonce: EMAIL }, { key, headers })
    await client.identify(browserBody(), { key: `${keys.public.slice(0, -4)}AAAA`, headers })
    await client.send('POST', '/v1/rules', { key, raw: `{"name":"${EMAIL}","conditions":{`, headers })
    await client.send('GET', `/v1/visitors/${encodeURIComponent(EMAIL)}?ip=${ip}`, { key, headers })
    await client.send('GET', `/v1/events?linkedId=${EMAIL}`, { key, headers })
  }
  const other = makeKeys()
  for (const wrong of Object.values(other)) await client.get('/v1/events', wrong)
  await client.send('GET', '/admin/v1/workspaces', { key: `${server.operatorToken}x` })
  await client.admin('GET', '/workspaces')
  await until('a delivery failed', WAIT_MS_MAX, async () => receiver.hits.length > 0)
  const masterKey = readFileSync(join(server.dataDir, 'master.key'), 'utf8').trim()
  t.equal(await server.stop(), 0)

  const output = server.logs()
  t.ok(lines().length > 3, 'it did write')
  const secrets = [
    ...Object.values(keys),
    ...Object.values(other),
    ...tokens.filter((token) => typeof token === 'string'),
    ...ADDRESSES,
    ...[secret, masterKey, server.operatorToken, SLACK, EMAIL],
  ]
  t.ok(secrets.length >= 14)
  for (const text of secrets) {
    t.notOk(output.includes(text), `${text.slice(0, 8)}… is nowhere`)
    const random = text.split('_').at(-1) as string
    if (random.length > 20) t.notOk(output.includes(random), 'nor what is random of it')
  }
  t.notMatch(output, /[\w.]+@[\w-]+\.[\w.]+/, 'nor any e-mail')
})
