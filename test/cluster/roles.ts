// Roles in processes of their own: what one accepts another decides and a third one reads, and changes reach all of them.

import type { Test } from 'tap'
import { browserBody, CHROME, type Client, eventually } from '../helpers/client.ts'
import type { Deployed } from './deployed.ts'

/** Asks until the answer holds; fails when it does not in time. */
async function expectSoon<T>(t: Test, what: string, ask: () => Promise<T>, holds: (answer: T) => boolean) {
  const answer = await eventually(ask, holds)
  t.ok(holds(answer), `${what}: ${JSON.stringify(answer)}`)
}

export async function testRoles(t: Test, { cluster, operatorToken, openWorkspace }: Deployed): Promise<void> {
  const { id, keys, first, second, api } = await openWorkspace('roles')
  const key = keys.secret
  let made = 0
  async function visit(client: Client, storageToken: string | null = null, more: object = {}) {
    const device = browserBody(`GPU ${++made}`)
    Object.assign(device.components, { audio: { value: 300 + made }, fonts: { value: [`Font ${made}`] } })
    return client.identify({ ...device, storageToken, userAgent: CHROME, ...more }, { key })
  }

  await t.test('every process is ready, and says what an acknowledgement means here', async (t) => {
    for (const { url, roles } of cluster.members) {
      const answer = await fetch(`${url}/readyz`)
      t.equal(answer.status, 200, roles)
      const body = (await answer.json()) as { roles: string[]; durability: Record<string, unknown> }
      t.same(body.roles.join(), roles)
      t.match(JSON.stringify(body.durability), /"replicas"/)
      t.match(JSON.stringify(body.durability), /"appendfsync"/)
    }
  })

  await t.test('an event is readable by id right after its 200, whoever accepted and decided it', async (t) => {
    for (let i = 0; i < 24; i++) {
      const { status, body } = await visit(i % 2 === 0 ? first : second)
      t.equal(status, 200)
      const read = await api.get(`/v1/events/${body.requestId}`, key)
      t.equal(read.status, 200)
      t.equal(read.body.visitorId, body.visitorId)
    }
    await expectSoon(
      t,
      'listed',
      async () => (await api.get('/v1/events?limit=100', key)).body.data.length,
      (count) => count === 24,
    )
    t.equal(
      (await api.get('/v1/events/req_01KAKAKAKAKAKAKAKAKAKAKAKA', key)).status,
      404,
      'and what never was is not there',
    )
  })

  await t.test(
    'a visitor returns through another ingress, and a repeat of a nonce gets the first answer there',
    async (t) => {
      const { body } = await visit(first)
      const again = await visit(second, body.storageToken)
      t.equal(again.body.visitorId, body.visitorId)
      t.equal(again.body.visitorFound, true)

      const device = browserBody('GPU of a repeat')
      const sent = { ...device, nonce: 'nonce-of-a-repeat-0001', userAgent: CHROME }
      const one = await first.identify(sent, { key })
      const two = await second.identify(sent, { key })
      t.equal(two.status, 200)
      t.equal(two.body.requestId, one.body.requestId)
      t.equal(two.headers.get('idempotent-replayed'), 'true')
    },
  )

  await t.test('a rule is in force on every engine when its answer says so', async (t) => {
    const rule = {
      name: 'block the tagged',
      status: 'live',
      action: { verdict: 'block' },
      conditions: { operator: 'AND', rules: [{ field: 'tag.blocked', operator: 'equals', value: true }] },
    }
    // A busy machine may be later than an answer waits; it says so then.
    const created = await eventually(
      () => api.send('POST', '/v1/rules', { key, body: rule }),
      ({ body }) => body.propagated === true,
    )
    t.equal(created.status, 201)
    t.equal(created.body.propagated, true)
    for (let i = 0; i < 16; i++) {
      const { body } = await visit(i % 2 === 0 ? first : second, null, { tag: { blocked: true } })
      t.equal(body.verdict, 'block')
    }
  })

  await t.test('a revoked key is refused by every process soon after', async (t) => {
    const operator = { headers: { authorization: `Bearer ${operatorToken}` }, key: null }
    const made = await api.send('POST', `/admin/v1/workspaces/${id}/keys`, {
      ...operator,
      body: { kind: 'secret', environment: 'live' },
    })
    t.equal(made.status, 201)
    const fresh = made.body.key as string
    await expectSoon(
      t,
      'the new key works',
      async () => [
        (await first.identify({ userAgent: CHROME }, { key: fresh })).status,
        (await second.identify({ userAgent: CHROME }, { key: fresh })).status,
      ],
      (statuses) => statuses.every((status) => status === 200),
    )
    const revoked = await api.send('DELETE', `/admin/v1/workspaces/${id}/keys/${made.body.id}`, operator)
    t.equal(revoked.status, 200)
    for (const client of [first, second]) {
      const status = async () => (await client.identify({ userAgent: CHROME }, { key: fresh })).status
      t.equal(await eventually(status, (found) => found === 401), 401)
    }
    const status = async () => (await api.get('/v1/events', fresh)).status
    t.equal(await eventually(status, (found) => found === 401), 401)
  })
}
