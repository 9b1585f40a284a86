// A Redis that comes back without what it stored last, as behind a failover or a power cut: the log has it, and it is applied again.

import t from 'tap'
import { systemClock } from '../../src/lib/clock.ts'
import { startCluster } from '../helpers/cluster.ts'
import { cleanUp } from '../helpers/server.ts'

t.teardown(cleanUp)
t.setTimeout(240_000)

const MEND_MS_MAX = 20_000
/** A checkpoint and what follows a command have long been stored by then. */
const STORED_MS = 1_500

t.test('commands and decisions of the lost moment are applied again, also where nothing comes any more', async (t) => {
  const cluster = await startCluster({ roles: ['api,ingress,engine,jobs,dispatcher'], redisAof: 'off', partitions: 2 })
  t.teardown(() => cluster.stop())
  const [member] = cluster.members
  const { keys } = cluster
  if (member === undefined) throw new Error('a cluster has members')

  async function call(method: string, path: string, body: unknown, key: string) {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
    const response = await fetch(`${member?.url}${path}`, init)
    return { status: response.status, body: (await response.json().catch(() => ({}))) as Record<string, string> }
  }
  const asSecret = (method: string, path: string, body?: unknown) => call(method, path, body, keys.secret)
  const asOperator = (method: string, path: string, body?: unknown) =>
    call(method, path, body, member.server.operatorToken)
  /** Asks until the answer has the status: a server that has just started may be busy, and one behind a failover mends itself. */
  async function until<T extends { readonly status: number }>(status: number, ask: () => Promise<T>): Promise<T> {
    const from = performance.now()
    for (;;) {
      const answer = await ask()
      if (answer.status === status || performance.now() - from > MEND_MS_MAX) return answer
      await systemClock.sleep(200)
    }
  }
  const visit = (n: number) =>
    asSecret('POST', '/v1/identify', {
      nonce: `lost-moment-visit-${n}`,
      userAgent:
        'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36',
      ip: `203.0.113.${n}`,
    })

  const key = { kind: 'secret', environment: 'live', label: 'leaked' }
  const leaked = await until(201, () => asOperator('POST', '/admin/v1/workspaces/ws_default/keys', key))
  t.equal(leaked.status, 201)
  t.equal((await until(200, () => visit(1))).status, 200)
  await systemClock.sleep(STORED_MS)
  const redis = await cluster.redis.client()
  await redis.save()

  const list = await until(201, () => asSecret('POST', '/v1/lists', { name: 'lost', type: 'ip' }))
  t.equal(list.status, 201)
  const revoked = await until(200, () => asOperator('DELETE', `/admin/v1/workspaces/ws_default/keys/${leaked.body.id}`))
  t.equal(revoked.status, 200)
  const { body: visited } = await until(200, () => visit(2))
  const visitor = `/v1/visitors/${visited.visitorId}`
  t.equal((await until(200, () => asSecret('GET', visitor))).status, 200)
  await systemClock.sleep(STORED_MS)
  await cluster.redis.kill9()
  await cluster.redis.restart()
  t.equal((await (await cluster.redis.client()).exists('nothing')) >= 0, true, 'it is back')

  const acknowledged = await until(200, () => asSecret('GET', `/v1/lists/${list.body.id}`))
  t.equal(acknowledged.status, 200, 'the list that was acknowledged')
  const refused = await until(401, () => call('GET', '/v1/lists', undefined, leaked.body.key ?? ''))
  t.equal(refused.status, 401, 'the revoked key')
  const read = await until(200, () => asSecret('GET', visitor))
  t.equal(read.status, 200, 'the visitor nobody has visited since')
})

t.test('a command that comes first behind the failover hides none that came before', async (t) => {
  const cluster = await startCluster({ roles: ['api,ingress,engine,jobs,dispatcher'], redisAof: 'off', partitions: 1 })
  t.teardown(() => cluster.stop())
  const [member] = cluster.members
  const headers = { authorization: `Bearer ${cluster.keys.secret}`, 'content-type': 'application/json' }
  const make = async (name: string): Promise<string> => {
    for (const from = performance.now(); ; ) {
      const body = JSON.stringify({ name, type: 'ip' })
      const response = await fetch(`${member?.url}/v1/lists`, { method: 'POST', headers, body })
      if (response.status === 201) return ((await response.json()) as { readonly id: string }).id
      if (performance.now() - from > MEND_MS_MAX) throw new Error(`${response.status} ${await response.text()}`)
      await systemClock.sleep(20)
    }
  }
  await make('before')
  await systemClock.sleep(STORED_MS)
  await (await cluster.redis.client()).save()
  const lost = await make('lost')
  await cluster.redis.kill9()
  await cluster.redis.restart()
  const next = await make('next')
  const names: number[] = []
  for (const id of [lost, next]) names.push((await fetch(`${member?.url}/v1/lists/${id}`, { headers })).status)
  t.same(names, [200, 200])
})
