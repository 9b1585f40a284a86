// Made-up histories: what a seeded folder serves is consistent, the same seed adds nothing, another one adds another history.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { StoredEvent } from '../../src/domain/event.ts'
import { requestTime } from '../../src/domain/ids.ts'
import type { Rule } from '../../src/domain/rule.ts'
import type { Workspace } from '../../src/domain/workspace.ts'
import { EVENTS_TABLE, fromRow, toRow } from '../../src/events/row.ts'
import { openRandom } from '../../src/lib/random.ts'
import { CannotSeed, type SeedWanted, seed } from '../../src/ops/seed.ts'
import { openEventMaker } from '../../src/ops/seed-events.ts'
import { openOutcomes } from '../../src/ops/seed-outcomes.ts'
import { openVisits } from '../../src/ops/seed-visits.ts'
import { RULES } from '../../src/ops/seed-world.ts'
import { SYSTEM } from '../../src/records/scopes.ts'
import { encodeSnapshot, openSnapshot } from '../../src/rules/snapshot.ts'
import { clientOf } from '../helpers/client.ts'
import { checkTotals, listEvents, type Ops, openOps, PARTITIONS } from '../helpers/deployment.ts'
import { DEPTH, sized } from '../helpers/depth.ts'
import { cleanUp, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)
const EVENTS = sized({ quick: 200, usual: 1_000, long: 2_000 })
const ROWS = sized({ quick: 800, usual: 3_000, long: 5_000 })
const DAYS = 12
const DAY_MS = 86_400_000
const MAIN = new URL('../../server/main.js', import.meta.url).pathname

const run = (dataDir: string, ...args: readonly string[]) =>
  promisify(execFile)(process.execPath, [MAIN, 'seed', ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, FINGERPOST_DATA_DIR: dataDir },
  })

async function checkServed(t: Test): Promise<void> {
  const dataDir = temporaryFolder()
  const { stdout } = await run(dataDir, '--events', String(EVENTS), '--days', String(DAYS), '--seed', 'a')
  t.match(stdout, new RegExp(`^seeded: ${EVENTS} events of \\d+ visitors`))
  const server = await startServer({ dataDir })
  const client = clientOf(server)
  const events = await listEvents(client)
  t.equal(new Set(events.map(({ requestId }) => requestId)).size, EVENTS, 'every event once')
  const times = events.map(({ requestId }) => requestTime(requestId) ?? 0)
  t.ok(Math.max(...times) <= Date.now() && Math.min(...times) >= Date.now() - (DAYS + 1) * DAY_MS, 'in its time')
  const verdicts = new Set(events.map(({ verdict }) => verdict))
  t.ok(verdicts.has('allow') && verdicts.size > 1, `rules decided: ${[...verdicts]}`)
  await checkTotals(t, client, events)

  const visits = new Map<string, typeof events>()
  for (const event of events) visits.set(event.visitorId, [...(visits.get(event.visitorId) ?? []), event])
  const [regular = []] = [...visits.values()].sort((a, b) => b.length - a.length)
  const { body: page } = await client.get(`/v1/visitors/${regular[0]?.visitorId}/events?limit=100`)
  t.same(
    page.data.map(({ requestId }: { requestId: string }) => requestId),
    regular.slice(0, 100).map(({ requestId }) => requestId),
    'the events of a visitor, newest first',
  )
  const counts = { allow: 0, challenge: 0, block: 0 }
  for (const { verdict } of regular) counts[verdict as keyof typeof counts]++
  const { body: visitor } = await client.get(`/v1/visitors/${regular[0]?.visitorId}`)
  t.same(visitor.previousVerdicts, counts)
  t.equal(Date.parse(visitor.lastSeenAt), requestTime(regular[0]?.requestId ?? ''))

  const { body: lists } = await client.get('/v1/lists')
  t.same(lists.data.map(({ name }: { name: string }) => name).sort(), [
    'abusive_addresses',
    'regular_devices',
    'seen_bots',
  ])
  const { id: regulars = '' } = lists.data.find(({ name }: { name: string }) => name === 'regular_devices') ?? {}
  const { body: listed } = await client.get(`/v1/lists/${regulars}/entries?limit=1`)
  t.ok(visits.has(listed.data[0]?.value), 'who is listed was there')
  const { body: member } = await client.get(`/v1/visitors/${listed.data[0]?.value}`)
  t.ok(member.lists.includes('regular_devices'))

  const { body: rules } = await client.get('/v1/rules')
  t.equal(rules.total, RULES.length)
  let matched = 0
  for (const { id } of rules.data) {
    const { body: rule } = await client.get(`/v1/rules/${id}`)
    const { body: found } = await client.get(`/v1/events?ruleId=${id}&limit=100`)
    t.equal(Math.min(rule.stats.matchCount, 100), found.data.length, rule.name)
    const { body: monitored } = await client.get(`/v1/rules/${id}/monitor?days=90`)
    const evaluated = rule.status === 'monitor' ? EVENTS : 0
    t.match(monitored, { evaluated, matched: rule.stats.monitorMatchCount }, `${rule.name} while it was monitored`)
    matched += rule.stats.matchCount
  }
  t.ok(matched > 0, 'rules have matched')
  const { body: event } = await client.get(`/v1/events/${events[0]?.requestId}`)
  t.match(event, { requestId: events[0]?.requestId, device: { platform: /./ }, ip: { country: /^[A-Z]{2}$/ } })
  t.equal(await server.stop(), 0)

  const again = await run(dataDir, '--events', String(EVENTS), '--days', String(DAYS), '--seed', 'a')
  t.match(again.stdout, /nothing added/)
}

