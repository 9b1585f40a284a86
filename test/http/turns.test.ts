// What comes behind an unanswered request over node:http: it waits for its turn, and there is room for so much of it.

import t from 'tap'
import { openTestServer, pause, talk } from '../helpers/http.ts'

const GET = 'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n'
const CHUNKED = 'POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'

/** Answers with 200 when it is let. */
async function openSlow() {
  const server = await openTestServer({ driver: 'node' })
  t.teardown(server.close)
  const waiting: (() => void)[] = []
  const slow = () => new Promise<{ status: number }>((resolve) => waiting.push(() => resolve({ status: 200 })))
  server.route('GET', '/slow', slow)
  server.route('POST', '/slow', slow)
  const begun = async () => {
    for (let i = 0; i < 1_000 && waiting.length === 0; i++) await pause(5)
  }
  return { server, waiting, begun, answer: () => waiting.shift()?.() }
}

for (const [what, ...sent] of [
  ['a body that is none', `${CHUNKED}3;a=b\r\nabc\r\n0\r\n\r\n`],
  ['a body that is none, later', `${CHUNKED}3\r\nab`, 'cXX'],
  ['a head that is none', 'GET /slow HTTP/1.1\r\nx(y: 1\r\n\r\n'],
  ['two lengths', 'POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
] as const) {
  t.test(`what came before is answered, then the refusal, and nothing behind it: ${what}`, async (t) => {
    const { server, begun, answer, waiting } = await openSlow()
    const [first, ...more] = sent
    const line = talk(server.port, GET + first, ...more, GET)
    await begun()
    await pause(100)
    t.equal(line.outcome(), '')
    answer()
    t.equal(await line.until('200 400 closed'), '200 400 closed')
    t.equal(waiting.length, 0, 'no more was served')
    t.equal(server.inFlight(), 0)
  })
}

t.test('who sends far more than is answered is cut off', async (t) => {
  const { server, begun, waiting } = await openSlow()
  const line = talk(server.port, GET.repeat(40))
  await begun()
  t.equal(line.outcome(), '')
  line.socket.write(GET.repeat(40))
  t.equal(await line.until('closed'), 'closed')
  t.equal(waiting.length, 1)
  for (let i = 0; i < 1_000 && server.inFlight() > 0; i++) await pause(5)
  t.equal(server.inFlight(), 0)
})
