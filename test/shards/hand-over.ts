// A process with two shards, asked over many connections by visitors of both: an identification whose token names a partition of the
// other shard is answered there, and nobody can tell from the answer where its connection landed.

import type { Test } from 'tap'
import { homePartition } from '../../src/domain/ids.ts'
import { browserBody } from '../helpers/client.ts'
import { type Answered, comparable, openConnections } from '../helpers/connections.ts'
import type { Keys } from '../helpers/server.ts'

export const SHARDS = 2
export const PARTITIONS = 4
/** The system spreads connections by their ports: of so many some come to each shard. */
const CONNECTIONS = 16

interface Asked {
  readonly port: number
  readonly keys: Keys
  readonly operatorToken: string
}

interface Visitor {
  readonly visitorId: string
  readonly storageToken: string
}

/** What a browser sends besides its token. */
function device(gpu?: string) {
  const { storageToken: _, ...said } = browserBody(gpu)
  return said
}

export async function testHandOver(t: Test, { port, keys, operatorToken }: Asked): Promise<void> {
  const { agents, over, overEach, close } = openConnections(port, CONNECTIONS, keys.secret)
  t.teardown(close)
  const [first] = agents as [(typeof agents)[number]]

  const identify = (body: object | string, key?: string): Promise<Answered> =>
    over(first, 'POST', '/v1/identify', {
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(key === undefined ? {} : { key }),
    })

  /** One visitor of each shard. */
  async function visitorsOfEach(): Promise<Visitor[]> {
    const found = new Map<number, Visitor>()
    for (let n = 0; found.size < SHARDS; n++) {
      const visitor = JSON.parse((await identify(device(`GPU of visitor ${n}`))).text) as Visitor
      found.set(homePartition(visitor.visitorId, PARTITIONS) % SHARDS, visitor)
    }
    return [...found.values()]
  }

  const visitors = await visitorsOfEach()

  /** Asks over each connection; the answers must be one. */
  async function sameOverEach(t: Test, name: string, status: number, body: string, key?: string): Promise<Answered> {
    const answers = await overEach('POST', '/v1/identify', { body, ...(key === undefined ? {} : { key }) })
    const [one] = answers as [Answered]
    t.equal(one.status, status, `${name}: ${one.text.slice(0, 200)}`)
    t.same([...new Set(answers.map(comparable))].slice(1), [], `${name}: one answer`)
    return one
  }

  await t.test('refusals are the same wherever the connection lands and whosever token is in the body', async (t) => {
    for (const [n, { storageToken }] of visitors.entries()) {
      const start = `{"storageToken":"${storageToken}"`
      const cases: [name: string, status: number, body: string][] = [
        ['a body that is no JSON', 400, `${start},`],
        ['a body that is not UTF-8 in the end', 400, `${start},"url":"\ud800`],
        ['a body that nests too deeply', 400, `${start},"tag":${'['.repeat(40)}${']'.repeat(40)}}`],
        ['an unknown field', 400, `${start},"nobody":1}`],
        ['a field of another type', 400, `${start},"url":1}`],
        ['a mock with a live key', 403, `${start},"mock":{}}`],
        ['a body above its limit', 413, `${start},"url":"${'x'.repeat(70_000)}"}`],
      ]
      for (const [name, status, body] of cases) await sameOverEach(t, `${name}, visitor ${n}`, status, body)
      await sameOverEach(
        t,
        `an address with a public key, visitor ${n}`,
        403,
        `${start},"ip":"192.0.2.1"}`,
        keys.public,
      )
    }
  })

  await t.test('a body that ends within its token is read as any other', async (t) => {
    await sameOverEach(t, 'an unfinished body', 400, '{"storageToken":"')
    await sameOverEach(t, 'an unfinished token', 400, '{"storageToken":"st_0')
    const answers = await overEach('POST', '/v1/identify', { body: '{"storageToken":"st_0"}' })
    t.same([...new Set(answers.map(({ status }) => status))], [200], 'a short one')
  })

  await t.test('a repeated nonce gets the first answer, and another body with it is refused', async (t) => {
    for (const [n, { storageToken, visitorId }] of visitors.entries()) {
      const said = { storageToken, ...device(), nonce: `nonce-of-a-visitor-${n}` }
      const original = await identify(said)
      t.equal(JSON.parse(original.text).visitorId, visitorId)
      const repeated = await sameOverEach(t, `a repeat, visitor ${n}`, 200, JSON.stringify(said))
      t.equal(repeated.text, original.text)
      t.equal(repeated.headers['idempotent-replayed'], 'true')
      await sameOverEach(t, `another body, visitor ${n}`, 409, JSON.stringify({ ...said, linkedId: 'another' }))
      const elsewhere = visitors[(n + 1) % SHARDS] as Visitor
      const moved = JSON.stringify({ ...said, storageToken: elsewhere.storageToken })
      await sameOverEach(t, `the token of another, visitor ${n}`, 409, moved)
    }
  })

  await t.test('a visitor is recognised over every connection, however the token is spelled', async (t) => {
    for (const { storageToken, visitorId } of visitors) {
      const rest = JSON.stringify(device()).slice(1)
      const spelled = [
        `{"storageToken":"${storageToken}",${rest}`,
        `{"storageToken": "${storageToken}",${rest}`,
        `{ "storageToken"\n:\t"${storageToken}",${rest}`,
        `{"storageToke\\u006e":"${storageToken}",${rest}`,
        `${JSON.stringify(device()).slice(0, -1)},"storageToken":"${storageToken}"}`,
        ...visitors.map(
          (other) => `{"tag":{"storageToken":"${other.storageToken}"},"storageToken":"${storageToken}",${rest}`,
        ),
      ]
      for (const body of spelled) {
        const answers = await overEach('POST', '/v1/identify', { body })
        const found = new Set(answers.map(({ status, text }) => `${status} ${JSON.parse(text).visitorId}`))
        t.same([...found], [`200 ${visitorId}`], body.slice(0, 30))
      }
    }
  })

  await t.test('without a token a device has one visitor over every connection, and a repeat one answer', async (t) => {
    for (let n = 0; n < 2 * SHARDS; n++) {
      const said = device(`GPU of a device without tokens ${n}`)
      const { visitorId } = JSON.parse((await identify(said)).text) as Visitor
      const answers = await overEach('POST', '/v1/identify', { body: JSON.stringify(said) })
      const found = new Set(answers.map(({ status, text }) => `${status} ${JSON.parse(text).visitorId}`))
      t.same([...found], [`200 ${visitorId}`], `device ${n}`)
      const once = { ...said, nonce: `nonce-without-token-${n}` }
      const original = await identify(once)
      const repeated = await sameOverEach(t, `a repeat, device ${n}`, 200, JSON.stringify(once))
      t.equal(repeated.text, original.text)
      const other = { ...device(`Another GPU ${n}`), nonce: once.nonce }
      await sameOverEach(t, `another body, device ${n}`, 409, JSON.stringify(other))
    }
  })

  await t.test('a forged token is nobody’s, over every connection', async (t) => {
    for (const { storageToken, visitorId } of visitors) {
      const last = storageToken.endsWith('A') ? 'B' : 'A'
      const forged = `${storageToken.slice(0, -1)}${last}`
      const answers = await overEach('POST', '/v1/identify', {
        body: JSON.stringify({ storageToken: forged, ...device(`GPU of nobody like ${visitorId}`) }),
      })
      t.same(
        answers.filter(({ status, text }) => status !== 200 || JSON.parse(text).visitorId === visitorId),
        [],
      )
    }
  })

  await t.test('a key that was revoked is refused wherever its identification would be answered', async (t) => {
    const admin = { key: operatorToken }
    const path = '/admin/v1/workspaces/ws_default/keys'
    const made = JSON.parse(
      (await over(first, 'POST', path, { ...admin, body: JSON.stringify({ kind: 'public', environment: 'live' }) }))
        .text,
    )
    const [one] = visitors as [Visitor]
    const body = JSON.stringify({ storageToken: one.storageToken, ...device() })
    t.equal((await identify(body, made.key)).status, 200)
    t.equal((await over(first, 'DELETE', `${path}/${made.id}`, admin)).status, 200)
    for (const { storageToken } of visitors)
      await sameOverEach(t, 'a revoked key', 401, JSON.stringify({ storageToken, ...device() }), made.key)
  })
}
