// /v1/analytics against a real server: every grouping over random ranges, counted again from the events as they were answered.

import t from 'tap'
import { browserBody, CHROME, errorOf, eventually, IPHONE } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { rng, testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const seed = testSeed()
t.comment(`SEED=${seed}`)
const random = rng(seed)
const { server, identify, get, send } = await openTenant()
const key = server.keys.testSecret

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const EVENTS = sized({ quick: 40, usual: 90, long: 160 })
const RANGES = sized({ quick: 14, usual: 36, long: 60 })
/** A Monday some weeks ago, so that days, weeks and hours have edges within what was made. */
const MONDAY_MS = (Math.floor((Date.now() - 4 * DAY_MS) / (7 * DAY_MS)) - 3) * 7 * DAY_MS + 4 * DAY_MS
const SIGNALS = ['bot', 'vpn', 'incognito', 'tampered', 'emulator', 'proxy', 'tor', 'rootedDevice', 'clonedApp']

interface Made {
  readonly at: number
  readonly verdict: string | null
  readonly country: string | null
  readonly platform: string
  readonly visitorId: string
  readonly signals: Readonly<Record<string, boolean>>
}
let made: Made[] = []

/** Right on the edges of hours, days and weeks, a millisecond before them, and anywhere. */
function momentOf(): number {
  const edge = MONDAY_MS + random.int(18) * DAY_MS + (random.chance(0.5) ? 0 : random.int(24) * HOUR_MS)
  return edge + random.pick([0, 0, -1, 1, random.int(HOUR_MS)])
}

async function identifyOne(): Promise<void> {
  const { status, body } = await identify(
    {
      ...browserBody(`GPU ${random.int(20)}`),
      userAgent: random.pick([CHROME, IPHONE]),
      tag: { risk: random.int(3) },
      mock: {
        at: new Date(momentOf()).toISOString(),
        ip: `203.0.113.${random.int(5)}`,
        ...(random.chance(0.8) && { country: random.pick(['CZ', 'JP', 'US']) }),
        signals: { bot: random.chance(0.4), vpn: random.chance(0.2) },
      },
    },
    { key },
  )
  t.equal(status, 200)
  const { signals, verdict, ip, device, visitorId, timestamp } = body
  made.push({
    at: Date.parse(timestamp),
    verdict,
    country: ip.country,
    platform: device.platform,
    visitorId,
    signals: Object.fromEntries(SIGNALS.map((name) => [name, (signals[name].detected ?? signals[name]) === true])),
  })
}

const iso = (at: number) => new Date(at).toISOString()
const ask = (path: string, query: Record<string, string>) =>
  get(`/v1/analytics/${path}?${new URLSearchParams(query)}`, key)
const within = (from: number, to: number) => made.filter(({ at }) => at >= from && at < to)

const LABELS: Record<string, (event: Made) => string> = {
  verdict: ({ verdict }) => verdict ?? 'none',
  country: ({ country }) => country ?? 'unknown',
  platform: ({ platform }) => platform,
  hour: ({ at }) => `${iso(at).slice(0, 13)}:00:00Z`,
  day: ({ at }) => iso(at).slice(0, 10),
  week: ({ at }) => {
    const date = new Date(at)
    return iso(at - ((date.getUTCDay() + 6) % 7) * DAY_MS).slice(0, 10)
  },
}
const count = (labels: readonly string[]) => {
  const counts: Record<string, number> = {}
  for (const label of labels) counts[label] = (counts[label] ?? 0) + 1
  return counts
}

t.test('groups add up to the total and to the events there are, in every grouping and range', async (t) => {
  const rule = {
    name: 'risky',
    conditions: { operator: 'AND', rules: [{ field: 'tag.risk', operator: 'equals', value: 1 }] },
    action: { verdict: 'block' },
    status: 'live',
  }
  t.equal((await send('POST', '/v1/rules', { key, body: rule })).status, 201)
  for (let i = 0; i < EVENTS; i++) await identifyOne()
  const all = { from: iso(MONDAY_MS - DAY_MS), to: iso(MONDAY_MS + 19 * DAY_MS) }
  await eventually(
    () => ask('events', all),
    ({ body }) => body.total === EVENTS,
  )
  for (let i = 0; i < RANGES; i++) {
    const from = momentOf()
    const to = from + 1 + random.int(9 * DAY_MS)
    const groupBy = random.pick(Object.keys(LABELS))
    const verdict = random.chance(0.3) ? random.pick(['allow', 'challenge', 'block']) : null
    const events = within(from, to).filter((event) => verdict === null || event.verdict === verdict)
    const { status, body } = await ask('events', {
      from: iso(from),
      to: iso(to),
      groupBy,
      ...(verdict !== null && { verdict }),
    })
    const about = `${groupBy} from ${iso(from)} to ${iso(to)}`
    t.equal(status, 200, about)
    t.equal(body.total, events.length, about)
    const shown: { count: number; pct: number; [key: string]: unknown }[] = body.groups
    const counts = Object.fromEntries(shown.filter((one) => one.count > 0).map((one) => [one[groupBy], one.count]))
    t.same(counts, count(events.map((event) => (LABELS[groupBy] as (event: Made) => string)(event))), about)
    t.ok(
      shown.every((one) => one.pct === (body.total === 0 ? 0 : one.count / body.total)),
      about,
    )
    const labels = shown.map((one) => String(one[groupBy]))
    if (['hour', 'day', 'week'].includes(groupBy)) {
      t.same(labels, labels.toSorted(), 'in the order of time')
      const step = { hour: HOUR_MS, day: DAY_MS, week: 7 * DAY_MS }[groupBy] as number
      const first = Date.parse(labels[0] as string)
      t.same(
        labels.map(Date.parse),
        Array.from(labels, (_, at) => first + at * step),
        'without a gap',
      )
      t.ok(Date.parse(labels[0] as string) <= from && Date.parse(labels.at(-1) as string) + step >= to, 'to both ends')
    } else {
      const sizes = shown.map((one) => one.count)
      t.same(
        sizes,
        sizes.toSorted((a, b) => b - a),
        'the largest first',
      )
    }
  }
  const { body } = await ask('events', all)
  t.same(body, { ...all, total: EVENTS, groups: [] }, 'without a grouping there are no groups')
})

t.test('signals have the rate of their range, day or week, and that of the one before', async (t) => {
  const rateOf = (events: readonly Made[], name: string) =>
    events.length === 0 ? 0 : events.filter(({ signals }) => signals[name]).length / events.length
  const from = MONDAY_MS + 8 * DAY_MS + 5 * HOUR_MS
  const to = from + 4 * DAY_MS + 7
  const whole = await ask('signals', { from: iso(from), to: iso(to), groupBy: 'signal' })
  const [now, then] = [within(from, to), within(from - (to - from), from)]
  t.equal(whole.body.total, now.length)
  t.same(
    whole.body.signals,
    SIGNALS.map((signal) => ({
      signal,
      count: now.filter(({ signals }) => signals[signal]).length,
      rate: rateOf(now, signal),
      previousRate: rateOf(then, signal),
      trend: 'stable',
    })),
  )
  const bots = await ask('signals', { from: iso(from), to: iso(to), signal: 'bot' })
  t.same(bots.body.signals, [whole.body.signals[0]], 'one alone is the same')

  for (const [unit, length] of [
    ['day', DAY_MS],
    ['week', 7 * DAY_MS],
  ] as const) {
    const { body } = await ask('signals', { from: iso(from), to: iso(to), groupBy: unit, signal: 'bot' })
    t.equal(body.total, now.length)
    const first = unit === 'day' ? MONDAY_MS + 8 * DAY_MS : MONDAY_MS + 7 * DAY_MS
    const buckets: number[] = []
    for (let at = first; at < to; at += length) buckets.push(at)
    const eventsOf = (at: number) => within(at === first ? from : at, Math.min(at + length, to))
    t.same(
      body.signals,
      buckets.map((at) => {
        const before = at === first ? within(at - length, at) : eventsOf(at - length)
        return {
          [unit]: iso(at).slice(0, 10),
          signal: 'bot',
          count: eventsOf(at).filter(({ signals }) => signals.bot).length,
          rate: rateOf(eventsOf(at), 'bot'),
          previousRate: rateOf(before, 'bot'),
          trend: 'stable',
        }
      }),
      unit,
    )
  }
})

t.test('what cannot be asked is refused by name', async (t) => {
  const [from, to] = [iso(MONDAY_MS), iso(MONDAY_MS + DAY_MS)]
  const cases: [string, Record<string, string>, string][] = [
    ['events', { to }, 'from'],
    ['events', { from }, 'to'],
    ['events', { from: 'yesterday', to }, 'from'],
    ['events', { from, to: '2026-02-30T00:00:00Z' }, 'to'],
    ['events', { from: to, to: from }, 'to'],
    ['events', { from, to: from }, 'to'],
    ['events', { from, to: iso(MONDAY_MS + 90 * DAY_MS + 1) }, 'to'],
    ['events', { from, to, groupBy: 'browser' }, 'groupBy'],
    ['events', { from, to, groupBy: 'signal' }, 'groupBy'],
    ['events', { from, to, verdict: 'none' }, 'verdict'],
    ['events', { from, to, signal: 'bot' }, 'signal'],
    ['signals', { from, to, groupBy: 'hour' }, 'groupBy'],
    ['signals', { from, to, signal: 'toString' }, 'signal'],
    ['signals', { from, to, verdict: 'block' }, 'verdict'],
  ]
  for (const [path, query, field] of cases) {
    const answer = await ask(path, query)
    t.equal(answer.status, 400, JSON.stringify(query))
    t.same(errorOf(answer), { code: 'validation_error', field }, JSON.stringify(query))
  }
  t.equal((await ask('events', { from, to: iso(MONDAY_MS + 90 * DAY_MS) })).status, 200, 'ninety days are not too many')
  const live = await get(`/v1/analytics/events?from=${from}&to=${iso(MONDAY_MS + 19 * DAY_MS)}`)
  t.equal(live.body.total, 0, 'nothing of the sandbox is in the live environment')
  const publicKey = await get(`/v1/analytics/events?from=${from}&to=${to}`, server.keys.testPublic)
  t.same([publicKey.status, errorOf(publicKey).code], [403, 'insufficient_permissions'])
})

t.test('an erased visitor is not counted any more', async (t) => {
  const { visitorId } = random.pick(made)
  t.equal((await send('DELETE', `/v1/visitors/${visitorId}`, { key })).status, 200)
  made = made.filter((event) => event.visitorId !== visitorId)
  const { body } = await ask('events', {
    from: iso(MONDAY_MS - DAY_MS),
    to: iso(MONDAY_MS + 19 * DAY_MS),
    groupBy: 'day',
  })
  t.equal(body.total, made.length)
})
