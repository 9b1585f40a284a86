// The demo page's link: who it lets in, how often, and to what of which environment.

import t from 'tap'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { askDemo, newDemoLink } from '../helpers/demo.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(180_000)
const dataDir = temporaryFolder()
const first = await startServer({ dataDir })
t.teardown(cleanUp)
const { send, identify } = clientOf(first)

const PRINTED = /http:\/\/\S+\/demo\/#token=([0-9A-Za-z]{32,})/
const tokenIn = (text: string) => PRINTED.exec(text)?.[1] ?? ''
const enter = (token: string) => askDemo(first.url, 'POST', '/session', { body: { token } })
const cookieIn = (headers: Headers) => (headers.get('set-cookie') ?? '').split(';')[0] ?? ''

async function open(): Promise<{ readonly cookie: string; readonly publicKey: string }> {
  const { status, headers, body } = await enter(tokenIn(await newDemoLink(dataDir)))
  if (status !== 200) throw new Error(`the link does not open: ${status}`)
  return { cookie: cookieIn(headers), publicKey: body.publicKey }
}
const asked = (cookie: string) => (method: string, path: string, body?: object) =>
  askDemo(first.url, method, path, { cookie, ...(body === undefined ? {} : { body }) })

t.test('the start prints a link that opens once', async (t) => {
  const token = tokenIn(
    await eventually(
      async () => first.logs(),
      (said) => PRINTED.test(said),
    ),
  )
  const opened = await enter(token)
  t.equal(opened.status, 200)
  t.match(opened.body.publicKey, /^pk_test_/)
  const again = await enter(token)
  t.equal(again.status, 401)
  t.match(again.body.error.message, /fingerpost demo/)
})

t.test('its session is a cookie that scripts, other sites and the rest of the service never see', async (t) => {
  const { headers } = await enter(tokenIn(await newDemoLink(dataDir)))
  const cookie = headers.get('set-cookie') ?? ''
  for (const part of ['Path=/demo;', 'HttpOnly', 'SameSite=Strict']) t.match(cookie, part)
  const { status } = await send('GET', '/v1/events', { key: null, headers: { Cookie: cookieIn(headers) } })
  t.equal(status, 401, 'the API knows no such cookie')
})

t.test('without a session nothing is read or written, and a made-up one is none', async (t) => {
  for (const cookie of ['', `fp_demo=${'a'.repeat(43)}`, 'fp_demo=']) {
    const ask = asked(cookie)
    t.equal((await ask('GET', '/events')).status, 401)
    t.equal((await ask('GET', '/events/req_01KAKAKAKAKAKAKAKAKAKAKAKA')).status, 401)
    t.equal((await ask('POST', '/rules', { visitorId: 'pv_abcdefghij0123456789' })).status, 401)
    t.equal((await ask('DELETE', '/rules/rul_abcdefghij0123456789')).status, 401)
    t.same((await ask('GET', '/session')).body, { publicKey: null })
  }
})

t.test('a form of another site cannot spend a link', async (t) => {
  const token = tokenIn(await newDemoLink(dataDir))
  const sent = await askDemo(first.url, 'POST', '/session', { body: { token }, type: 'text/plain' })
  t.equal(sent.status, 415)
  t.equal((await enter(token)).status, 200)
})

t.test('it shows what a secret key of the test environment gets, and nothing of the live one', async (t) => {
  const ask = asked((await open()).cookie)
  const visit = { ...browserBody('A GPU'), userAgent: CHROME }
  const ofTest = (await identify(visit, { key: first.keys.testSecret })).body.requestId
  const ofLive = (await identify(visit, { key: first.keys.secret })).body.requestId
  for (const what of ['', '/identity']) {
    const shown = await ask('GET', `/events/${ofTest}${what}`)
    t.equal(shown.status, 200)
    t.same(shown.body, (await send('GET', `/v1/events/${ofTest}${what}`, { key: first.keys.testSecret })).body)
    t.equal((await ask('GET', `/events/${ofLive}${what}`)).status, 404)
  }
})

t.test('its key identifies and reads nothing, as public keys do', async (t) => {
  const { publicKey } = await open()
  const visit = { ...browserBody('Another GPU'), nonce: 'demo-public-key-0001', storageToken: null }
  const { status, body } = await identify(visit, { key: publicKey })
  t.equal(status, 200)
  t.notOk('signals' in body)
  t.equal((await send('GET', `/v1/events/${body.requestId}`, { key: publicKey })).status, 403)
})

t.test('it makes one kind of rule, which decides at once, and takes it away again', async (t) => {
  const ask = asked((await open()).cookie)
  const visit = { ...browserBody('A third GPU'), userAgent: CHROME }
  const seen = (await identify(visit, { key: first.keys.testSecret })).body
  const refused = await ask('POST', '/rules', { visitorId: seen.visitorId, action: { verdict: 'allow' } })
  t.equal(refused.status, 400)
  const made = await ask('POST', '/rules', { visitorId: seen.visitorId })
  t.equal(made.status, 201)
  const blocked = (await identify(visit, { key: first.keys.testSecret })).body
  t.equal(blocked.verdict, 'block')
  t.equal(blocked.matchedRule.id, made.body.id)
  t.equal((await ask('DELETE', `/rules/${made.body.id}`)).status, 200)
  t.equal((await identify(visit, { key: first.keys.testSecret })).body.verdict, null)
})

t.test('the bare address leads to the demo page', async (t) => {
  const { status, headers } = await fetch(`${first.url}/`, { redirect: 'manual' })
  t.same([status, headers.get('location')], [302, '/demo/'])
})

t.test('a later start prints a link of its own, and those of before open nothing', async (t) => {
  const before = tokenIn(await newDemoLink(dataDir))
  await first.stop()
  const { port, keys } = first
  const second = await startServer({ dataDir, port, keys })
  t.equal((await enter(before)).status, 401)
  const said = await eventually(
    async () => second.logs(),
    (text) => PRINTED.test(text),
  )
  t.equal((await enter(tokenIn(said))).status, 200)
  await second.stop()
  await t.rejects(newDemoLink(dataDir), /does not answer/)
})
