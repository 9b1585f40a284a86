// /v1/events against a real server: one event by id, and every list that can be asked for.

import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { browserBody, CHROME, eventually, FIREFOX, IPHONE } from '../helpers/client.ts'
import { sized } from '../helpers/depth.ts'
import { type Rng, rng, testSeed } from '../helpers/rng.ts'
import { cleanUp } from '../helpers/server.ts'
import * as shapes from '../helpers/shapes.ts'
import { openTenant } from '../helpers/tenant.ts'

t.teardown(cleanUp)

const seed = testSeed()
t.comment(`SEED=${seed}`)
const random = rng(seed)
const { server, identify, get, send, admin } = await openTenant()
const { keys } = server
const key = keys.testSecret

interface Summary {
  readonly requestId: string
  readonly visitorId: string
  readonly confidence: number
  readonly verdict: string | null
  readonly timestamp: string
}
// biome-ignore lint/suspicious/noExplicitAny: the whole Event, as it came
type Event = any

const summaryOf = ({ requestId, visitorId, confidence, verdict, timestamp }: Event): Summary => ({
  requestId,
  visitorId,
  confidence,
  verdict,
  timestamp,
})
const ids = (page: { body: { data: Summary[] } }) => page.body.data.map((event) => event.requestId)

const READS = sized({ quick: 10, usual: 40, long: 100 })
t.test(`an event can be read the moment it is answered, ${READS} times in a row`, async (t) => {
  const wrong: unknown[] = []
  for (let i = 0; i < READS; i++) {
    const made = await identify({ ...browserBody(`GPU ${i % 7}`), linkedId: `user_${i}` })
    const { status, body } = await get(`/v1/events/${made.body.requestId}`)
    const { storageToken: _, ...event } = made.body
    if (status !== 200 || !isDeepStrictEqual(body, event)) wrong.push({ i, status, body, event })
  }
  t.same(wrong, [])
})

t.test('an event says the same from memory and from ClickHouse', async (t) => {
  const made = await identify({
    ...browserBody(),
    linkedId: 'listed_42',
    email: 'Ann@Shop.example',
    tag: { action: 'login', deep: { a: [1, 'x', null, { b: true }] }, '': 0.1, ünï: '💡\u0000\u2028' },
    native: {
      platform: 'android',
      model: 'Pixel 9',
      osVersion: '16',
      appVersion: '1.2.3',
      rooted: true,
      cloned: false,
    },
    ip: '2001:db8:1:2::3',
    userAgent: CHROME,
  })
  const path = `/v1/events/${made.body.requestId}`
  const early = await get(path)
  t.same(shapes.event(early.body), [])
  await eventually(
    () => get('/v1/events?linkedId=listed_42'),
    ({ body }) => body.data.length === 1,
  )
  // Once it is listed ClickHouse has it; the memory lets go of it at that moment.
  const late = await get(path)
  t.same(late.body, early.body)
  t.equal(late.text, early.text)
  t.same(shapes.event(late.body), [])
})

const HOUR_MS = 3_600_000
const baseMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 48 * HOUR_MS
/** More than the largest page. */
const EVENTS = sized({ quick: 104, usual: 120, long: 120 })
const COUNTRIES = ['CZ', 'JP', 'US']
const AGENTS = [CHROME, FIREFOX, IPHONE]
const EMAILS = ['ann@shop.example', 'bob@shop.example']
/** Who stands for each visitor: itself, or whom the engine found it to be. */
const holders = new Map<string, string>()
/** The last part of the address of each event, by its id. */
const addresses = new Map<string, number>()

/** Events of one visitor in thirty, over two days, some in the same millisecond; judged by three rules. */
async function populate(random: Rng): Promise<Event[]> {
  const made: Event[] = []
  let token: string | null = null
  for (let i = 0; i < EVENTS; i++) {
    const address = random.int(5)
    const atMs = baseMs + random.int(24) * HOUR_MS + (random.chance(0.5) ? 0 : random.int(3))
    const { status, body } = await identify(
      {
        ...browserBody(`GPU ${random.int(10)}`),
        storageToken: random.chance(0.3) ? token : null,
        userAgent: random.pick(AGENTS),
        linkedId: random.pick(['ann', 'bob', "o'hara; DROP TABLE events --"]),
        email: random.pick(EMAILS),
        url: random.pick(['https://shop.example/a', 'https://Shop.Example/b', 'https://other.example:8443/']),
        tag: { n: i, risk: random.int(4), cart: { gift: random.pick([true, 'yes', 'true']) } },
        mock: {
          at: new Date(atMs).toISOString(),
          ip: `203.0.113.${address}`,
          country: random.pick(COUNTRIES),
          signals: {
            bot: random.chance(0.4),
            vpn: random.chance(0.3),
            tor: random.chance(0.2),
            proxy: random.chance(0.5),
          },
        },
      },
      { key },
    )
    if (status !== 200) t.fail(`event ${i}: ${status}`)
    token = body.storageToken
    made.push(body)
    addresses.set(body.requestId, address)
  }
  return made.sort((a, b) =>
    a.timestamp === b.timestamp ? (a.requestId < b.requestId ? 1 : -1) : a.timestamp < b.timestamp ? 1 : -1,
  )
}

