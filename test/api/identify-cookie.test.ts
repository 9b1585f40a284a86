// The first-party cookie of POST /v1/identify against a real server: who gets it, who does not, and what it is worth.

import t from 'tap'
import { browserBody } from '../helpers/client.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const { server, send, identify, admin } = await openTenant()
const { keys } = server
const SHOP = 'https://shop.example'
const { key: restricted } = (
  await admin('POST', `/workspaces/${server.workspace}/keys`, { kind: 'public', environment: 'live', origins: [SHOP] })
).body as { key: string }

const post = (
  headers: Record<string, string>,
  { key = keys.public, body = {} }: { key?: string; body?: object } = {},
) =>
  send('POST', `/v1/identify?key=${key}`, {
    key: null,
    raw: JSON.stringify({ ...browserBody(), ...body }),
    headers: { 'Content-Type': 'text/plain', ...headers },
  })
const cookieOf = (headers: Headers) => headers.getSetCookie()[0] ?? null
const own = { Origin: server.url }

t.test('a page of the service’s own origin gets a cookie that scripts cannot read', async (t) => {
  const { status, headers, body } = await post(own)
  t.equal(status, 200)
  const { storageToken } = body as { storageToken: string }
  t.equal(
    cookieOf(headers),
    `fp_live=${storageToken}; Path=/; Max-Age=34560000; HttpOnly; Secure; SameSite=Lax`,
    'the token of the answer',
  )
  t.equal(headers.get('access-control-allow-origin'), server.url)
  t.equal(headers.get('access-control-allow-credentials'), 'true')
  t.match(headers.get('vary'), /Origin/)
  const test = await post(own, { key: keys.testPublic })
  t.match(cookieOf(test.headers), /^fp_test=st_/, 'one name per environment')
})

t.test('an origin on the allow-list of the key gets one too, and is echoed on refusals', async (t) => {
  const { status, headers } = await post({ Origin: SHOP }, { key: restricted })
  t.equal(status, 200)
  t.match(cookieOf(headers), /^fp_live=st_/)
  t.equal(headers.get('access-control-allow-origin'), SHOP)
  const refused = await post({ Origin: SHOP }, { key: restricted, body: { nonce: 1 } })
  t.equal(refused.status, 400)
  t.equal(refused.headers.get('access-control-allow-origin'), SHOP)
  t.equal(cookieOf(refused.headers), null)
})

t.test('everybody else gets the answer of before', async (t) => {
  const cases: [string, Record<string, string>][] = [
    ['another origin', { Origin: SHOP }],
    ['an opaque origin', { Origin: 'null' }],
    ['no origin', {}],
    ['an origin that begins like ours', { Origin: `${server.url}.evil.example` }],
  ]
  for (const [name, headers] of cases) {
    const answer = await post(headers)
    t.equal(answer.status, 200, name)
    t.equal(cookieOf(answer.headers), null, name)
    t.equal(answer.headers.get('access-control-allow-origin'), '*', name)
    t.equal(answer.headers.get('access-control-allow-credentials'), null, name)
  }
  const secret = await identify({}, { headers: own })
  t.equal(cookieOf(secret.headers), null, 'a secret key')
})

t.test('the cookie brings a visitor back whose page has no token, and a token in the body wins', async (t) => {
  const first = await post(own, { body: { components: {} } })
  const { visitorId, storageToken } = first.body as { visitorId: string; storageToken: string }
  const back = await post({ ...own, Cookie: `theme=dark; fp_live=${storageToken}; fp_test=st_other` })
  t.equal((back.body as { visitorId: string }).visitorId, visitorId)
  const other = (await identify({ components: {} })).body as { visitorId: string; storageToken: string }
  t.not(other.visitorId, visitorId)
  const both = await post({ ...own, Cookie: `fp_live=${storageToken}` }, { body: { storageToken: other.storageToken } })
  t.equal((both.body as { visitorId: string }).visitorId, other.visitorId)
  const stranger = await post({ Origin: SHOP, Cookie: `fp_live=${storageToken}` }, { body: { components: {} } })
  t.not((stranger.body as { visitorId: string }).visitorId, visitorId, 'from elsewhere it counts nothing')
  for (const odd of ['fp_live=', 'fp_live=st_<script>', 'fp_live', ';;;', `fp_live=st_${'x'.repeat(600)}`]) {
    t.equal((await post({ ...own, Cookie: odd })).status, 200, odd)
  }
})

t.test('the cookie can be ended by the page it was for, and by no other', async (t) => {
  const end = (headers: Record<string, string>) =>
    send('POST', `/v1/identify/forget?key=${keys.public}`, {
      key: null,
      raw: '',
      headers: { 'Content-Type': 'text/plain', ...headers },
    })
  const ended = await end(own)
  t.equal(ended.status, 204)
  t.equal(cookieOf(ended.headers), 'fp_live=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax')
  const elsewhere = await end({ Origin: SHOP })
  t.equal(elsewhere.status, 204)
  t.equal(cookieOf(elsewhere.headers), null)
})
