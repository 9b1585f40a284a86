// Lists in a running server: what rules decide by them, how soon a change counts, what expires, and what rules put on them.

import t from 'tap'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'
import { CHROME, type Client, clientOf, eventually } from './client.ts'

t.teardown(cleanUp)

const dataDir = temporaryFolder()
const server = await startServer({ dataDir })
const client: Client = clientOf(server)
let requests = 0

interface Identified {
  readonly requestId: string
  readonly visitorId: string
  readonly verdict: string | null
  readonly storageToken: string
  readonly matchedRule: { readonly name: string } | null
}

async function identify(body: Record<string, unknown> = {}): Promise<Identified> {
  const answer = await client.identify({
    nonce: `nonce-for-lists-${String(++requests).padStart(8, '0')}`,
    ip: '198.51.100.1',
    userAgent: CHROME,
    ...body,
  })
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  return answer.body
}

async function make(name: string, type: string, more: object = {}): Promise<string> {
  const { status, body, text } = await client.send('POST', '/v1/lists', { body: { name, type, ...more } })
  if (status !== 201) throw new Error(`${status} ${text}`)
  return body.id
}

async function patch(id: string, body: object) {
  const answer = await client.send('PATCH', `/v1/lists/${id}/entries`, { body })
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  return answer.body
}

async function makeRule(name: string, rules: readonly object[], more: object = {}): Promise<string> {
  const conditions = { operator: 'AND', rules }
  const body = { name, conditions, action: { verdict: 'block' }, status: 'live', ...more }
  const answer = await client.send('POST', '/v1/rules', { body })
  if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`)
  return answer.body.id
}

const leaf = (field: string, operator: string, value: unknown) => ({ field, operator, value })
const tagged = (test: string) => leaf('tag.test', 'equals', test)
t.test('rules ask lists of visitors, addresses and emails, and not_in needs a value and a list', async (t) => {
  const visitors = await make('visitors', 'visitor')
  const ips = await make('ips', 'ip')
  const emails = await make('emails', 'email')
  await makeRule('visitor', [tagged('a'), leaf('visitorId', 'in', 'Visitors')])
  await makeRule('ip', [tagged('b'), leaf('ip', 'in', 'ips')])
  await makeRule('mail', [tagged('c'), leaf('email', 'in', 'emails')])
  await makeRule('not mail', [tagged('d'), leaf('email', 'not_in', 'emails')])
  await makeRule('account', [tagged('e'), leaf('linkedId', 'in', 'emails')])

  const first = await identify({ tag: { test: 'a' } })
  t.equal(first.verdict, 'allow')
  await patch(visitors, { add: [first.visitorId] })
  t.equal((await identify({ tag: { test: 'a' }, storageToken: first.storageToken })).verdict, 'block')
  t.same((await client.get(`/v1/visitors/${first.visitorId}`)).body.lists, ['visitors'])

  await patch(ips, { add: ['203.0.113.0/24', '2001:db8::/32', '198.51.100.77'] })
  for (const [ip, verdict] of [
    ['203.0.113.9', 'block'],
    ['::ffff:203.0.113.200', 'block'],
    ['203.0.114.1', 'allow'],
    ['2001:db8:5::1', 'block'],
    ['2001:db9::1', 'allow'],
    ['198.51.100.77', 'block'],
  ] as const) {
    t.equal((await identify({ ip, tag: { test: 'b' } })).verdict, verdict, ip)
  }
  await patch(emails, { add: ['Bad@B.example'] })
  t.equal((await identify({ email: ' bad@b.EXAMPLE', tag: { test: 'c' } })).verdict, 'block')
  t.equal((await identify({ email: 'good@b.example', tag: { test: 'c' } })).verdict, 'allow')
  t.equal((await identify({ email: 'good@b.example', tag: { test: 'd' } })).verdict, 'block')
  t.equal((await identify({ email: 'bad@b.example', tag: { test: 'd' } })).verdict, 'allow')
  t.equal((await identify({ tag: { test: 'd' } })).verdict, 'allow', 'without an email')
  t.equal((await identify({ linkedId: 'bad@b.example', tag: { test: 'e' } })).verdict, 'block', 'any text suits')

  t.equal((await client.send('DELETE', `/v1/lists/${emails}`)).body.affectedRules.length, 3)
  t.equal((await identify({ email: 'bad@b.example', tag: { test: 'c' } })).verdict, 'allow', 'the list is gone')
  t.equal((await identify({ email: 'good@b.example', tag: { test: 'd' } })).verdict, 'allow', 'for not_in too')
  const again = await make('EMAILS', 'email')
  await patch(again, { add: ['new@b.example'] })
  t.equal((await identify({ email: 'new@b.example', tag: { test: 'c' } })).verdict, 'block', 'one of that name counts')
  t.equal((await identify({ email: 'bad@b.example', tag: { test: 'c' } })).verdict, 'allow', 'without the old entries')
})

t.test('a change of entries counts within two seconds, and all of it at once', async (t) => {
  const left = await make('left', 'visitor')
  await makeRule('moved', [tagged('half'), leaf('tag.one', 'in', 'left'), leaf('tag.two', 'not_in', 'left')])
  await makeRule('moved back', [tagged('half'), leaf('tag.one', 'not_in', 'left'), leaf('tag.two', 'in', 'left')])
  await patch(left, { add: ['pv_one'] })
  const ask = () => identify({ tag: { test: 'half', one: 'pv_one', two: 'pv_two' } })
  t.equal((await eventually(ask, ({ verdict }) => verdict === 'block', 2_000)).verdict, 'block')
  let waitedMs = 0
  let verdicts = 0
  let isOver = false
  const asking = Array.from({ length: 3 }, async () => {
    while (!isOver) {
      if ((await ask()).verdict !== 'block') t.fail('half of a change was seen')
      verdicts += 1
    }
  })
  for (let i = 0; i < 30; i++) {
    const [add, remove] = i % 2 === 0 ? ['pv_two', 'pv_one'] : ['pv_one', 'pv_two']
    await patch(left, { add: [add], remove: [remove] })
    const from = performance.now()
    const wanted = i % 2 === 0 ? 'moved back' : 'moved'
    const { matchedRule } = await eventually(ask, (event) => event.matchedRule?.name === wanted, 2_000)
    t.equal(matchedRule?.name, wanted)
    waitedMs = Math.max(waitedMs, performance.now() - from)
  }
  isOver = true
  await Promise.all(asking)
  t.ok(verdicts > 30 && waitedMs < 2_000, `${verdicts} verdicts, at most ${waitedMs.toFixed(0)} ms`)
})