// A quick run looks at what was made, not at what a server makes of it.
if (DEPTH !== 'quick') t.test('a seeded folder serves a history that agrees with itself', checkServed)

/** Seeds, says what is there then, and makes the next attempt believe that this one was interrupted at the very end. */
async function seedAndLook(ops: Ops, wanted: SeedWanted) {
  const { clickhouse, kv } = ops
  const done = await seed({ ...ops, random: openRandom(), retentionDays: 90 }, wanted)
  const [row] = await clickhouse.query<{ n: number; ids: number; visitors: number }>(
    `SELECT count() AS n, uniqExact(request_id) AS ids, uniqExact(visitor_id) AS visitors FROM ${EVENTS_TABLE}`,
  )
  const kept = new Set<string>()
  const stats: string[] = []
  for (let p = 0; p < PARTITIONS; p++) {
    for await (const { key } of kv.walk(`p/${p}`, 'visitor')) kept.add(key[1])
    for await (const { key, value } of kv.walk(`p/${p}`, 'rulestat')) stats.push(`${p} ${key[1]} ${value}`)
  }
  for (const { key, value } of await kv.scan<Record<string, unknown>>(SYSTEM, 'seed', { limit: 10 })) {
    await kv.commit([{ scope: SYSTEM, put: [{ key, value: { ...value, done: false } }] }])
  }
  return { done, row, kept, stats: stats.sort() }
}

t.test('an interrupted history is completed without doubling anything, and two seeds differ', async (t) => {
  const dataDir = temporaryFolder()
  const wanted: SeedWanted = { events: EVENTS, days: DAYS, seed: 'b', workspace: 'default', env: 'test' }
  let ops = await openOps(dataDir)
  t.teardown(() => ops.close())
  const work = (more: Partial<SeedWanted> = {}) => seedAndLook(ops, { ...wanted, ...more })
  const first = await work()
  t.same([first.row?.n, first.row?.ids, first.row?.visitors], [EVENTS, EVENTS, first.kept.size])
  await ops.close()
  ops = await openOps(dataDir)
  const second = await work()
  t.equal(second.done.events, 0, 'all of it was there')
  t.same({ ...second, done: null }, { ...first, done: null })
  const other = await work({ seed: 'c' })
  t.same([other.row?.n, other.row?.ids], [2 * EVENTS, 2 * EVENTS], 'a second history beside the first')
  t.equal(other.kept.size, first.kept.size + other.done.visitors)
  await t.rejects(work({ workspace: 'nobody' }), CannotSeed)
  await t.rejects(work({ days: 91 }), CannotSeed)
  await t.rejects(work({ until: Date.now() + DAY_MS }), CannotSeed)
})

t.test('every row is one that the service could have written, judged as its rules judge', async (t) => {
  const rules: Rule[] = RULES.map((rule) => ({ ...rule, createdAt: 0, updatedAt: 0 }))
  const workspace: Workspace = {
    id: 'ws_a',
    name: 'a',
    plan: 'enterprise',
    apiVersion: '',
    createdAt: 0,
    tokenSecret: 'x',
    settings: { clientResult: 'id' },
  }
  const history = () => {
    const maker = openEventMaker('x', openOutcomes(workspace, 'live', rules, 1))
    const until = Date.UTC(2026, 10, 20)
    const visits = openVisits({ seed: 'x', events: ROWS, from: until - 9 * DAY_MS, until, partitions: PARTITIONS })
    const events: StoredEvent[] = []
    const left = new Map<string, number>()
    for (let step = 0; step < visits.steps; step++) {
      visits.step(
        step,
        (visitor, atMs) => void events.push(maker.make(visitor, atMs)),
        ({ id, visits: n }) => void left.set(id, (left.get(id) ?? 0) + n),
      )
    }
    return { events, left }
  }
  const { events, left } = history()
  t.same(history().events, events, 'the same seed makes the same events')
  const ruleset = openSnapshot(encodeSnapshot({ workspace, env: 'live', revision: 1, rules }))
  const totals = new Map<string, number>()
  const verdicts = new Set<string | null>()
  let previousMs = 0
  for (const made of events) {
    const row = toRow(made, 0, 0)
    const event = fromRow(JSON.parse(row))
    const total = (totals.get(event.visitorId) ?? 0) + 1
    totals.set(event.visitorId, total)
    const { verdict, matchedRules, monitorMatches } = ruleset.evaluate(event)
    const wrong =
      toRow(event, 0, 0) !== row ||
      event.timestamp < previousMs ||
      event.timestamp !== requestTime(event.requestId) ||
      event.visitor.totalVisits !== total ||
      event.visitorFound !== total > 1 ||
      verdict !== event.verdict ||
      JSON.stringify([matchedRules, monitorMatches]) !== JSON.stringify([event.matchedRules, event.monitorMatches])
    if (wrong) t.fail('a row that could not be', { made, event, verdict, matchedRules, monitorMatches })
    verdicts.add(event.verdict)
    previousMs = event.timestamp
  }
  t.equal(events.length, ROWS)
  t.same([...verdicts].sort(), ['allow', 'block', 'challenge'])
  t.same(left, totals, 'every visitor leaves once, with all its visits')
})
