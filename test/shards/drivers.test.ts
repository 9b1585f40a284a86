// A whole process over each driver of HTTP that this Node has: it says which one serves, identifies over many connections, and ends
// with what was under way answered. `npm test` runs this under a newer Node as well, which has the one driver alone.

import { once } from 'node:events'
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import t from 'tap'
import { browserBody } from '../helpers/client.ts'
import { DRIVERS } from '../helpers/http.ts'
import { cleanUp, historyOpen, launchServer, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)

/** The system spreads connections over those threads that listen: of so many some come to each. */
const CONNECTIONS = 16
/** A body that comes behind the signal is accepted for so long; without it, only if it arrives before the signal has reached its thread. */
const LINGER_MS = 2_000

for (const driver of DRIVERS) {
  t.test(`a process starts, identifies, is asked, drains and ends: ${driver}`, async (t) => {
    const env = {
      FINGERPOST_HTTP_DRIVER: driver,
      FINGERPOST_HTTP_LINGER_MS: String(LINGER_MS),
      FINGERPOST_ENGINE_THREADS: '2',
      FINGERPOST_ENGINE_THREADS_MIN: '2',
      FINGERPOST_LOG_DURABILITY: 'relaxed',
    }
    const server = await startServer({ env })
    await historyOpen(server)
    const { keys, port, url } = server
    const told = (await (await fetch(`${url}/readyz`)).json()) as { driver: string }
    t.equal(told.driver, driver)
    t.match(await (await fetch(`${url}/metrics`)).text(), `driver="${driver}"`)

    const agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
    t.teardown(() => {
      for (const agent of agents) agent.destroy()
    })
    const headers = { Authorization: `Bearer ${keys.secret}`, 'Content-Type': 'application/json' }
    const call = (agent: Agent, method: string, path: string) =>
      request({ agent, port, host: '127.0.0.1', method, path, headers })
    async function answerTo(sent: ClientRequest) {
      const answer = await new Promise<IncomingMessage>((resolve, reject) => {
        sent.once('response', resolve)
        sent.once('error', reject)
      })
      let text = ''
      for await (const chunk of answer.setEncoding('utf8')) text += chunk
      return { status: answer.statusCode, body: JSON.parse(text) }
    }
    const identify = (agent: Agent, n: number) => {
      const sent = call(agent, 'POST', '/v1/identify')
      sent.end(JSON.stringify(browserBody(`GPU ${n}`)))
      return answerTo(sent)
    }

    const visits = await Promise.all(agents.map(identify))
    t.ok(visits.every(({ status }) => status === 200))
    const [{ body: first } = { body: null }] = visits
    for (const agent of agents) {
      const read = call(agent, 'GET', `/v1/events/${first.requestId}`)
      read.end()
      const { status, body } = await answerTo(read)
      t.same([status, body.visitorId], [200, first.visitorId])
    }

    const [agent] = agents as [Agent]
    const body = JSON.stringify(browserBody())
    const underWay = call(agent, 'POST', '/v1/identify')
    underWay.setHeader('Content-Length', Buffer.byteLength(body))
    underWay.setHeader('Expect', '100-continue')
    underWay.flushHeaders()
    await once(underWay, 'continue')
    server.signal('SIGTERM')
    underWay.end(body)
    t.equal((await answerTo(underWay)).status, 200, 'what was under way is answered')
    t.equal(await server.exited, 0)
    t.notMatch(server.logs(), /"level":"(error|fatal)"/)
  })
}

t.test('which driver serves is told in one line, and one that is not there is refused in one', async (t) => {
  const hasNative = DRIVERS.includes('uws')
  const server = await startServer()
  const told = server
    .logs()
    .split('\n')
    // The line of the start names the driver among all that it tells.
    .filter((line) => /uws|uwebsockets|node\.js/i.test(line) && !line.includes('the server has started'))
  t.match(told, [
    hasNative ? /served by uWebSockets\.js"/ : /served by Node\.js: no binary of uWebSockets\.js loads on Node/,
  ])
  t.equal(told.length, 1)
  t.equal(await server.stop(), 0)
  const wanted = hasNative ? 'native' : 'uws'
  const { exited, logs } = await launchServer({ env: { FINGERPOST_HTTP_DRIVER: wanted } })
  t.equal(await exited, 1)
  t.match(
    logs(),
    hasNative ? /^fingerpost: [^\n]*FINGERPOST_HTTP_DRIVER[^\n]*\n$/ : /^fingerpost: [^\n]*no binary[^\n]+\n$/,
  )
})