const rulesMade: string[] = []
async function addRule(name: string, risk: number, verdict: string): Promise<void> {
  const { body } = await send('POST', '/v1/rules', {
    key,
    body: {
      name,
      conditions: { operator: 'AND', rules: [{ field: 'tag.risk', operator: 'equals', value: risk }] },
      action: { verdict },
      status: 'live',
    },
  })
  t.type(body.id, 'string')
  rulesMade.push(body.id)
}

let all: Event[] = []

t.test('a list has every event soon after its 200', async (t) => {
  await addRule('blocked', 1, 'block')
  await addRule('challenged', 2, 'challenge')
  all = await populate(random)
  const count = async () => {
    let total = 0
    let cursor = ''
    do {
      const { body } = await get(`/v1/events?limit=100${cursor}`, key)
      total += body.data.length
      cursor = body.hasMore ? `&cursor=${body.nextCursor}` : ''
    } while (cursor !== '')
    return total
  }
  t.equal(await eventually(count, (total) => total === EVENTS), EVENTS)
  for (const [i, label] of (['fraud', 'legitimate', 'fraud'] as const).entries()) {
    const { body } = await send('PATCH', `/v1/events/${all[i].requestId}`, { key, body: { label } })
    all[i] = { ...all[i], label: body.label }
  }
  await eventually(
    () => get('/v1/events?label=fraud', key),
    ({ body }) => body.data.length === 2,
  )
})

t.test('a list is newest first and shows summaries only', async (t) => {
  const { body } = await get('/v1/events?limit=100', key)
  t.same(shapes.page(shapes.eventSummary)(body), [])
  t.same(body.data, all.slice(0, 100).map(summaryOf))
  t.equal(body.hasMore, true)
  t.equal((await get('/v1/events', key)).body.data.length, 20, 'twenty by default')
})

