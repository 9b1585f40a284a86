// A whole process with three shards, asked over many connections: whichever thread's socket takes a request, the answer is the same,
// and what is limited or remembered is so over all of them.

import type { Agent } from 'node:http'
import t from 'tap'
import { browserBody, eventually } from '../helpers/client.ts'
import { type Asked, comparable, openConnections } from '../helpers/connections.ts'
import { sized } from '../helpers/depth.ts'
import { talkFrom } from '../helpers/http.ts'
import { until } from '../helpers/processes.ts'
import { cleanUp, historyOpen, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)

const ROUNDS = sized({ quick: 1, usual: 2, long: 8 })
const NONCES = sized({ quick: 2, usual: 4, long: 20 })
const SHARDS = 3
/** The system spreads connections by their ports: of so many some come to each shard. */
const CONNECTIONS = 24
const IN_FLIGHT_MAX = 40
const PER_HOST_MAX = 12

const server = await startServer({
  env: {
    FINGERPOST_ENGINE_THREADS: String(SHARDS),
    FINGERPOST_ENGINE_THREADS_MIN: String(SHARDS),
    FINGERPOST_HTTP_IN_FLIGHT_MAX: String(IN_FLIGHT_MAX),
    FINGERPOST_HTTP_PER_IP_CONNECTIONS_MAX: String(PER_HOST_MAX),
    FINGERPOST_LOG_DURABILITY: 'relaxed',
  },
})
await historyOpen(server)
const { port, keys } = server

const { agents, over, overEach, close } = openConnections(port, CONNECTIONS, keys.secret)
t.teardown(close)

t.test('every connection gets the same answer, whichever thread took it', async (t) => {
  const identified = await over(agents[0] as Agent, 'POST', '/v1/identify', { body: JSON.stringify(browserBody()) })
  const { requestId, visitorId } = JSON.parse(identified.text)
  const large = JSON.stringify({ name: 'y'.repeat(1_200_000) })
  const zipped = { headers: { 'Accept-Encoding': 'gzip' } }
  // A page is sent as it is until it is compressed, which begins when it is first asked for.
  await eventually(
    () => over(agents[0] as Agent, 'GET', '/docs', zipped),
    ({ headers }) => headers['content-encoding'] === 'gzip',
  )
  const cases: [name: string, status: number, method: string, path: string, asked?: Asked][] = [
    ['an event', 200, 'GET', `/v1/events/${requestId}`],
    ['a HEAD of an event', 200, 'HEAD', `/v1/events/${requestId}`],
    ['a visitor', 200, 'GET', `/v1/visitors/${visitorId}`],
    ['no such path', 404, 'GET', '/v1/nowhere'],
    ['a HEAD of no such path', 404, 'HEAD', '/v1/nowhere'],
    ['no such event', 404, 'GET', '/v1/events/1700000000000.aaaaaa'],
    ['another method of a path of the process', 405, 'DELETE', '/v1/events'],
    ['another method of a path of the shards', 405, 'GET', '/v1/identify'],
    ['preflight of a browser', 204, 'OPTIONS', '/v1/identify'],
    ['a body that is no JSON', 400, 'POST', '/v1/identify', { body: '{' }],
    ['a body above its limit', 413, 'POST', '/v1/rules', { body: large }],
    ['an identification above its limit', 413, 'POST', '/v1/identify', { body: large }],
    ['no key', 401, 'GET', '/v1/events', { key: 'nobody' }],
    ['no key for an identification', 401, 'POST', '/v1/identify', { key: 'nobody', body: '{}' }],
    ['a page', 200, 'GET', '/docs'],
    ['a page as it is kept', 200, 'GET', '/docs', zipped],
    ['the description', 200, 'GET', '/openapi.json'],
  ]
  for (const [name, status, method, path, asked] of cases) {
    const answers = await overEach(method, path, asked)
    t.equal(answers[0]?.status, status, `${name}: ${answers[0]?.text.slice(0, 200)}`)
    t.equal(new Set(answers.map(comparable)).size, 1, `${name}: one answer`)
  }
})

