// Rate limits per key, with their headers on every authenticated answer, and the order of checks around them.

import t, { type Test } from 'tap'
import { openRates, rateClassOf } from '../../src/api/rate-limits.ts'
import { keyed } from '../../src/api/routes.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import { openFallbackLimits } from '../../src/limits/fallback.ts'
import type { Limits } from '../../src/limits/limits.ts'
import { openMemoryLimits } from '../../src/limits/memory.ts'
import { sized } from '../helpers/depth.ts'
import { type Answer, OPERATOR_TOKEN, openServer, RULE, type Send } from '../helpers/rest-surface.ts'
import { rng, testSeed } from '../helpers/rng.ts'

const MINUTE_MS = 60_000
/** The beginning of some minute, so that no test crosses one. */
const START = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS

function stoppedClock() {
  const time = { now: START }
  const clock: Clock = { ...systemClock, now: () => time.now }
  return { clock, time }
}

async function openLimited(t: Test, plan: string, settings?: object) {
  const { clock, time } = stoppedClock()
  const events = keyed({
    method: 'GET',
    path: '/v1/events/:requestId',
    access: 'events:read',
    handle: () => ({ body: {} }),
  })
  const server = await openServer(t, { clock, routes: [events] })
  const { body } = await server.admin('PATCH', '/workspaces/ws_default', { plan, ...(settings && { settings }) })
  t.equal(body.plan, plan)
  await server.directory.reload()
  return { ...server, time }
}

const shown = ({ headers }: Answer) =>
  ['limit', 'remaining', 'reset'].map((name) => {
    const value = headers.get(`x-ratelimit-${name}`)
    return value === null ? null : Number(value)
  })

t.test('every endpoint is in the class the contract names', async (t) => {
  for (const path of [
    '/v1/events',
    '/v1/events/:id',
    '/v1/visitors/:id/events',
    '/v1/analytics/events',
    '/v1/erasures/:id',
  ])
    t.equal(rateClassOf(path), 'server', path)
  for (const path of ['/v1/rules', '/v1/rules/backtest', '/v1/lists/:id', '/v1/webhooks', '/v1/alerts', '/v1/audit'])
    t.equal(rateClassOf(path), 'mgmt', path)
  for (const path of ['/v1/meta', '/v1/identify', '/admin/v1/workspaces', '/v1/eventsx'])
    t.equal(rateClassOf(path), null, path)
})

for (const [plan, mgmt, server, burst] of [
  ['starter', 30, 100, 10],
  ['pro', 100, 1_000, 50],
] as const) {
  t.test(`${plan}: so many a minute and class, so many a second over both`, async (t) => {
    const { send, secret, testSecret, time } = await openLimited(t, plan)
    const reset = START / 1_000 + 60
    for (let i = 0; i < burst; i++) {
      const [path, limit] = i % 2 === 0 ? ['/v1/rules', mgmt] : ['/v1/events/x', server]
      const answer = await send('GET', path, { key: secret })
      t.equal(answer.status, 200)
      t.same(shown(answer), [limit, limit - (i >> 1) - 1, reset])
    }
    const denied = await send('GET', '/v1/rules', { key: secret })
    t.equal(denied.status, 429)
    t.match(denied.body.error, { code: 'rate_limited', retryAfter: 1, message: /Retry in 1 s/ })
    t.equal(denied.headers.get('retry-after'), '1')
    t.same(shown(denied), [mgmt, mgmt - burst / 2, reset], 'a denied request takes nothing')
    t.equal((await send('GET', '/v1/rules', { key: testSecret })).status, 200, 'another key has its own')

    for (let used = burst / 2; used < mgmt; used++) {
      time.now += Math.ceil(1_000 / burst)
      if (used === burst / 2) time.now += 1_000
      const { status } = await send('GET', '/v1/rules', { key: secret })
      if (status !== 200) return t.fail(`request ${used} was answered ${status}`)
    }
    time.now += 1_000
    const over = await send('GET', '/v1/rules', { key: secret })
    t.equal(over.status, 429)
    t.equal(over.body.error.retryAfter, Math.ceil((START + MINUTE_MS - time.now) / 1_000), 'until the minute is over')
    t.same(shown(over), [mgmt, 0, reset])
    t.equal((await send('GET', '/v1/events/x', { key: secret })).status, 200, 'the other class has its own')
    time.now = START + MINUTE_MS
    t.same(shown(await send('GET', '/v1/rules', { key: secret })), [mgmt, mgmt - 1, reset + 60])
  })
}

