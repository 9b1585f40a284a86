// What was answered is still so after kill -9: merges, splits, statistics of rules, counters, and lists with what rules put on
// them and what expires. All of it is made on one server with several threads, which is killed while it works. The long run
// ends it four times, once of them in order.

import t, { type Test } from 'tap'
import { CHROME, clientOf, eventually } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { type Device, deviceOf } from '../helpers/devices.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)
t.setTimeout(900_000)

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
type Json = any
/** Compares what is there after the end of the server with what was there before. */
type Check = (t: Test) => Promise<void>

const KILL = 'kill -9'
const ENDS = sized({ usual: [KILL], long: [KILL, 'a stop', KILL, KILL] })
const EFFECTS_MIN = sized({ usual: 8, long: 30 })
const BRIEF_SECONDS = sized({ usual: 3, long: 35 })
const LANES = 6

const dataDir = temporaryFolder()
const env = { FINGERPOST_ENGINE_THREADS: '3', FINGERPOST_ENGINE_THREADS_MIN: '3' }
let server = await startServer({ dataDir, env })
let client = clientOf(server)
const { keys, port } = server
const key = keys.testSecret

let devices = 0
async function visit(body: object): Promise<Json> {
  const { status, body: event, text } = await client.identify({ userAgent: CHROME, ...body }, { key })
  if (status !== 200) throw new Error(`${status} ${text}`)
  return event
}
async function made(path: string, body: object, method = 'POST'): Promise<Json> {
  const { status, body: answer, text } = await client.send(method, path, { key, body })
  if (status >= 300) throw new Error(`${path}: ${status} ${text}`)
  return answer
}
const read = async (path: string): Promise<Json> => (await client.get(path, key)).body
const stored = (visitorId: string, totalVisits: number) =>
  eventually(
    () => read(`/v1/visitors/${visitorId}`),
    (visitor) => visitor?.totalVisits === totalVisits,
  )
const leaf = (field: string, operator: string, value: unknown) => ({ field, operator, value })
const tagged = (test: string) => leaf('tag.test', 'equals', test)
const makeRule = async (name: string, rules: readonly object[], more: object = {}): Promise<string> =>
  (
    await made('/v1/rules', {
      name,
      conditions: { operator: 'AND', rules },
      action: { verdict: 'block' },
      status: 'live',
      ...more,
    })
  ).id

async function openMerge(): Promise<Check> {
  const [a, b] = [deviceOf(++devices), deviceOf(++devices)]
  const [first, second] = [await visit(a), await visit(b)]
  await made(`/v1/visitors/${first.visitorId}/merge`, { visitorId: second.visitorId })
  return async (t) => {
    t.equal((await read(`/v1/visitors/${second.visitorId}`)).visitorId, first.visitorId)
    t.equal((await visit({ ...b, storageToken: second.storageToken })).visitorId, first.visitorId, 'by its token')
    t.equal((await visit(b)).visitorId, first.visitorId, 'by its looks')
  }
}

async function openSplit(): Promise<Check> {
  const kind = ++devices
  const [a, b]: [Device, Device] = [deviceOf(kind), deviceOf(++devices, kind)]
  const first = await visit(a)
  const copied = await visit({ ...b, storageToken: first.storageToken })
  const again = await visit({ ...b, storageToken: copied.storageToken })
  const id = first.visitorId
  await stored(id, 3)
  const requestIds = [copied.requestId, again.requestId]
  const { visitorId: to } = await made(`/v1/visitors/${id}/split`, { requestIds })
  return async (t) => {
    t.match(await read(`/v1/visitors/${to}`), { totalVisits: 2 })
    t.match(await read(`/v1/visitors/${id}`), { totalVisits: 1 })
    t.equal((await read(`/v1/events/${again.requestId}`)).visitorId, to)
    t.equal((await visit({ ...b, storageToken: again.storageToken })).visitorId, to, 'by its token')
    t.equal((await visit(b)).visitorId, to, 'by its looks')
  }
}

async function openStatistics(round: number): Promise<Check> {
  const test = `statistics ${round}`
  const live = await makeRule(`live ${round}`, [tagged(test)])
  const watching = await makeRule(`watching ${round}`, [tagged(test), leaf('tag.n', 'gte', 1)], { status: 'monitor' })
  for (let n = 0; n < 3; n++) await visit({ tag: { test, n } })
  const stats = () => Promise.all([live, watching].map(async (id) => (await read(`/v1/rules/${id}`)).stats))
  const isComplete = ([one, other]: Json[]) => one.matchCount >= 3 && other.monitorMatchCount >= 2
  const before = await eventually(stats, isComplete)
  return async (t) => {
    t.match(before, [{ matchCount: 3 }, { matchCount: 0, monitorMatchCount: 2, lastMatchAt: null }])
    t.same(await eventually(stats, isComplete), before)
  }
}