type Filters = Record<string, string>
type Filter = (random: Rng) => [Filters, (e: Event) => boolean]
const ofVisitor = (visitorId: string): ReturnType<Filter> => [
  { visitorId },
  (e) => holders.get(e.visitorId) === holders.get(visitorId),
]
const FILTERS: readonly Filter[] = [
  (r) => ofVisitor(r.pick(all).visitorId),
  (r) => {
    const at = r.pick(all).timestamp
    return [{ after: at }, (e) => e.timestamp >= at]
  },
  (r) => {
    const at = r.pick(all).timestamp
    return [{ before: at }, (e) => e.timestamp < at]
  },
  (r) => {
    const verdict = r.pick(['allow', 'challenge', 'block'])
    return [{ verdict }, (e) => e.verdict === verdict]
  },
  (r) => {
    const bot = r.chance(0.5)
    return [{ bot: String(bot) }, (e) => e.signals.bot.detected === bot]
  },
  (r) => {
    const linkedId = r.pick(all).linkedId
    return [{ linkedId }, (e) => e.linkedId === linkedId]
  },
  (r) => {
    const country = r.pick([...COUNTRIES, 'XX'])
    return [{ country }, (e) => e.ip.country === country]
  },
  (r) => {
    const platform = r.pick(['Windows', 'Linux', 'iOS', 'ChromeOS'])
    return [{ platform }, (e) => e.device.platform === platform]
  },
  (r) => {
    const ruleId = r.pick(rulesMade)
    return [{ ruleId }, (e) => e.matchedRules.some((m: { id: string }) => m.id === ruleId)]
  },
  (r) => {
    const signal = r.pick(['bot', 'vpn', 'tor', 'proxy', 'tampered', 'clonedApp'])
    const on = (e: Event) => (typeof e.signals[signal] === 'boolean' ? e.signals[signal] : e.signals[signal].detected)
    return [{ signal }, on]
  },
  (r) => {
    const last = r.int(6)
    return [{ ip: `203.0.113.${last}` }, (e) => addresses.get(e.requestId) === last]
  },
  (r) => {
    const [ip, first] = r.pick([
      ['203.0.113.2/31', 2],
      ['203.0.113.0/31', 0],
    ] as const)
    return [{ ip }, (e) => [first, first + 1].includes(addresses.get(e.requestId) ?? -1)]
  },
  (r) => {
    const email = r.pick(EMAILS)
    return [{ email: ` ${email.toUpperCase()}` }, (e) => e.email === `${email[0]}***@shop.example`]
  },
  (r) => {
    const urlHost = r.pick(['Shop.example', 'other.example:8443'])
    return [{ urlHost }, (e) => e.url !== null && new URL(e.url).host === urlHost.toLowerCase()]
  },
  (r) => {
    const label = r.pick(['fraud', 'legitimate', 'none'])
    return [{ label }, (e) => (e.label ?? 'none') === label]
  },
  (r) => {
    const deviceType = r.pick(['desktop', 'mobile', 'tablet'])
    return [{ deviceType }, (e) => e.device.type === deviceType]
  },
  (r) => {
    const { browser } = r.pick(all).device
    return [{ browser }, (e) => e.device.browser === browser]
  },
  (r) => {
    const [browser] = r.pick(all).device.browser.split(' ')
    return [{ browser }, (e) => e.device.browser.split(' ')[0] === browser]
  },
  (r) => {
    const { method } = r.pick(all).identity
    return [{ method }, (e) => e.identity.method === method]
  },
  (r) => {
    const risk = r.int(5)
    return [{ 'tag.risk': String(risk) }, (e) => e.tag.risk === risk]
  },
  (r) => {
    const deep = r.pick(['true', 'yes', 'no'])
    return [{ 'tag.cart.gift': deep }, (e) => String(e.tag.cart?.gift) === deep]
  },
  (r) => {
    const { suspect } = r.pick(all).scores
    return [{ suspectMin: String(suspect) }, (e) => e.scores.suspect >= suspect]
  },
  (r) => {
    const { suspect } = r.pick(all).scores
    return [{ suspectMax: String(suspect) }, (e) => e.scores.suspect <= suspect]
  },
  (r) => {
    const { confidence } = r.pick(all)
    return [{ confidenceMin: String(confidence) }, (e) => e.confidence >= confidence]
  },
  (r) => {
    const { confidence } = r.pick(all)
    return [{ confidenceMax: String(confidence) }, (e) => e.confidence <= confidence]
  },
  () => [{ keyKind: 'secret' }, (e) => e.request.keyKind === 'secret'],
  () => [{ asn: '64500' }, (e) => e.ip.asn === 64_500],
]

t.test('whole events are what each of them is by itself, on every page', async (t) => {
  const found: Event[] = []
  for (let cursor = ''; found.length < 40; ) {
    const { body } = await get(`/v1/events?fields=full&limit=20${cursor}`, key)
    t.same(shapes.page(shapes.event)(body), [])
    found.push(...body.data)
    cursor = `&cursor=${body.nextCursor}`
  }
  t.same(
    found,
    all.slice(0, 40).map(({ storageToken: _, ...event }) => event),
  )
  const one = await get(`/v1/events/${found[3].requestId}`, key)
  t.equal(JSON.stringify(found[3]), one.text, 'to the byte')
  t.equal((await get('/v1/events?fields=some', key)).body.error.field, 'fields')
})

t.test('every filter, and every combination, keeps exactly what it says', async (t) => {
  for (const { visitorId } of all) {
    if (!holders.has(visitorId)) holders.set(visitorId, (await get(`/v1/visitors/${visitorId}`, key)).body.visitorId)
  }
  const healed = [...holders].filter(([id, holder]) => id !== holder).flat()
  const chosen: (readonly Filter[])[] = FILTERS.map((filter) => [filter])
  for (const id of healed) chosen.push([() => ofVisitor(id)])
  for (let i = 0; i < sized({ quick: 8, usual: 30, long: 50 }); i++)
    chosen.push(random.shuffle(FILTERS).slice(0, 2 + random.int(3)))
  let kept = 0
  await Promise.all(
    chosen.map(async (filters) => {
      // A name is asked for once: of two filters by the same one the first counts.
      const asked = new Map<string, string>()
      const parts = filters
        .map((filter) => filter(random))
        .filter(([given]) => {
          const isNew = Object.keys(given).every((name) => !asked.has(name))
          if (isNew) for (const [name, value] of Object.entries(given)) asked.set(name, value)
          return isNew
        })
      const query = new URLSearchParams([...asked])
      const expected = all.filter((event) => parts.every(([, holds]) => holds(event))).slice(0, 100)
      kept += expected.length
      const page = await get(`/v1/events?limit=100&${query}`, key)
      t.same(
        ids(page),
        expected.map((event) => event.requestId),
        String(query),
      )
    }),
  )
  t.ok(kept > 100, 'the filters kept something')
})