t.test('enterprise has what its workspace says: nothing, or limits of its own', async (t) => {
  const { send, secret, admin, directory } = await openLimited(t, 'enterprise')
  t.same(shown(await send('GET', '/v1/rules', { key: secret })), [null, null, null])
  const settings = { limits: { mgmtPerMinute: 2, burstPerSecond: null } }
  const { status, body } = await admin('PATCH', '/workspaces/ws_default', { settings })
  t.match({ status, limits: body.settings.limits }, { status: 200, limits: settings.limits })
  await directory.reload()
  t.same(shown(await send('GET', '/v1/rules', { key: secret })).slice(0, 2), [2, 1])
  t.equal((await send('GET', '/v1/rules', { key: secret })).status, 200)
  t.equal((await send('GET', '/v1/rules', { key: secret })).status, 429)
  t.same(shown(await send('GET', '/v1/events/x', { key: secret })), [null, null, null])
  for (const limits of [{ mgmtPerMinute: -1 }, { perHour: 3 }, { burstPerSecond: 20_000 }])
    t.equal((await admin('PATCH', '/workspaces/ws_default', { settings: { limits } })).status, 400)
})

t.test('every authenticated answer carries the headers, and no other does', async (t) => {
  const { send, secret, publicKey } = await openLimited(t, 'pro')
  const json = { 'Content-Type': 'application/json' }
  const cases: [number, string, string, Send][] = [
    [201, 'POST', '/v1/rules', { key: secret, body: RULE }],
    [400, 'POST', '/v1/rules', { key: secret, body: {} }],
    [400, 'POST', '/v1/rules', { key: secret, raw: '{' }],
    [400, 'GET', '/v1/rules?limit=0', { key: secret }],
    [403, 'GET', '/v1/rules', { key: publicKey }],
    [404, 'GET', '/v1/rules/rul_none', { key: secret }],
    [413, 'POST', '/v1/rules', { key: secret, raw: 'x'.repeat(300_000), headers: json }],
    [415, 'POST', '/v1/rules', { key: secret, raw: '<a/>', headers: { 'Content-Type': 'text/xml' } }],
  ]
  for (const [at, [status, method, path, call]] of cases.entries()) {
    const answer = await send(method, path, call)
    t.equal(answer.status, status, `${method} ${path}`)
    const left = (call.key === secret ? [99, 98, 97, 96, 99, 95, 94, 93] : [99, 99, 99, 99, 99])[at]
    t.same(shown(answer), [100, left, START / 1_000 + 60], `${status} ${method} ${path}`)
  }
  for (const [status, method, path, call] of [
    [401, 'GET', '/v1/rules', { key: null }],
    [404, 'GET', '/v1/nothing', { key: secret }],
    [405, 'DELETE', '/v1/rules', { key: secret }],
    [200, 'GET', '/v1/meta', { key: secret }],
    [200, 'GET', '/admin/v1/workspaces', { key: OPERATOR_TOKEN }],
  ] as const) {
    const answer = await send(method, path, call)
    t.equal(answer.status, status, `${method} ${path}`)
    t.same(shown(answer), [null, null, null])
  }
})

