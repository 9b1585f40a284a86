// What four backtests at once do to ingest: p99 of identify at a steady rate, alone and with a backtest running all the time in
// each of four workspaces that have their share of the history.

import { setTimeout as sleep } from 'node:timers/promises'
import { openEmbeddedClickHouse } from '../src/clickhouse/embedded.ts'
import { systemClock } from '../src/lib/clock.ts'
import { must } from '../src/lib/must.ts'
import { cleanUp, makeKeys, startServer, temporaryFolder } from '../test/helpers/server.ts'
import { fillHistory } from './backtest-data.ts'
import { atShare } from './measure.ts'

const WORKSPACES = 4
const PER_SECOND = 200
const PHASE_MS = 15_000
const CONDITIONS = {
  operator: 'OR',
  rules: [
    { field: 'scores.suspect', operator: 'gte', value: 80 },
    { field: 'email', operator: 'contains', value: '@corp' },
  ],
}

async function post(
  url: string,
  key: string,
  body: unknown,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: await response.json() }
}

export async function benchIngest(events: number): Promise<void> {
  const dataDir = temporaryFolder()
  const keys = makeKeys()
  try {
    const first = await startServer({ asShipped: true, dataDir, keys })
    const tenants: { readonly id: string; readonly key: string }[] = []
    for (let i = 0; i < WORKSPACES; i++) {
      const made = await post(`${first.url}/admin/v1/workspaces`, first.operatorToken, {
        name: `bench ${i}`,
        plan: 'enterprise',
      })
      const { id } = made.body as { id: string }
      const key = await post(`${first.url}/admin/v1/workspaces/${id}/keys`, first.operatorToken, {
        kind: 'secret',
        environment: 'live',
      })
      tenants.push({ id, key: (key.body as { key: string }).key })
    }
    await first.stop()
    const quiet = { info() {}, warn() {} }
    const clickhouse = await openEmbeddedClickHouse({
      dataDir: `${dataDir}/clickhouse`,
      database: 'fingerpost',
      clock: systemClock,
      log: quiet,
    })
    for (const { id } of tenants)
      await fillHistory(clickhouse, id, Math.floor(events / WORKSPACES), Date.now(), () => {})
    await clickhouse.close()

    const server = await startServer({ asShipped: true, dataDir, keys })
    const identify = async (n: number): Promise<number> => {
      const startedAt = performance.now()
      const { status } = await post(`${server.url}/v1/identify`, keys.secret, {
        linkedId: `user_${n}`,
        components: { canvas: { value: `canvas ${n}` }, fonts: { value: ['Arial', `Font ${n % 50}`] } },
      })
      if (status !== 200 && status !== 202) throw new Error(`identify answered ${status}`)
      return performance.now() - startedAt
    }
    let sent = 0
    async function phase(): Promise<number[]> {
      const running: Promise<number>[] = []
      const startedAt = performance.now()
      while (performance.now() - startedAt < PHASE_MS) {
        const due = ((performance.now() - startedAt) / 1_000) * PER_SECOND
        while (running.length < due) running.push(identify(sent++))
        await sleep(2)
      }
      return (await Promise.all(running)).sort((a, b) => a - b)
    }
    const at = (times: readonly number[], share: number) => must(atShare(times, share), 'a call').toFixed(1)
    await phase()
    const alone = await phase()
    let stopping = false
    let backtests = 0
    let failure: unknown = null
    const loops = tenants.map(async ({ key }) => {
      while (!stopping) {
        const { status } = await post(`${server.url}/v1/rules/backtest`, key, { conditions: CONDITIONS, days: 30 })
        if (status !== 200) throw new Error(`a backtest answered ${status}`)
        backtests += 1
      }
    })
    for (const loop of loops) loop.catch((error: unknown) => (failure = error))
    const together = await phase()
    stopping = true
    await Promise.allSettled(loops)
    if (failure !== null) throw failure
    await server.stop()
    console.log(
      `identify at ${PER_SECOND}/s: alone p50 ${at(alone, 0.5)} p99 ${at(alone, 0.99)} ms; beside ${backtests} backtests ` +
        `p50 ${at(together, 0.5)} p99 ${at(together, 0.99)} ms, ratio ${(Number(at(together, 0.99)) / Number(at(alone, 0.99))).toFixed(2)}`,
    )
  } finally {
    await cleanUp()
  }
}