t.test('after includes its millisecond, before does not', async (t) => {
  const at = all[40].timestamp
  const same = all.filter((event) => event.timestamp === at).map((event) => event.requestId)
  const count = async (query: string) => (await get(`/v1/events?limit=100&${query}`, key)).body.data.length
  const next = new Date(Date.parse(at) + 1).toISOString()
  t.same(ids(await get(`/v1/events?after=${at}&before=${next}`, key)), same)
  t.equal(await count(`after=${at}&before=${at}`), 0)
  t.equal(await count(`after=${next}&before=${at}`), 0, 'an empty range is empty')
  t.equal(await count(`after=${at}`), all.filter((e) => e.timestamp >= at).length)
  const zoned = encodeURIComponent(at.replace('Z', '+00:00'))
  t.equal(await count(`after=${zoned}`), all.filter((e) => e.timestamp >= at).length)
  for (const far of ['0000-01-01T00:00:00Z', '1969-12-31T23:59:59Z', '1900-01-01T00:00Z']) {
    t.equal(await count(`after=${far}`), 100, `after ${far}`)
    t.equal(await count(`before=${far}`), 0, `before ${far}`)
  }
  for (const far of ['2299-12-31T23:59:59Z', '2300-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z']) {
    t.equal(await count(`after=${far}`), 0, `after ${far}`)
    t.equal(await count(`before=${far}`), 100, `before ${far}`)
  }
})

async function pages(query: string, limit: number): Promise<Summary[]> {
  const found: Summary[] = []
  let cursor: string | null = null
  do {
    const { body }: { body: { data: Summary[]; hasMore: boolean; nextCursor: string | null } } = await get(
      `/v1/events?${query}&limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`,
      key,
    )
    const faults = shapes.page(shapes.eventSummary)(body)
    if (faults.length > 0 || body.hasMore !== (body.nextCursor !== null)) t.fail(`${query} by ${limit}: ${faults}`)
    found.push(...body.data)
    cursor = body.nextCursor
  } while (cursor !== null)
  return found
}

t.test('pages together are the whole list, whatever their size', async (t) => {
  for (const [query, holds] of [
    ['', () => true],
    ['verdict=allow', (e: Event) => e.verdict === 'allow'],
    [`country=CZ&after=${all[90].timestamp}`, (e: Event) => e.ip.country === 'CZ' && e.timestamp >= all[90].timestamp],
  ] as const) {
    const expected = all.filter(holds).map(summaryOf)
    for (const limit of sized({ quick: [20, 59], usual: [7, 20, 59, 100], long: [7, 20, 59, 100] })) {
      t.same(await pages(query, limit), expected, `${query} by ${limit}`)
    }
  }
  const [{ visitorId }] = all
  t.same((await pages(`visitorId=${visitorId}`, 1)).length, all.filter(ofVisitor(visitorId)[1]).length)
})

