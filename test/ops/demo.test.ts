// `fingerpost seed --demo` against a running server: what it leaves there to look at, that twice makes nothing twice but visits, and
// what it says where it cannot.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { demoVisits } from '../../src/ops/demo-visits.ts'
import { clientOf, eventually } from '../helpers/client.ts'
import { freePort } from '../helpers/port.ts'
import { cleanUp, makeKeys, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const DAY_MS = 86_400_000
const server = await startServer({ env: { FINGERPOST_LOG_DURABILITY: 'relaxed' } })

const show = (url: string, key: string) =>
  new Promise<{ readonly code: number; readonly out: string; readonly err: string }>((resolve) => {
    const env = { PATH: process.env.PATH, FINGERPOST_URL: url, FINGERPOST_TEST_SECRET_KEY: key }
    execFile(process.execPath, [MAIN, 'seed', '--demo'], { env }, (error, out, err) =>
      resolve({ code: Number(error?.code ?? 0), out, err }),
    )
  })

t.test(
  'the visits are the same for the same end, in order, within a week, from addresses of documentation alone',
  async (t) => {
    const untilMs = Date.UTC(2026, 10, 23, 12)
    const visits = demoVisits('1', untilMs)
    const digest = (of: unknown) => createHash('sha256').update(JSON.stringify(of)).digest('hex')
    t.equal(digest(demoVisits('1', untilMs)), digest(visits))
    t.ok(visits.length > 300 && visits.length < 2_000, `${visits.length} visits`)
    const times = visits.map(({ atMs }) => atMs)
    t.same([...times].sort(), times)
    t.ok((times.at(-1) ?? 0) <= untilMs && (times[0] ?? 0) > untilMs - 8 * DAY_MS)
    for (const { body } of visits) t.match(body.ip, /^(203\.0\.113|198\.51\.100|192\.0\.2)\.\d+$|^2001:db8:/)
  },
)

t.test('a running server has something of everything, and the second time no rule, list or alert more', async (t) => {
  const client = clientOf(server)
  const key = server.keys.testSecret
  const get = async (path: string) => (await client.get(path, key)).body
  const first = await show(server.url, key)
  t.equal(first.code, 0, first.err)
  t.match(first.out, /^shown: \d+ visits of \d+ visitors in .*\d+ allow.*, \d+ labelled\n/)
  t.match(first.out, `${server.url}/console/`, 'where to look')
  t.match(first.err, /visits: \d+ of \d+/, 'how far it is')
  const visits = Number(/shown: (\d+)/.exec(first.out)?.[1])
  const visitors = Number(/of (\d+) visitors/.exec(first.out)?.[1])
  t.ok(visitors > 100 && visitors * 2 < visits, 'visitors return')

  const rules = await get('/v1/rules')
  const statuses = new Set(rules.data.map(({ status }: { status: string }) => status))
  t.same([...statuses].sort(), ['live', 'monitor'])
  const lists = await get('/v1/lists')
  for (const { name, entryCount } of lists.data) t.ok(entryCount > 0, name)
  t.equal((await get('/v1/alerts')).total, 1)
  for (const filter of [
    ...['verdict=block', 'verdict=challenge', 'bot=true', 'signal=vpn', 'signal=incognito', 'signal=tor'],
    ...['label=fraud', 'label=legitimate', 'linkedId=user_7', 'method=token', 'ip=198.51.100.192/27'],
  ]) {
    const found = await eventually(
      () => get(`/v1/events?limit=1&${filter}`),
      ({ data }) => data.length > 0,
      20_000,
    )
    t.equal(found.data.length, 1, filter)
  }
  const range = `from=${new Date(Date.now() - 8 * DAY_MS).toISOString()}&to=${new Date().toISOString()}`
  const counts = await get(`/v1/analytics/events?groupBy=day&${range}`)
  t.ok(counts.groups.filter(({ count }: { count: number }) => count > 0).length >= 7, 'on every day of a week')
  t.equal((await client.get('/v1/events?limit=1')).body.data.length, 0, 'and nothing in the live environment')

  const second = await show(server.url, key)
  t.equal(second.code, 0, second.err)
  t.match(second.err, /rules and lists: they were there/)
  t.equal((await get('/v1/rules')).total, rules.total)
  t.equal((await get('/v1/lists')).total, lists.total)
  t.equal((await get('/v1/alerts')).total, 1)
})

t.test('where it cannot it says what to do, in one line', async (t) => {
  const { testSecret, secret } = makeKeys()
  const nobody = `http://127.0.0.1:${await freePort()}`
  for (const [url, key, said] of [
    [nobody, testSecret, /no server answers at .*: start it .*FINGERPOST_URL/],
    [nobody, secret, /FINGERPOST_TEST_SECRET_KEY\) holds a key of the live environment/],
    [nobody, '', /FINGERPOST_TEST_SECRET_KEY must hold/],
    [server.url, testSecret, /does not know the key: set FINGERPOST_TEST_SECRET_KEY/],
  ] as const) {
    const { code, out, err } = await show(url, key)
    t.equal(code, 1)
    t.equal(out, '')
    t.match(err, said)
    t.match(err.trimEnd().split('\n').at(-1), /^fingerpost: /)
  }
})
