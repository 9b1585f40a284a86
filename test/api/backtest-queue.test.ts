// Who may run a backtest when: against a column store that answers when the test says so.

import t from 'tap'
import { backtestRoutes } from '../../src/api/rules/backtests.ts'
import type { ClickHouse } from '../../src/clickhouse/clickhouse.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { Unavailable } from '../../src/lib/failures.ts'
import type { BacktestQueueConfig } from '../../src/reads/backtest-queue.ts'
import { openBacktestQueue, WorkspaceBusy } from '../../src/reads/backtest-queue.ts'
import { openPorts, PARTITIONS, prepare } from '../helpers/control-plane.ts'
import { CONDITIONS, openServer } from '../helpers/rest-surface.ts'

/** Its questions stay open until answered, refused or given up. */
function slowStore() {
  const open = new Set<{ readonly answer: () => void; readonly fail: (error: Error) => void }>()
  let asked = 0
  let givenUp = 0
  const query: ClickHouse['query'] = (_sql, _params, opts) =>
    new Promise((resolve, reject) => {
      asked += 1
      const question = { answer: () => end(() => resolve([])), fail: (error: Error) => end(() => reject(error)) }
      const end = (settle: () => void) => {
        open.delete(question)
        settle()
      }
      open.add(question)
      opts?.signal?.addEventListener('abort', () => {
        givenUp += 1
        question.fail(new Unavailable('aborted'))
      })
    })
  return { query, open, asked: () => asked, givenUp: () => givenUp }
}

/** Its waits end when the test says so, or with their signal. */
function heldClock() {
  const waits: { readonly ms: number; readonly end: () => void }[] = []
  const sleep: Clock['sleep'] = (ms, signal) =>
    new Promise((resolve) => {
      waits.push({ ms, end: resolve })
      signal?.addEventListener('abort', () => resolve())
    })
  const clock: Clock = { ...systemClock, sleep }
  return { clock, waits }
}

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 3_000 && !holds(); i++) await systemClock.sleep(10)
  if (!holds()) throw new Error('it did not come true')
}

async function open(t: Parameters<typeof openServer>[0], queue: Omit<BacktestQueueConfig, 'clock'>) {
  const store = slowStore()
  const { clock, waits } = heldClock()
  const ports = await openPorts(t)
  await prepare(ports)
  const routes = backtestRoutes({
    kv: ports.kv,
    clock,
    clickhouse: store,
    snapshots: { table: async () => null, literals: () => ({ store: () => '', load: async () => {} }) },
    partitions: PARTITIONS,
    retentionDays: () => 90,
    queue,
  })
  const server = await openServer(t, { routes })
  const ask = (key = server.secret) =>
    server.send('POST', '/v1/rules/backtest', { key, body: { conditions: CONDITIONS } })
  return { store, server, ask, waits }
}

t.test('a second backtest of a workspace waits for the first, and is refused when that takes too long', async (t) => {
  const { store, ask, waits } = await open(t, { waitMsMax: 3_000, runMsMax: 7_000 })
  const turns = () => waits.filter(({ ms }) => ms === 3_000)
  const first = ask()
  await until(() => store.open.size === 1)
  const second = ask()
  await until(() => turns().length === 2)
  t.equal(store.asked(), 1, 'the second has not begun')
  for (const question of store.open) question.answer()
  t.equal((await first).status, 200)
  await until(() => store.open.size === 1)
  const refused = ask()
  await until(() => turns().length === 3)
  turns()[2]?.end()
  const third = await refused
  t.match(third, { status: 429, body: { error: { code: 'rate_limited' } } })
  t.equal(third.headers.get('retry-after'), String(third.body.error.retryAfter))
  for (const question of store.open) question.answer()
  t.equal((await second).status, 200)
})

t.test('when the client leaves, its question is given up and the next one runs', async (t) => {
  const { store, server, ask, waits } = await open(t, { waitMsMax: 3_000, runMsMax: 7_000 })
  const leaving = new AbortController()
  const left = fetch(`${server.base}/v1/rules/backtest`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${server.secret}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ conditions: CONDITIONS }),
    signal: leaving.signal,
  })
  await until(() => store.open.size === 1)
  const next = ask()
  await until(() => waits.filter(({ ms }) => ms === 3_000).length === 2)
  leaving.abort()
  await t.rejects(left)
  await until(() => store.givenUp() === 1)
  await until(() => store.asked() === 2)
  for (const question of store.open) question.answer()
  t.equal((await next).status, 200)
})

t.test('one that takes too long, or whose store is gone, is unavailable for now', async (t) => {
  const { store, ask, waits } = await open(t, { waitMsMax: 3_000, runMsMax: 7_000 })
  const asked = ask()
  await until(() => store.open.size === 1)
  waits.find(({ ms }) => ms === 7_000)?.end()
  const late = await asked
  t.match(late, { status: 503, body: { error: { code: 'unavailable' } } })
  t.ok(Number(late.headers.get('retry-after')) >= 1)
  t.equal(store.givenUp(), 1)
  const gone = ask()
  await until(() => store.open.size === 1)
  for (const question of store.open) question.fail(new Unavailable('no such host'))
  t.match(await gone, { status: 503, body: { error: { code: 'unavailable' } } })
})

t.test('four run at once, and workspaces take turns however many one asks for', async (t) => {
  const queue = openBacktestQueue({ clock: systemClock, waitMsMax: 60_000 })
  const signal = new AbortController().signal
  const running: { readonly workspace: string; readonly end: () => void }[] = []
  const begun: string[] = []
  const start = (workspace: string) =>
    queue.run(
      workspace,
      signal,
      () =>
        new Promise<void>((resolve) => {
          begun.push(workspace)
          running.push({ workspace, end: resolve })
        }),
    )
  const all = ['a', 'a', 'a', 'b', 'c', 'd', 'e', 'f'].map(start)
  await until(() => running.length === 4)
  await systemClock.sleep(20)
  t.same(begun, ['a', 'b', 'c', 'd'], 'one of each, four in all')
  running.shift()?.end()
  await until(() => begun.length === 5)
  running.shift()?.end()
  await until(() => begun.length === 6)
  t.same(begun.slice(4), ['e', 'f'], 'the next of the workspace that had its turn comes last')
  while (begun.length < all.length || running.length > 0) {
    running.shift()?.end()
    await systemClock.sleep(5)
  }
  await Promise.all(all)
  t.equal(begun.length, all.length)
})

t.test('a workspace cannot pile up waiting backtests', async (t) => {
  const queue = openBacktestQueue({ clock: systemClock, waitMsMax: 60_000 })
  const left = new AbortController()
  let end = () => {}
  const first = queue.run('a', left.signal, () => new Promise<void>((resolve) => (end = resolve)))
  const waiting = Array.from({ length: 8 }, () => queue.run('a', left.signal, async () => {}))
  await t.rejects(
    queue.run('a', left.signal, async () => {}),
    WorkspaceBusy,
  )
  end()
  await Promise.all([first, ...waiting])
})