t.test('a cursor is good for the question it was given for and for nothing else', async (t) => {
  const { nextCursor: cursor } = (await get('/v1/events?limit=3&country=CZ', key)).body
  const other = (await admin('POST', '/workspaces', { name: 'Other' })).body.id
  const foreign = (await admin('POST', `/workspaces/${other}/keys`, { kind: 'secret', environment: 'test' })).body.key
  t.equal(
    (await get(`/v1/events?limit=50&country=CZ&cursor=${cursor}`, key)).status,
    200,
    'the size of a page may change',
  )
  const refused: [string, string, string][] = [
    ['no filter', '', key],
    ['another filter', 'country=JP', key],
    ['one more filter', 'country=CZ&bot=true', key],
    ['another environment', 'country=CZ', keys.secret],
    ['another workspace', 'country=CZ', foreign],
  ]
  for (const [what, query, by] of refused) {
    const answer = await get(`/v1/events?${query}&cursor=${cursor}`, by)
    t.equal(answer.status, 400, what)
    t.same(shapes.errorFaults(400, answer.body), [])
    t.equal(answer.body.error.field, 'cursor')
  }
  const every = sized({ quick: 16, usual: 4, long: 1 })
  const places = [...cursor].map((_, i) => i).filter((i) => i % every === 0)
  const tampered = places.map((i) => cursor.slice(0, i) + (cursor[i] === 'A' ? 'B' : 'A') + cursor.slice(i + 1))
  const wrong = [
    ...tampered,
    cursor.slice(0, -1),
    `${cursor}A`,
    `${cursor}=`,
    'A',
    'null',
    '1',
    `${cursor}${cursor}`.slice(0, 199),
    '%00',
    '💡',
  ]
  for (const text of wrong) {
    const answer = await get(`/v1/events?country=CZ&cursor=${encodeURIComponent(text)}`, key)
    t.match(answer, { status: 400, body: { error: { code: 'validation_error', field: 'cursor' } } }, text.slice(0, 20))
  }
})

t.test('a query says what it means or is refused by name', async (t) => {
  const refused: [string, string][] = [
    ...['0', '101', '-1', 'abc', '1.5', '', '1e2', '0x10', '+5', ' 5', '100000000000000000000'].map(
      (limit): [string, string] => [`limit=${encodeURIComponent(limit)}`, 'limit'],
    ),
    ['limit=5&limit=6', 'limit'],
    ['bot=1', 'bot'],
    ['bot=True', 'bot'],
    ['bot=', 'bot'],
    ['verdict=deny', 'verdict'],
    ['verdict=ALLOW', 'verdict'],
    ['verdict=none', 'verdict'],
    ['verdict=allow,block', 'verdict'],
    ['signal=magic', 'signal'],
    ['signal=sig_bot', 'signal'],
    ['country=cz', 'country'],
    ['country=CZE', 'country'],
    ['visitorId=pv_short', 'visitorId'],
    ['visitorId=', 'visitorId'],
    ['ruleId=rul_1', 'ruleId'],
    [`linkedId=${'x'.repeat(257)}`, 'linkedId'],
    ['linkedId=', 'linkedId'],
    ['linkedId=%ff', 'linkedId'],
    ['before=yesterday', 'before'],
    ['after=2026-11-01', 'after'],
    ['after=2026-13-01T00:00:00Z', 'after'],
    ['after=2026-11-01T00:00:00 01:00', 'after'],
    ['after=', 'after'],
    ['offset=1', 'offset'],
    ['sort=asc', 'sort'],
    ['Limit=5', 'Limit'],
    ['__proto__=1', '__proto__'],
    ['constructor=1', 'constructor'],
    ['limit[]=5', 'limit[]'],
    ['ip=203.0.113', 'ip'],
    ['ip=203.0.113.0/33', 'ip'],
    ['ip=fe80::1%25eth0', 'ip'],
    ['asn=0', 'asn'],
    ['asn=4294967296', 'asn'],
    ['email=ann', 'email'],
    ['label=null', 'label'],
    ['deviceType=phone', 'deviceType'],
    ['method=guess', 'method'],
    ['suspectMin=-1', 'suspectMin'],
    ['suspectMax=100.5', 'suspectMax'],
    ['confidenceMin=1.1', 'confidenceMin'],
    ['confidenceMax=1e-1', 'confidenceMax'],
    ['tag=x', 'tag'],
    ['tag.=x', 'tag.'],
    ['tag.a..b=x', 'tag.a..b'],
    ['tag.a.b.c.d.e=x', 'tag.a.b.c.d.e'],
    [`tag.a=${'x'.repeat(257)}`, 'tag.a'],
    ['tag.a=x&tag.a=y', 'tag.a'],
    [Array.from({ length: 9 }, (_, i) => `tag.a${i}=x`).join('&'), 'tag.a8'],
    ['tags.a=x', 'tags.a'],
  ]
  for (const [query, field] of refused) {
    const answer = await get(`/v1/events?${query}`, key)
    t.equal(answer.status, 400, query.slice(0, 60))
    t.same(shapes.errorFaults(400, answer.body), [])
    t.equal(answer.body?.error?.field, field, query.slice(0, 60))
  }
  t.equal((await get('/v1/events?limit=1', key)).body.data.length, 1)
  t.equal((await get('/v1/events?limit=100', key)).body.data.length, 100)
  t.equal((await get('/v1/events?', key)).status, 200)
  const one = `/v1/events/${all[0].requestId}`
  t.equal((await get(`${one}?x=1`, key)).status, 400)
})

