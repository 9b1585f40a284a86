// What rules, answers and webhooks are told of a merged visitor: the sums that GET /v1/visitors/{id} shows, whichever of its
// devices comes, and wherever their records lie.

import t from 'tap'
import { homePartition } from '../../src/domain/ids.ts'
import { eventually } from '../helpers/client.ts'
import { type Device, deviceOf } from '../helpers/devices.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
type Json = any

const PARTITIONS = 16
const DAY_MS = 86_400_000
const api = await openTenant()
const key = api.server.keys.testSecret

interface Known {
  readonly device: Device
  readonly visitorId: string
  readonly storageToken: string
  readonly partition: number
}

async function visit(device: Device, more: object = {}): Promise<Json> {
  const { status, body, text } = await api.identify({ ...device, ...more }, { key })
  if (status !== 200) throw new Error(`${status} ${text}`)
  return body
}
const stored = (visitorId: string, totalVisits: number): Promise<Json> =>
  eventually(
    async () => (await api.get(`/v1/visitors/${visitorId}`, key)).body,
    (body) => body?.totalVisits >= totalVisits,
  )

/** What rules saw of an event. */
async function seenByRules(requestId: string): Promise<Json> {
  const fields = ['visitor.totalVisits', 'visitor.linkedAccounts', 'visitor.ageSeconds', 'velocity.visitor.events.24h']
  const rules = fields.map((field) => ({ field, operator: 'gte', value: 0 }))
  const body = { requestId, conditions: { operator: 'AND', rules } }
  const { body: answer, text } = await api.send('POST', '/v1/rules/simulate', { key, body })
  if (answer?.trace === undefined) throw new Error(text)
  return Object.fromEntries(answer.trace.map(({ field, actual }: Json) => [field, actual]))
}

/** Somebody seen for the first time `days` ago, with an account. */
async function newcomer(n: number, days: number): Promise<Known> {
  const device = deviceOf(n)
  const at = new Date(Date.now() - days * DAY_MS).toISOString()
  const { visitorId, storageToken } = await visit(device, { linkedId: `account_${n}`, mock: { ...device.mock, at } })
  return { device, visitorId, storageToken, partition: homePartition(visitorId, PARTITIONS) }
}

/** More visitors than there are partitions, so that two of them live in one. */
const everybody: Known[] = []
for (let n = 1; n <= PARTITIONS + 1; n++) everybody.push(await newcomer(n, 10))
const neighbours = (of: Known, are: boolean) => (one: Known) => one !== of && (one.partition === of.partition) === are
const shared = everybody.find((one) => everybody.some(neighbours(one, true))) as Known
const pairs = [['of one partition', shared, everybody.find(neighbours(shared, true)) as Known]] as const
const apart = everybody.filter((one) => one !== pairs[0][1] && one !== pairs[0][2])
const first = apart[0] as Known
const elsewhere = apart.find(neighbours(first, false)) as Known

for (const [what, survivor, alias] of [...pairs, ['of two partitions', first, elsewhere]] as const) {
  t.test(`visitors ${what}: everything told of an event counts what both have seen`, async (t) => {
    const merged = await api.send('POST', `/v1/visitors/${survivor.visitorId}/merge`, {
      key,
      body: { visitorId: alias.visitorId },
    })
    t.match(merged, { status: 200, body: { totalVisits: 2, linkedAccounts: 2 } })
    const { firstSeenAt } = merged.body
    const both = [alias, survivor, alias, survivor]
    for (const [i, { device, storageToken }] of both.entries()) {
      const visits = 3 + i
      const event = await visit(device, { storageToken })
      t.equal(event.visitorId, survivor.visitorId)
      t.equal(event.firstSeenAt, firstSeenAt, 'the answer has the first visit of either')
      t.equal(event.velocity.visitor.events['24h'], i + 1, 'the answer counts events of both')
      t.equal(event.velocity.visitor.ips['24h'], Math.min(2, i + 1), 'and addresses of both')
      const seen = await seenByRules(event.requestId)
      t.equal(seen['visitor.totalVisits'], visits)
      t.equal(seen['visitor.linkedAccounts'], 2)
      t.equal(seen['velocity.visitor.events.24h'], i + 1)
      t.ok(seen['visitor.ageSeconds'] >= (10 * DAY_MS) / 1000 - 1)
      const visitor = await stored(survivor.visitorId, visits)
      t.match(visitor, { totalVisits: visits, linkedAccounts: 2, firstSeenAt }, 'as reads have it')
    }
  })
}

t.test('an account that either device was seen with is not new for the other', async (t) => {
  const [one, other] = apart.slice(-2) as [Known, Known]
  const conditions = { operator: 'AND', rules: [{ field: 'tag.ask', operator: 'equals', value: 'account' }] }
  const rule = { name: 'ask', conditions, action: { verdict: 'challenge' }, status: 'live' }
  t.equal((await api.send('POST', '/v1/rules', { key, body: rule })).status, 201)
  const merged = await api.send('POST', `/v1/visitors/${one.visitorId}/merge`, {
    key,
    body: { visitorId: other.visitorId },
  })
  t.equal(merged.status, 200)
  const linkedId = `account_${everybody.indexOf(one) + 1}`
  const event = await visit(other.device, { storageToken: other.storageToken, linkedId, tag: { ask: 'account' } })
  t.match(event, { visitorId: one.visitorId, challengeType: 'captcha' })
  const stranger = { storageToken: other.storageToken, linkedId: 'somebody_else', tag: { ask: 'account' } }
  t.match(await visit(other.device, stranger), { visitorId: one.visitorId, challengeType: 'otp' })
})
