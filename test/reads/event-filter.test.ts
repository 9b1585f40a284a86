// A filter keeps the same events in ClickHouse and outside of it, whatever events and values hold.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { openEmbeddedClickHouse } from '../../src/clickhouse/embedded.ts'
import { migrate } from '../../src/clickhouse/migrate.ts'
import { SIGNAL_NAMES, type StoredEvent, VERDICTS } from '../../src/domain/event.ts'
import { formatCidr, parseCidr } from '../../src/domain/ip.ts'
import { field } from '../../src/events/fields.ts'
import { COLUMNS, EVENTS_TABLE, toRow } from '../../src/events/row.ts'
import { urlParts } from '../../src/events/url.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { must } from '../../src/lib/must.ts'
import { type EventFilter, filterSql, openEventTest } from '../../src/reads/event-filter.ts'
import { sized } from '../helpers/depth.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'
import { ADDRESSES, HOSTILE, randomEvent } from '../helpers/stored-events.ts'

const EVENTS = sized({ quick: 300, usual: 1_000, long: 3_000 })
const FILTERS = sized({ quick: 300, usual: 1_500, long: 6_000 })
const AT_ONCE = 50

const seed = testSeed()
const r = rng(seed)
const folder = mkdtempSync(join(tmpdir(), 'fingerpost-filter-'))
const clickhouse = await openEmbeddedClickHouse({
  dataDir: folder,
  database: 'fingerpost',
  clock: systemClock,
  log: { info() {}, warn() {} },
})
t.teardown(async () => {
  await clickhouse.close()
  rmSync(folder, { recursive: true, force: true })
})
await migrate(clickhouse, { database: 'fingerpost', retentionDays: 3_650, clock: systemClock })

const events = Array.from({ length: EVENTS }, (_, i) => {
  const event = randomEvent(r, 'ws_default', i)
  const matchedRules = r.chance(0.3) ? [{ id: 'rul_a', name: 'A', priority: 1, verdict: 'block', deciding: true }] : []
  return { ...event, matchedRules } as StoredEvent
})
const lines = events.map((event, i) => `${toRow(event, 0, i)}\n`)
await clickhouse.insert(EVENTS_TABLE, COLUMNS, Buffer.from(lines.join('')), { token: 'events' })

const TAGS = ['action', 'amount', 'vip', 'cart.items', 'cart.codes', 'cart.0', '__proto__', 'é', 'a\nb', '\\', "it's"]

type Draw = (event: StoredEvent) => EventFilter
const texts = (value: string | null): string => (r.chance(0.7) && value ? value : r.pick(HOSTILE))
const near = (value: number): number => (r.chance(0.6) ? value : Math.max(0, value + r.pick([0.01, -0.01, 1e-5])))

function range(address: string): string {
  const { v6, bytes, bits } = must(parseCidr(address))
  return formatCidr({ v6, bytes, bits: r.chance(0.3) ? bits : r.int(bits + 1) })
}

const DRAWS: readonly Draw[] = [
  (e) => ({ visitorIds: r.chance(0.5) ? [e.visitorId] : [e.visitorId, r.pick(events).visitorId] }),
  (e) => ({ possibleIds: [e.possible?.visitorId ?? e.visitorId, ...(r.chance(0.5) ? [e.visitorId] : [])] }),
  (e) => ({ before: e.timestamp + r.int(2) }),
  (e) => ({ after: e.timestamp + r.int(2) }),
  () => ({ verdict: r.pick(VERDICTS) }),
  () => ({ bot: r.chance(0.5) }),
  (e) => ({ linkedId: texts(e.linkedId) }),
  (e) => ({ country: texts(e.ip.country) }),
  (e) => ({ platform: texts(e.device.platform) }),
  () => ({ ruleId: r.pick(['rul_a', 'rul_b']) }),
  () => ({ keyKind: r.pick(['public', 'secret'] as const) }),
  () => ({ signal: r.pick(SIGNAL_NAMES) }),
  (e) => ({ ip: range(r.chance(0.7) ? e.ip.address : r.pick(ADDRESSES)) }),
  (e) => ({ asn: e.ip.asn || 7 }),
  (e) => ({ email: texts(e.email) }),
  (e) => ({ urlHost: texts(urlParts(e.url).host) }),
  () => ({ label: r.pick(['fraud', 'legitimate', 'none'] as const) }),
  (e) => ({ deviceType: e.device.type }),
  (e) => ({ browser: r.chance(0.5) ? e.device.browser : (e.device.browser.split(' ')[0] as string) || 'x' }),
  (e) => ({ method: e.identity.method }),
  (e) => ({ suspectMin: near(e.scores.suspect) }),
  (e) => ({ suspectMax: near(e.scores.suspect) }),
  (e) => ({ confidenceMin: near(e.confidence) }),
  (e) => ({ confidenceMax: near(e.confidence) }),
  (e) => {
    const path = `tag.${r.pick(TAGS)}`
    const own = must(field(path)).read(e)
    const known = typeof own === 'object' ? null : String(own)
    return { tags: { [path]: r.chance(0.8) && known !== null ? known : r.pick([...HOSTILE, '7', '1e20', '-0', '0']) } }
  },
]

const drawFilter = (r: Rng): EventFilter =>
  Object.assign({}, ...Array.from({ length: r.pick([1, 1, 2, 3]) }, () => r.pick(DRAWS)(r.pick(events))))

async function placesInClickHouse(filter: EventFilter): Promise<number[]> {
  const { first, sql, params } = filterSql(filter)
  const rows = await clickhouse.query<{ log_seq: number }>(
    `SELECT log_seq FROM ${EVENTS_TABLE}${first} WHERE 1${sql} ORDER BY log_seq`,
    params,
  )
  return rows.map(({ log_seq }) => Number(log_seq))
}

t.test('SQL and test of a filter agree on every event', async (t) => {
  t.comment(`SEED=${seed}`)
  const used = new Map<string, number>()
  const wrong: unknown[] = []
  for (let done = 0; done < FILTERS; done += AT_ONCE) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, () => drawFilter(r)).map(async (filter) => {
        const holds = openEventTest(filter)
        const kept = events.flatMap((event, i) => (holds(event) ? [i] : []))
        const found = await placesInClickHouse(filter)
        for (const name of Object.keys(filter)) used.set(name, (used.get(name) ?? 0) + kept.length)
        if (kept.join() !== found.join()) {
          const i = kept.find((one) => !found.includes(one)) ?? found.find((one) => !kept.includes(one))
          wrong.push({ filter, tested: kept.length, found: found.length, event: events[i ?? 0] })
        }
      }),
    )
  }
  t.same(wrong.slice(0, 3), [])
  t.same(
    [...used].filter(([, kept]) => kept === 0),
    [],
    'every filter keeps something',
  )
})