t.test('an event of another environment or workspace is as unknown as one that never was', async (t) => {
  const other = (await admin('POST', '/workspaces', { name: 'Other' })).body.id
  const made = async (environment: string) =>
    (await admin('POST', `/workspaces/${other}/keys`, { kind: 'secret', environment })).body.key
  const strangers = [keys.secret, await made('live'), await made('test')]
  const fresh = await identify({}, { key })
  const unknown = await get('/v1/events/req_01M7XQ8Y1WB6VSSBJ268CJ5E4Q', key)
  t.equal(unknown.status, 404)
  t.same(shapes.errorFaults(404, unknown.body), [])
  for (const requestId of [all[0].requestId, fresh.body.requestId]) {
    for (const stranger of strangers) {
      t.match(await get(`/v1/events/${requestId}`, stranger), { status: 404, text: unknown.text })
    }
  }
  for (const id of [
    'x',
    'req_',
    all[0].requestId.toLowerCase(),
    `${all[0].requestId}0`,
    all[0].requestId.slice(0, -1),
    all[0].requestId.replace('req_', 'pv_'),
    'req_00000000000000000000000000',
    'req_7ZZZZZZZZZZZZZZZZZZZZZZZZZ',
    'req_ZZZZZZZZZZZZZZZZZZZZZZZZZZ',
    'req_%27%20OR%201%3D1',
    '%00',
    '..%2f..',
    'r'.repeat(1_000),
  ]) {
    t.match(await get(`/v1/events/${id}`, key), { status: 404, text: unknown.text }, id.slice(0, 40))
  }
  for (const stranger of strangers.slice(1)) {
    t.same((await get(`/v1/events?visitorId=${all[0].visitorId}`, stranger)).body, {
      data: [],
      hasMore: false,
      nextCursor: null,
    })
  }
  t.same((await get(`/v1/events?visitorId=${all[0].visitorId}`)).body.data, [])
})

t.test('reading events takes the scope', async (t) => {
  const make = async (...scopes: string[]) =>
    (await admin('POST', `/workspaces/${server.workspace}/keys`, { kind: 'secret', environment: 'test', scopes })).body
      .key
  const [right, wrong] = [await make('events:read'), await make('visitors:read', 'rules:read', 'identify')]
  for (const path of ['/v1/events', `/v1/events/${all[0].requestId}`, '/v1/events/req_x', '/v1/events?limit=0']) {
    t.not((await get(path, right)).status, 403, path)
    for (const refused of [wrong, keys.testPublic]) {
      const answer = await get(path, refused)
      t.equal(answer.status, 403, path)
      t.same(shapes.errorFaults(403, answer.body), [])
      t.match(answer.body.error.message, /events:read/, 'the message names the missing scope')
    }
  }
})

t.test('nothing shows an address or an email whole', async (t) => {
  const { body } = await identify({ email: 'ann.other@shop.example', mock: { ip: '203.0.113.77' } }, { key })
  const { text } = await get(`/v1/events/${body.requestId}`, key)
  t.match(text, /"address":"203\.0\.113\.\*"/)
  t.match(text, /"email":"a\*\*\*@shop\.example"/)
  t.notMatch(text, /203\.0\.113\.77|ann\.other/i)
})

t.test('below Pro events have no scores, wherever they are read from', async (t) => {
  const plan = async (name: string) =>
    t.equal((await admin('PATCH', `/workspaces/${server.workspace}`, { plan: name })).status, 200)
  await plan('starter')
  t.same(shapes.eventWithoutScores((await get(`/v1/events/${all[0].requestId}`, key)).body), [])
  for (const event of (await get('/v1/events?fields=full&limit=5', key)).body.data) {
    t.same(shapes.eventWithoutScores(event), [])
  }
  for (const field of ['suspectMin', 'suspectMax']) {
    const answer = await get(`/v1/events?${field}=1`, key)
    t.match(answer, { status: 403, body: { error: { code: 'plan_required', field } } })
  }
  await plan('pro')
  t.equal((await get('/v1/events?suspectMin=1&suspectMax=99.5', key)).status, 200)
  t.same(shapes.event((await get(`/v1/events/${all[0].requestId}`, key)).body), [])
  await plan('enterprise')
})