/** The same visitor, account and address in every round, and strangers on other partitions. */
function openCounters() {
  const [linkedId, mock] = ['someone', { ip: '198.51.100.9' }]
  let storageToken: string | undefined
  let own = 0
  let strangers = 0
  return async (t: Test) => {
    const back = await visit({ linkedId, mock, storageToken })
    own += 1
    t.equal(back.velocity.visitor.events['24h'], own, 'the visitor')
    t.equal(back.velocity.ip.events['24h'], own + strangers, 'the address')
    storageToken ??= back.storageToken
    const seen: number[] = []
    for (let i = 0; i < 6; i++) seen.push((await visit({ linkedId, mock })).velocity.ip.events['24h'])
    t.same(
      seen,
      seen.map((_, i) => own + strangers + i + 1),
      'strangers one after the other',
    )
    strangers += 6
    const atOnce = await Promise.all(Array.from({ length: 12 }, () => visit({ linkedId, mock })))
    const unaware = atOnce.filter(({ velocity }) => velocity.ip.events['24h'] <= own + strangers)
    t.same(unaware, [], 'those at the same time see all before them')
    strangers += 12
    const last = await visit({ linkedId, mock, storageToken })
    own += 1
    t.equal(last.velocity.ip.events['24h'], own + strangers)
    t.equal(last.velocity.ip.visitors['24h'], 1 + strangers)
    t.equal(last.velocity.linkedId.visitors['24h'], 1 + strangers)
  }
}

async function openExpiry(round: number): Promise<Check> {
  const name = `brief_${round}`
  const { id } = await made('/v1/lists', { name, type: 'visitor' })
  await makeRule(name, [tagged(name), leaf('tag.id', 'in', name)])
  const endsAt = Date.now() + BRIEF_SECONDS * 1_000
  const add = [
    { value: 'pv_soon0000000000000000', ttl: BRIEF_SECONDS },
    { value: 'pv_later000000000000000', ttl: 3_600 },
    'pv_always00000000000000',
  ]
  await made(`/v1/lists/${id}/entries`, { add }, 'PATCH')
  const isBlocked = async (entry: string) => (await visit({ tag: { test: name, id: entry } })).verdict === 'block'
  return async (t) => {
    const isStill = await eventually(
      () => isBlocked('pv_soon0000000000000000'),
      (blocked) => !blocked,
      120_000,
    )
    t.equal(isStill, false)
    t.ok(Date.now() >= endsAt, 'not before it expired')
    const count = async () => (await read(`/v1/lists/${id}`)).entryCount
    t.equal(await eventually(count, (entries) => entries === 2), 2, 'it left the list')
    t.equal(await isBlocked('pv_later000000000000000'), true, 'what has time left counts')
    t.equal(await isBlocked('pv_always00000000000000'), true)
  }
}

/** Rules put emails on a list, and take some off again, until the server is ended in the middle of it. */
async function openEffects(round: number) {
  const [list, on, off] = [`counted_${round}`, `on ${round}`, `off ${round}`]
  const { id } = await made('/v1/lists', { name: list, type: 'email' })
  const effect = (type: string) => ({
    action: { verdict: 'allow', sideEffects: [{ type, list, value: 'tag.mail' }] },
  })
  await makeRule(on, [tagged(on)], effect('addToList'))
  await makeRule(off, [tagged(off)], effect('removeFromList'))
  const added: string[] = []
  let isOver = false
  const sending = Array.from({ length: LANES }, async (_, lane) => {
    for (let i = 0; !isOver; i++) {
      const mail = `m${lane}.${i}@b.example`
      const event = await visit({ tag: { test: on, mail } }).catch(() => null)
      if (event !== null) added.push(mail)
    }
  })
  await eventually(
    async () => added.length,
    (count) => count > EFFECTS_MIN,
  )
  // It would come back if the effect that put it there happened twice.
  const removed = added.shift() as string
  await visit({ tag: { test: off, mail: removed } })

  async function listed(): Promise<string[]> {
    const values: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { data, nextCursor } = await read(`/v1/lists/${id}/entries?limit=100${query}`)
      values.push(...data.map(({ value }: Json) => value))
      cursor = nextCursor
    }
    return values
  }
  const check: Check = async (t) => {
    const isRight = (all: string[]) => added.every((mail) => all.includes(mail)) && !all.includes(removed)
    const values = await eventually(listed, isRight)
    t.same(
      added.filter((mail) => !values.includes(mail)),
      [],
      'none is lost',
    )
    t.notOk(values.includes(removed), 'none happens again')
    const counts = async () => [(await read(`/v1/lists/${id}`)).entryCount, (await listed()).length]
    const [count, length] = await eventually(counts, ([count, length]) => count === length)
    t.equal(count, length)
  }
  return {
    check,
    async leave() {
      isOver = true
      await Promise.all(sending)
    },
  }
}

t.test('what was answered is so after the server was ended', async (t) => {
  const counters = openCounters()
  await t.test('counters count exactly over all threads', counters)
  for (const [round, how] of ENDS.entries()) {
    const checks: [name: string, check: Check][] = [
      ['an answered merge', await openMerge()],
      ['an answered split', await openSplit()],
      ['every match in the statistics of rules', await openStatistics(round)],
      ['entries of lists with their ends', await openExpiry(round)],
    ]
    const effects = await openEffects(round)
    if (how === KILL) await server.kill9()
    else await server.stop()
    await effects.leave()
    server = await startServer({ dataDir, keys, port, env })
    client = clientOf(server)
    await t.test(`counters lose nothing and count nothing twice over ${how}`, counters)
    for (const [name, check] of checks) await t.test(`${name} survives ${how}`, check)
    await t.test(`side effects happen once each over ${how}`, effects.check)
  }
})