t.test('a repeat of a nonce gets the first answer over any connection, whatever thread has it', async (t) => {
  for (let n = 0; n < NONCES; n++) {
    const nonce = `nonce-over-threads-${n}-0000`
    const body = JSON.stringify({ ...browserBody(`GPU ${n}`), nonce })
    const together = await Promise.all(agents.slice(0, 8).map((agent) => over(agent, 'POST', '/v1/identify', { body })))
    const ids = new Set(together.map(({ text }) => JSON.parse(text).requestId))
    t.equal(ids.size, 1, `together: ${together.map(({ status }) => status)}`)
    const later = await overEach('POST', '/v1/identify', { body })
    for (const { text } of later) ids.add(JSON.parse(text).requestId)
    t.equal(ids.size, 1, 'and later')
    t.ok(later.every(({ headers }) => headers['idempotent-replayed'] === 'true'))
    const { storageToken } = JSON.parse(together[0]?.text ?? '')
    for (const more of [{ linkedId: 'another' }, { storageToken }, browserBody('another GPU')]) {
      const other = JSON.stringify({ ...JSON.parse(body), ...more })
      const refused = await overEach('POST', '/v1/identify', { body: other })
      const statuses = new Set(refused.map(({ status }) => status))
      t.same([...statuses], [409], 'another body with the same nonce is refused')
    }
  }
})

/** A request whose body never ends, on a connection of its own. */
const unfinished = (from: string) =>
  talkFrom(
    from,
    port,
    `POST /v1/identify HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${keys.secret}\r\nContent-Length: 50\r\n\r\n{`,
  )

t.test('a host has no more under way than it may over all threads, and gets it all back', async (t) => {
  const [first] = agents as [Agent]
  const isServed = async () => (await over(first, 'POST', '/v1/identify', { body: '{}' })).status === 200
  for (let round = 0; round < ROUNDS; round++) {
    const held = Array.from({ length: 3 * PER_HOST_MAX }, () => unfinished('127.0.0.1'))
    const refused = () => held.filter(({ outcome }) => outcome().startsWith('503')).length
    await until('the refusals', 20_000, () => refused() >= held.length - PER_HOST_MAX)
    t.equal(held.filter(({ outcome }) => outcome() === '').length, PER_HOST_MAX, 'exactly so many are under way')
    t.notOk(await isServed())
    for (const { socket } of held) round % 2 === 0 ? socket.resetAndDestroy() : socket.destroy()
    await until('room again', 20_000, isServed)
  }
  const some = agents.slice(0, PER_HOST_MAX)
  const answers = await Promise.all(some.map((agent) => over(agent, 'POST', '/v1/identify', { body: '{}' })))
  t.ok(
    answers.every(({ status }) => status === 200),
    'as many as it may at once, after clients that left',
  )
})

t.test('no more is under way than may be over all threads, whoever asks', async (t) => {
  const hosts = Array.from({ length: 6 }, (_, n) => `127.0.0.${n + 2}`)
  const held = hosts.flatMap((host) => Array.from({ length: PER_HOST_MAX }, () => unfinished(host)))
  const refused = () => held.filter(({ outcome }) => outcome().startsWith('503')).length
  await until('the refusals', 20_000, () => refused() >= held.length - IN_FLIGHT_MAX)
  const left = held.filter(({ outcome }) => outcome() === '').length
  t.equal(left, IN_FLIGHT_MAX, 'exactly so many are under way')
  for (const { socket } of held) socket.destroy()
  const served = async () => (await over(agents[0] as Agent, 'POST', '/v1/identify', { body: '{}' })).status === 200
  await until('room again', 20_000, served)
})

t.test('the process ends when it is told to, with requests of all threads under way answered', async (t) => {
  const last = agents
    .slice(0, 8)
    .map((agent) => over(agent, 'POST', '/v1/identify', { body: JSON.stringify(browserBody()) }))
  const answers = await Promise.all(last)
  t.ok(answers.every(({ status }) => status === 200))
  t.equal(await server.stop(), 0)
})
