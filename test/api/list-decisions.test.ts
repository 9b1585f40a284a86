// Lists in a running server: what rules decide by them, how soon a change counts, what expires, and what rules put on them.

import t, { type Test } from 'tap'
import { CHROME, eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const client = await openTenant()
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

/** A change of a list counts soon after its answer. */
async function decides(t: Test, body: Record<string, unknown>, wanted: string, why = ''): Promise<void> {
  const { verdict } = await eventually(
    () => identify(body),
    (event) => event.verdict === wanted,
  )
  t.equal(verdict, wanted, why)
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
interface Entry {
  readonly value: string
  readonly expiresAt: string | null
  readonly source: string
  readonly ruleId: string | null
  readonly reason: string | null
}
const entriesOf = async (id: string): Promise<Entry[]> =>
  (await client.get(`/v1/lists/${id}/entries?limit=100`)).body.data
const valuesOf = async (id: string) => (await entriesOf(id)).map(({ value }) => value)

const skipped = async () => {
  const { text } = await client.send('GET', '/metrics')
  return Number(/^fingerpost_side_effects_skipped_total (\d+)$/m.exec(text)?.[1])
}

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
  await decides(t, { tag: { test: 'a' }, storageToken: first.storageToken }, 'block')
  const known = await eventually(
    () => client.get(`/v1/visitors/${first.visitorId}`),
    ({ status }) => status === 200,
  )
  t.same(known.body.lists, ['visitors'])

  await patch(ips, { add: ['203.0.113.0/24', '2001:db8::/32', '198.51.100.77'] })
  for (const [ip, verdict] of [
    ['203.0.113.9', 'block'],
    ['::ffff:203.0.113.200', 'block'],
    ['203.0.114.1', 'allow'],
    ['2001:db8:5::1', 'block'],
    ['2001:db9::1', 'allow'],
    ['198.51.100.77', 'block'],
  ] as const) {
    await decides(t, { ip, tag: { test: 'b' } }, verdict, ip)
  }
  await patch(emails, { add: ['Bad@B.example'] })
  await decides(t, { email: ' bad@b.EXAMPLE', tag: { test: 'c' } }, 'block')
  await decides(t, { email: 'good@b.example', tag: { test: 'c' } }, 'allow')
  await decides(t, { email: 'good@b.example', tag: { test: 'd' } }, 'block')
  await decides(t, { email: 'bad@b.example', tag: { test: 'd' } }, 'allow')
  await decides(t, { tag: { test: 'd' } }, 'allow', 'without an email')
  await decides(t, { linkedId: 'bad@b.example', tag: { test: 'e' } }, 'block', 'any text suits')

  t.equal((await client.send('DELETE', `/v1/lists/${emails}`)).body.affectedRules.length, 3)
  await decides(t, { email: 'bad@b.example', tag: { test: 'c' } }, 'allow', 'the list is gone')
  await decides(t, { email: 'good@b.example', tag: { test: 'd' } }, 'allow', 'for not_in too')
  const again = await make('EMAILS', 'email')
  await patch(again, { add: ['new@b.example'] })
  await decides(t, { email: 'new@b.example', tag: { test: 'c' } }, 'block', 'one of that name counts')
  await decides(t, { email: 'bad@b.example', tag: { test: 'c' } }, 'allow', 'without the old entries')
})

t.test('a change of entries counts, and all of it at once', async (t) => {
  const left = await make('left', 'visitor')
  await makeRule('moved', [tagged('half'), leaf('tag.one', 'in', 'left'), leaf('tag.two', 'not_in', 'left')])
  await makeRule('moved back', [tagged('half'), leaf('tag.one', 'not_in', 'left'), leaf('tag.two', 'in', 'left')])
  await patch(left, { add: ['pv_one00000000000000000'] })
  const ask = () => identify({ tag: { test: 'half', one: 'pv_one00000000000000000', two: 'pv_two00000000000000000' } })
  t.equal((await eventually(ask, ({ verdict }) => verdict === 'block')).verdict, 'block')
  const halves: string[] = []
  let verdicts = 0
  let isOver = false
  const asking = Array.from({ length: 3 }, async () => {
    while (!isOver) {
      const { verdict, requestId } = await ask()
      if (verdict !== 'block') halves.push(requestId)
      verdicts += 1
    }
  })
  const changes = sized({ quick: 3, usual: 8, long: 30 })
  for (let i = 0; i < changes; i++) {
    const [add, remove] =
      i % 2 === 0
        ? ['pv_two00000000000000000', 'pv_one00000000000000000']
        : ['pv_one00000000000000000', 'pv_two00000000000000000']
    await patch(left, { add: [add], remove: [remove] })
    const wanted = i % 2 === 0 ? 'moved back' : 'moved'
    const { matchedRule } = await eventually(ask, (event) => event.matchedRule?.name === wanted)
    t.equal(matchedRule?.name, wanted)
  }
  isOver = true
  await Promise.all(asking)
  t.same(halves, [], 'half of a change was never seen')
  t.ok(verdicts > changes, `${verdicts} verdicts`)
})

