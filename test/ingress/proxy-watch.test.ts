// A proxy in front that is not trusted is noticed and told, with the setting that mends it; visitors of every usual kind are no proxy.

import { join } from 'node:path'
import t from 'tap'
import { createProxyWatch } from '../../src/ingress/proxy-watch.ts'
import type { SourceName } from '../../src/ipintel/sources.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { dataUpdate } from '../../src/ops/data-update.ts'
import { cleanUp, startServer } from '../helpers/server.ts'

t.teardown(cleanUp)

function watched() {
  const told: unknown[] = []
  const watch = createProxyWatch((suspicion) => told.push(suspicion))
  const saw = (times: number, address: (n: number) => string, hopsBefore: (n: number) => number, browsers = 20) => {
    for (let n = 0; n < times; n++) {
      watch.saw({ address: address(n), hopsBefore: hopsBefore(n) }, `browser ${n % browsers}`)
    }
  }
  return { told, watch, saw }
}
const always =
  <T>(value: T) =>
  () =>
    value

t.test('an address of the own network that passes others on is suspected after a few, once', async (t) => {
  const { told, watch, saw } = watched()
  saw(4, always('10.0.0.5'), always(1))
  t.equal(watch.suspicion(), null)
  saw(400, always('10.0.0.5'), always(1))
  t.same(told, ['forwarded'])
})

t.test(
  'public addresses that nearly all pass others on are a proxy, and some of them are visitors with a proxy',
  async (t) => {
    const front = watched()
    front.saw(60, (n) => `198.41.${n % 4}.7`, always(1))
    t.equal(front.watch.suspicion(), 'forwarded', 'which addresses a content network has does not count')
    const people = watched()
    people.saw(
      2_000,
      (n) => `93.184.${n % 200}.${n % 7}`,
      (n) => (n % 3 === 0 ? 1 : 0),
    )
    t.same(people.told, [])
  },
)

t.test(
  'many browsers at one private address are suspected; one person who tries things and an office are not',
  async (t) => {
    const behind = watched()
    behind.saw(60, always('172.18.0.1'), always(0))
    t.equal(behind.watch.suspicion(), 'one-address')
    const one = watched()
    one.saw(2_000, always('127.0.0.1'), always(0), 2)
    t.same(one.told, [])
    const office = watched()
    office.saw(2_000, (n) => `10.1.0.${n % 40}`, always(0))
    t.same(office.told, [])
    const shop = watched()
    shop.saw(2_000, always('8.8.8.8'), always(0))
    t.same(shop.told, [], 'a public address may be that of a carrier')
  },
)

t.test('a suspicion ends with a window of visits that give no reason for it', async (t) => {
  const { told, saw } = watched()
  saw(100, always('10.0.0.5'), always(1))
  saw(1_000, (n) => `93.184.216.${n % 90}`, always(0))
  t.same(told, ['forwarded', null])
})

const metricOf = async (url: string) =>
  /^fingerpost_untrusted_proxy (\d)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1]
const adviceOf = async (url: string) =>
  ((await (await fetch(`${url}/readyz`)).json()) as { advice: { code: string; says: string; mend: string }[] }).advice

const visit = (url: string, key: string, headers: Record<string, string>) =>
  fetch(`${url}/v1/identify?key=${key}`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain', ...headers },
    body: '{}',
  })

async function until(holds: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < 100; tries++) {
    if (await holds()) return true
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return false
}

t.test('log, metric and /readyz tell of a proxy that is not trusted, with the setting that mends it', async (t) => {
  const server = await startServer({
    env: { FINGERPOST_LOG_LEVEL: 'warn', FINGERPOST_ENGINE_THREADS: '2', FINGERPOST_ENGINE_THREADS_MIN: '2' },
  })
  const has = async (code: string) => (await adviceOf(server.url)).some((one) => one.code === code)
  t.equal(await metricOf(server.url), '0')
  t.notOk(await has('untrusted_proxy'))
  for (let n = 0; n < 40; n++) {
    const response = await visit(server.url, server.keys.testPublic, { 'x-forwarded-for': `93.184.216.${n}` })
    t.equal(response.status, 200)
  }
  t.ok(await until(() => has('untrusted_proxy')))
  t.match(
    (await adviceOf(server.url)).find(({ code }) => code === 'untrusted_proxy'),
    { says: /X-Forwarded-For is not believed/, mend: /FINGERPOST_TRUSTED_PROXIES/ },
  )
  t.equal(await metricOf(server.url), '1')
  const told = server
    .logs()
    .split('\n')
    .filter((line) => line.includes('proxy that is not trusted'))
  t.equal(told.length, 1, 'once, of all shards')
  t.match(told[0], /FINGERPOST_TRUSTED_PROXIES/)
  await server.stop()
})

t.test('a proxy that is trusted is none of that, nor is a back end that names its clients', async (t) => {
  const server = await startServer({ env: { FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32' } })
  for (let n = 0; n < 40; n++) {
    await visit(server.url, server.keys.testPublic, { 'x-forwarded-for': `93.184.216.${n}` })
    await fetch(`${server.url}/v1/identify`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.keys.testSecret}`, 'x-forwarded-for': '10.0.0.9' },
      body: JSON.stringify({ ip: '93.184.216.34' }),
    })
  }
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  t.equal(await metricOf(server.url), '0')
  t.notOk((await adviceOf(server.url)).some(({ code }) => code === 'untrusted_proxy'))
  await server.stop()
})

t.test(
  'a fresh install says what is undetermined without data about addresses and how to change it, until there is some',
  async (t) => {
    const server = await startServer({ env: { FINGERPOST_IP_POLL_MS: '100' } })
    t.match(await adviceOf(server.url), [
      {
        code: 'ip_data_missing',
        says: /undetermined.*vpn, proxy, tor and country/,
        mend: /fingerpost data update --recommended/,
      },
    ])
    // It answers a moment before what it says about itself has come through the pipe.
    const says = (what: RegExp) => until(async () => what.test(server.logs()))
    t.ok(await says(/Undetermined for want of data about addresses: vpn, proxy, tor and country\./))
    t.ok(await says(/fingerpost data update --recommended/))
    const lists = t.testdir({ list: '198.51.100.0/24\n', 'geo.csv': '198.51.100.0,198.51.100.255,DE\n' })
    const fill = (...sources: readonly SourceName[]) =>
      dataUpdate({
        dir: join(server.dataDir, 'ip'),
        places: sources.map((source) => ({
          source,
          files: [{ name: null, location: join(lists, source === 'geo' ? 'geo.csv' : 'list') }],
          urls: [],
        })),
        bytesMax: 1_000_000,
        clock,
        progress: { begin: () => undefined, advance: () => undefined, end: () => undefined },
      })
    await fill('vpn', 'datacenter')
    t.ok(await until(async () => /: tor and country$/.test((await adviceOf(server.url))[0]?.says ?? '')))
    await fill('tor', 'geo')
    t.ok(await until(async () => (await adviceOf(server.url)).length === 0))
    await server.stop()
  },
)
