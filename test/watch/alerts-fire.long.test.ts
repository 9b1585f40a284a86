// Alerts that fire for real: one process and a cluster under a little load, faults of disks, servers, receivers and threads, and a
// Prometheus with the shipped rules, whose waits and windows are shortened. What each fault must be told by is in its case; when it is
// over, so is the alert.

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { browserBody } from '../helpers/client.ts'
import { startCluster } from '../helpers/cluster.ts'
import { pause, until } from '../helpers/processes.ts'
import { startPrometheus } from '../helpers/prometheus.ts'
import { answer, makeAuthority, openReceiver } from '../helpers/receiver.ts'
import { cleanUp, type Keys, startServer, temporaryFolder } from '../helpers/server.ts'
import { standStill } from '../helpers/standstill.ts'

t.setTimeout(1_800_000)

const WINDOW = '20s'
const FIRES_MS_MAX = 240_000
const ENDS_MS_MAX = 240_000
const DISK_MB = 700
const FREE_MB_MIN = 150
const MB = 2 ** 20
const VISIT_EVERY_MS = 250

const shipped = readFileSync(new URL('../../../deploy/prometheus/alerts.yml', import.meta.url), 'utf8')
const rulesFile = join(temporaryFolder(), 'alerts.yml')
writeFileSync(rulesFile, shipped.replace(/\[\d+[mh]\]/g, `[${WINDOW}]`).replace(/for: \d+[mh]/g, 'for: 2s'))

const disk = join(temporaryFolder(), 'disk')
mkdirSync(disk)
execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', disk])
const throwFile = join(temporaryFolder(), 'throw')
const exits = join(temporaryFolder(), 'tor.txt')
const listExits = () => writeFileSync(exits, '192.0.2.1\n')
listExits()

const authority = makeAuthority(t)
const receiver = await openReceiver(t, authority.leaf('DNS:localhost'))
const hooks = {
  FINGERPOST_WEBHOOKS_ALLOW_PRIVATE_CIDRS: '127.0.0.0/8',
  FINGERPOST_WEBHOOKS_EXTRA_CA_FILE: authority.caFile,
  FINGERPOST_WEBHOOKS_BACKLOG_MAX: '100',
  FINGERPOST_WEBHOOKS_IN_FLIGHT_MAX: '4',
}
const single = await startServer({
  dataDir: disk,
  nodeArgs: ['--import', new URL('../helpers/throw-hook.js', import.meta.url).href],
  env: {
    ...hooks,
    THROW_FILE: throwFile,
    FINGERPOST_DATA_FREE_BYTES_MIN: String(FREE_MB_MIN * MB),
    FINGERPOST_IP_TOR_FILE: exits,
    FINGERPOST_IP_POLL_MS: '1000',
  },
})
const cluster = await startCluster({ proxied: ['nats', 'redis', 'clickhouse'] })
const [ingress, others, engine, otherEngine, api] = cluster.members
if (!ingress || !others || !engine || !otherEngine || !api) throw new Error('a cluster has five processes')
const { nats, redis, clickhouse } = cluster.proxies
const hostOf = ({ url }: { readonly url: string }) => new URL(url).host
const prometheus = await startPrometheus({
  targets: [single, ...cluster.members].map(hostOf),
  rulesFile,
  // A busy machine answers late, and is not down.
  everySeconds: 3,
})

let isOver = false
async function post(url: string, key: string, body: unknown): Promise<number> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }).catch(() => null)
  await response?.arrayBuffer().catch(() => null)
  return response?.status ?? 0
}
async function visit(url: string, keys: Keys): Promise<void> {
  for (let n = 0; !isOver; n++) {
    void post(`${url}/v1/identify`, keys.public, browserBody(`GPU ${n % 50}`))
    await pause(VISIT_EVERY_MS)
  }
}
const load = [visit(single.url, single.keys), visit(ingress.url, cluster.keys)]
const hook = { url: `https://localhost:${receiver.port}/`, events: ['identification'] }
t.equal(await post(`${single.url}/v1/webhooks`, single.keys.secret, hook), 201)

t.teardown(async () => {
  isOver = true
  await Promise.all(load)
  await prometheus.stop()
  await single.kill9()
  await cluster.stop()
  execFileSync('umount', ['-l', disk])
  await cleanUp()
})