t.test('the deciding rule alone changes lists, with the value it names, and the change counts', async (t) => {
  const caught = await make('caught', 'visitor', { ttl: 3_600 })
  const trusted = await make('trusted', 'visitor')
  const nets = await make('nets', 'ip')
  const effect = (...sideEffects: object[]) => ({ action: { verdict: 'challenge', sideEffects } })
  const add = { type: 'addToList', list: 'CAUGHT', reason: 'burst' }
  const first = await makeRule('catch', [tagged('fx')], {
    ...effect(add, { type: 'removeFromList', list: 'trusted' }, { type: 'addToList', list: 'nets', ttl: 900 }),
    priority: 1,
  })
  await makeRule('later', [tagged('fx')], { ...effect({ type: 'addToList', list: 'trusted' }), priority: 2 })
  await makeRule('watch', [tagged('fx')], { ...effect({ type: 'addToList', list: 'trusted' }), status: 'monitor' })
  await makeRule('mail', [tagged('mail')], effect({ type: 'addToList', list: 'nets', value: 'tag.ip' }))

  const seen = await identify({ tag: { test: 'none' } })
  await patch(trusted, { add: [seen.visitorId] })
  const from = Date.now()
  await identify({ tag: { test: 'fx' }, storageToken: seen.storageToken, ip: '203.0.113.77' })
  // The last of what the rule does: lists change one after the other.
  const inNets = await eventually(
    () => valuesOf(nets),
    (values) => values.length > 0,
  )
  const [entry] = await entriesOf(caught)
  t.match(entry, { value: seen.visitorId, source: 'rule', ruleId: first, reason: 'burst' })
  t.ok(Math.abs(Date.parse(String(entry?.expiresAt)) - from - 3_600_000) < 60_000, 'it lives as long as the list says')
  t.same(await valuesOf(trusted), [], 'it is off the other list, and no other rule put it back')
  t.same(inNets, ['203.0.113.77'], 'the full address')
  await makeRule('seen again', [tagged('fx2'), leaf('visitorId', 'in', 'caught')])
  const again = () => identify({ tag: { test: 'fx2' }, storageToken: seen.storageToken })
  t.equal((await eventually(again, ({ verdict }) => verdict === 'block')).verdict, 'block')

  const before = await skipped()
  await identify({ tag: { test: 'mail' } })
  await identify({ tag: { test: 'mail', ip: 7 } })
  await identify({ tag: { test: 'mail', ip: 'no address' } })
  await identify({ tag: { test: 'mail', ip: '2001:DB8:9::/48' } })
  t.same(
    await eventually(
      () => valuesOf(nets),
      (values) => values.length > 1,
    ),
    ['2001:db8:9::/48', '203.0.113.77'],
    'what is missing or no address is left out',
  )
  const after = await eventually(skipped, (count) => count >= before + 3)
  t.ok(after >= before + 3, 'and counted')
})

t.test('an erased visitor is on no list any more', async (t) => {
  const doomed = await make('doomed', 'visitor')
  const { visitorId } = await identify({ tag: { test: 'none' }, userAgent: `${CHROME} doomed` })
  await patch(doomed, { add: [visitorId, 'pv_other000000000000000'] })
  await eventually(
    () => client.get(`/v1/visitors/${visitorId}`),
    ({ status }) => status === 200,
  )
  t.same((await client.get(`/v1/visitors/${visitorId}`)).body.lists, ['doomed'])
  t.equal((await client.send('DELETE', `/v1/visitors/${visitorId}`)).status, 200)
  t.same(await valuesOf(doomed), ['pv_other000000000000000'])
  t.equal((await client.get(`/v1/lists/${doomed}`)).body.entryCount, 1)

  const again = await patch(doomed, { add: [visitorId, 'pv_another0000000000000'] })
  t.match(again, { added: 1, removed: 0, skippedErased: 1, entryCount: 2 })
  t.same(await valuesOf(doomed), ['pv_another0000000000000', 'pv_other000000000000000'], 'nor does anybody put it back')
  t.match(await patch(doomed, { add: [visitorId] }), { added: 0, skippedErased: 1, entryCount: 2 })
  const sideEffects = [{ type: 'addToList', list: 'doomed', value: 'tag.id' }]
  await makeRule('doomed', [tagged('doomed')], { action: { verdict: 'challenge', sideEffects } })
  const before = await skipped()
  await identify({ tag: { test: 'doomed', id: visitorId } })
  t.equal(await eventually(skipped, (count) => count > before), before + 1, 'nor does a rule')
  t.same((await valuesOf(doomed)).length, 2)
})

t.test('an entry counts until it expires, and then leaves the list', async (t) => {
  const brief = await make('brief', 'visitor')
  await makeRule('brief', [tagged('brief'), leaf('tag.id', 'in', 'brief')])
  const isBlocked = async (id: string) => (await identify({ tag: { test: 'brief', id } })).verdict === 'block'
  const countOf = async () => (await client.get(`/v1/lists/${brief}`)).body.entryCount
  // Whoever is held up for so long that the entry is over before it was asked about adds one that lasts longer.
  let endsAt = 0
  for (let ttl = 3, wasSeen = false; !wasSeen; ttl *= 3) {
    endsAt = Date.now() + ttl * 1_000
    await patch(brief, { add: [{ value: 'pv_soon0000000000000000', ttl }, 'pv_always00000000000000'] })
    wasSeen = await eventually(
      () => isBlocked('pv_soon0000000000000000'),
      (blocked) => blocked || Date.now() > endsAt,
    )
  }
  const isStill = await eventually(
    () => isBlocked('pv_soon0000000000000000'),
    (blocked) => !blocked,
  )
  t.equal(isStill, false)
  t.ok(Date.now() >= endsAt, 'not before it expired')
  t.equal(await eventually(countOf, (count) => count === 1), 1, 'and left the list')
  t.equal(await isBlocked('pv_always00000000000000'), true)
})
