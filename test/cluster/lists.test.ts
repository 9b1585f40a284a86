// Lists in a cluster: what one process changes every engine decides by within two seconds, what rules put on them comes once
// whichever engine dies, and what expires leaves.

import t from 'tap'
import { browserBody, CHROME, clientOf, eventually } from '../helpers/client.ts'
import { type Member, startCluster } from '../helpers/cluster.ts'
import { pause } from '../helpers/processes.ts'
import { cleanUp } from '../helpers/server.ts'

t.setTimeout(400_000)
t.teardown(cleanUp)

const cluster = await startCluster({ roles: ['ingress', 'engine,jobs', 'engine', 'api'], partitions: 4 })
t.teardown(() => cluster.stop())
const [ingress] = cluster.membersOf('ingress').map(({ server }) => clientOf(server)) as [Client]
const [api] = cluster.membersOf('api').map(({ server }) => clientOf(server)) as [Client]
const key = cluster.keys.secret
type Client = ReturnType<typeof clientOf>

let made = 0
/** Each comes from another device, so that all partitions are asked. */
const visit = (tag: object) =>
  ingress.identify({ ...browserBody(`GPU ${++made}`), userAgent: CHROME, tag }, { key }).catch(() => null)
const call = async (method: string, path: string, body: unknown) => {
  const answer = await api.send(method, path, { key, body })
  if (answer.status >= 300) throw new Error(`${answer.status} ${answer.text}`)
  return answer.body
}
const make = async (name: string, type: string): Promise<string> =>
  (await call('POST', '/v1/lists', { name, type })).id as string
const makeRule = (rules: readonly object[], sideEffects: readonly object[] = [], verdict = 'block') =>
  call('POST', '/v1/rules', {
    name: 'r',
    conditions: { operator: 'AND', rules },
    action: { verdict, sideEffects },
    status: 'live',
  })

t.test('every engine decides by a change within two seconds, and by its end when its time is over', async (t) => {
  const id = await make('blocked', 'ip')
  await makeRule([{ field: 'tag.ip', operator: 'in', value: 'blocked' }])
  const verdicts = async (ip: string) => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => visit({ ip })))
    return new Set(answers.map((answer) => answer?.body.verdict)) as ReadonlySet<string>
  }
  const only = (verdict: string) => (seen: ReadonlySet<string>) => seen.size === 1 && seen.has(verdict)
  t.ok(only('allow')(await eventually(() => verdicts('10.1.2.3'), only('allow'))))
  await call('PATCH', `/v1/lists/${id}/entries`, { add: ['10.0.0.0/8'] })
  t.ok(only('block')(await eventually(() => verdicts('10.1.2.3'), only('block'))))
  await call('PATCH', `/v1/lists/${id}/entries`, { add: [{ value: '192.0.2.7', ttl: 6 }] })
  const from = Date.now()
  t.ok(only('block')(await eventually(() => verdicts('192.0.2.7'), only('block'))))
  t.ok(only('allow')(await eventually(() => verdicts('192.0.2.7'), only('allow'))))
  t.ok(Date.now() - from < 30_000)
  const count = async () => (await api.get(`/v1/lists/${id}`, key)).body.entryCount
  t.equal(await eventually(count, (entries) => entries === 1), 1, 'it left the list')
  await call('PATCH', `/v1/lists/${id}/entries`, { remove: ['10.0.0.0/8'] })
  t.ok(only('allow')(await eventually(() => verdicts('10.1.2.3'), only('allow'))))
})

t.test('what rules put on a list comes once, also when an engine dies', async (t) => {
  const id = await make('seen', 'email')
  const add = { type: 'addToList', list: 'seen', value: 'tag.mail' }
  await makeRule([{ field: 'tag.mail', operator: 'exists', value: true }], [add], 'allow')
  const sent: string[] = []
  let isOver = false
  const sending = Array.from({ length: 4 }, async (_, lane) => {
    for (let i = 0; !isOver; i++) {
      const mail = `${lane}.${i}@b.example`
      const answer = await visit({ mail })
      if (answer?.status === 200 || answer?.status === 202) sent.push(mail)
    }
  })
  const begun = await eventually(
    async () => sent.length,
    (count) => count > 10,
  )
  const [, victim] = cluster.membersOf('engine') as [Member, Member]
  await victim.kill9()
  ;(cluster.members as Member[]).splice(cluster.members.indexOf(victim), 1)
  await pause(1_000)
  await eventually(
    async () => sent.length,
    (count) => count > begun + 10,
  )
  isOver = true
  await Promise.all(sending)
  async function missing(): Promise<string[]> {
    const values = new Set<string>()
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { body } = await api.get(`/v1/lists/${id}/entries?limit=100${query}`, key)
      for (const { value } of body.data) values.add(value)
      cursor = body.nextCursor
    }
    return sent.filter((mail) => !values.has(mail))
  }
  t.same(await eventually(missing, (mails) => mails.length === 0), [], `none of ${sent.length} is lost`)
  t.ok(sent.length > 20)
})