t.test('of several things that are wrong the first in the order of checks is said', async (t) => {
  const { send, secret, publicKey, time } = await openLimited(t, 'starter')
  const xml = { 'Content-Type': 'text/xml' }
  // What is wrong with a request, in order; each answer is to the first that is left.
  const faults = [
    { code: 'route_not_found', with: { path: '/v1/nothing' } },
    { code: 'method_not_allowed', with: { method: 'PUT' } },
    { code: 'invalid_api_key', with: { key: 'sk_live_wrong' } },
    { code: 'rate_limited', with: { flood: true } },
    { code: 'insufficient_permissions', with: { key: publicKey } },
    { code: 'unsupported_media_type', with: { headers: xml } },
    { code: 'invalid_json', with: { raw: '{' } },
    { code: 'validation_error', with: { raw: '{}' } },
  ]
  interface Probe {
    path?: string
    method?: string
    key?: string
    flood?: boolean
    headers?: Record<string, string>
    raw?: string
  }
  const all = Array.from({ length: (1 << faults.length) - 1 }, (_, i) => i + 1)
  const bitsOf = (subset: number) => subset.toString(2).replaceAll('0', '').length
  const seed = testSeed()
  // Every one and every two of them; of more at once a short run draws some.
  const more = rng(seed).shuffle(all.filter((subset) => bitsOf(subset) > 2))
  const subsets = [
    ...all.filter((subset) => bitsOf(subset) <= 2),
    ...more.slice(0, sized({ quick: 4, usual: 24, long: all.length })),
  ]
  const wrong: string[] = []
  for (const subset of subsets) {
    const chosen = faults.filter((_, i) => (subset >> i) & 1)
    const probe: Probe = Object.assign({}, ...[...chosen].reverse().map((fault) => fault.with))
    const { path = '/v1/rules', method = 'POST', key = secret, flood = false, headers = {}, raw } = probe
    time.now += MINUTE_MS
    if (flood) for (let i = 0; i < 10; i++) await send('GET', '/v1/meta', { key })
    if (flood && key !== 'sk_live_wrong') for (let i = 0; i < 10; i++) await send('GET', '/v1/rules', { key })
    const answer = await send(method, path, {
      key,
      raw: raw ?? JSON.stringify(RULE),
      headers: { ...headers, 'x-probe-address': `203.0.113.${subset % 250}` },
    })
    if (answer.body.error?.code !== chosen[0]?.code) {
      wrong.push(`${chosen.map(({ code }) => code)}: ${answer.status} ${JSON.stringify(answer.body)}`)
    }
  }
  t.same(wrong, [], `${subsets.length} combinations, seed ${seed}`)
})

t.test('while the shared counters do not answer, those of the process go on', async (t) => {
  const local = await openMemoryLimits({ clock: systemClock })
  let down = true
  let asked = 0
  const shared: Limits = {
    async take() {
      asked += 1
      if (down) throw new Unavailable('down')
      return { allowed: true, retryAfterMs: 0, windows: [] }
    },
    close: async () => {},
  }
  let now = 0
  const limits = openFallbackLimits({ shared, local, clock: { monotonic: () => now, sleep: systemClock.sleep } })
  const rule = { name: 'a', kind: 'fixed', limit: 2, windowMs: 86_400_000 } as const
  const taken = []
  for (let i = 0; i < 3; i++) taken.push((await limits.take('k', [rule])).allowed)
  t.same(taken, [true, true, false], 'neither everybody nor nobody is refused')
  t.equal(asked, 1, 'who does not answer is not asked again at once')
  down = false
  now += 1_001
  t.equal((await limits.take('k', [rule])).allowed, true)
  t.equal(asked, 2)

  const silent = { ...shared, take: () => new Promise<never>(() => {}) }
  const patient = openFallbackLimits({ shared: silent, local, clock: systemClock })
  t.equal((await patient.take('other', [rule])).allowed, true, 'nor is it waited for')
  await patient.close()
  t.ok(openRates(limits))
})