const firing = async (): Promise<readonly string[]> =>
  (await prometheus.rules()).filter(({ state }) => state === 'firing').map(({ name }) => name)

const fired = new Set<string>()

/** `mend` ends the fault; null: nothing is left to be mended. */
async function fires(alerts: readonly string[], harm: () => unknown, mend: (() => unknown) | null): Promise<void> {
  await t.test(alerts.join(', '), async (t) => {
    await harm()
    const missing = new Set(alerts)
    try {
      const tookMs = await until('fired', FIRES_MS_MAX, async () => {
        for (const name of await firing()) missing.delete(name)
        return missing.size === 0
      })
      t.comment(`fired ${Math.round(tookMs / 1_000)} s after the fault`)
    } catch {
      t.fail(`did not fire: ${[...missing].join(', ')}`)
    }
    for (const name of alerts) if (!missing.has(name)) fired.add(name)
    await mend?.()
    const lasting = async () => (await firing()).filter((name) => alerts.includes(name))
    await until('over', ENDS_MS_MAX, async () => (await lasting()).length === 0)
    t.same(await lasting(), [], 'quiet again when it is over')
  })
}

await t.test('a healthy process and a healthy cluster make no alert fire', async (t) => {
  await until('all is scraped, and starts are forgotten', FIRES_MS_MAX, async () => {
    const up = await prometheus.query(`min(min_over_time(up[${WINDOW}]))`)
    return up[0]?.value[1] === '1' && (await firing()).length === 0
  })
  t.same(await firing(), [])
})

const filler = join(disk, 'filler')
await fires(
  ['FingerpostDiskLow', 'FingerpostRefusing'],
  () => {
    const free = Number(execFileSync('df', ['--output=avail', '-B1', disk], { encoding: 'utf8' }).split('\n')[1])
    execFileSync('fallocate', ['-l', String(free - (FREE_MB_MIN / 2) * MB), filler])
  },
  () => rmSync(filler),
)
await fires(
  ['FingerpostWebhooksFailing', 'FingerpostDeliveriesDropped'],
  () => {
    receiver.behave = answer(500)
  },
  () => {
    receiver.behave = answer(200)
  },
)
await fires(['FingerpostShardRestarted'], () => writeFileSync(throwFile, ''), null)
await fires(['FingerpostIpDataFailing'], () => writeFileSync(exits, '<html>\n'.repeat(30)), listExits)
await fires(
  ['FingerpostClickHouseDown', 'FingerpostSinkFailing', 'FingerpostUnsunkOld'],
  () => clickhouse?.mode({ kind: 'refuse' }),
  () => clickhouse?.mode({ kind: 'pass' }),
)
await fires(
  ['FingerpostServerSlow', 'FingerpostIdentifySlow'],
  () => nats?.mode({ kind: 'delay', ms: 700 }),
  () => nats?.mode({ kind: 'pass' }),
)
await fires(
  ['FingerpostErrorsFast', 'FingerpostErrorsSlow', 'FingerpostServerFailing'],
  () => {
    nats?.mode({ kind: 'refuse' })
    redis?.mode({ kind: 'refuse' })
  },
  () => {
    nats?.mode({ kind: 'pass' })
    redis?.mode({ kind: 'pass' })
  },
)
const engines = [engine, otherEngine]
await fires(
  ['FingerpostUndecidedOld', 'FingerpostPropagationSlow'],
  async () => {
    for (const { server } of engines) standStill(server.pid)
    const rule = {
      name: 'Anything',
      conditions: { operator: 'AND', rules: [{ field: 'linkedId', operator: 'exists', value: true }] },
      action: { verdict: 'allow' },
    }
    await post(`${api.url}/v1/rules`, cluster.keys.secret, { ...rule, status: 'live' })
  },
  () => {
    for (const { server } of engines) server.signal('SIGCONT')
  },
)
await fires(
  ['FingerpostDown'],
  () => others.kill9(),
  () => others.restart(),
)

await t.test('every fault above was told', async (t) => {
  t.comment([...fired].sort().join(' '))
  t.ok(fired.size >= 8, `${fired.size} alerts fired`)
})
