// IP intelligence end to end: lists named by settings, `fingerpost data update`, events that say what is known of an address,
// and lists that change or vanish while the server runs. One server reads one list from what was fetched, all others in place.

import { execFile } from 'node:child_process'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { cleanUp, type Server, startServer, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)

const CHROME =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36'

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came
type Json = any

async function identify(server: Server, body: object): Promise<Json> {
  const response = await fetch(`${server.url}/v1/identify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.keys.testSecret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ userAgent: CHROME, ...body }),
  })
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  return await response.json()
}
const of = (server: Server, ip: string, rest: object = {}) => identify(server, { mock: { ip }, ...rest })

/** As a browser behind a proxy, read back with the secret key. */
async function browse(server: Server, forwardedFor: string): Promise<Json> {
  const sent = await fetch(`${server.url}/v1/identify`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${server.keys.testPublic}`,
      'content-type': 'application/json',
      'user-agent': CHROME,
      'accept-language': 'cs',
      'x-forwarded-for': forwardedFor,
    },
    body: JSON.stringify({ components: { timezone: { value: 'Europe/Prague' } } }),
  })
  const { requestId } = (await sent.json()) as { requestId: string }
  const read = await fetch(`${server.url}/v1/events/${requestId}`, {
    headers: { authorization: `Bearer ${server.keys.testSecret}` },
  })
  return await read.json()
}

async function until(t: Test, what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000
  let held = false
  while (!held && performance.now() < deadline) {
    held = await holds()
    if (!held) await new Promise((resolve) => setTimeout(resolve, 100))
  }
  t.ok(held, what)
}

const dir = temporaryFolder()
const file = (name: string, text: string) => {
  const path = join(dir, name)
  writeFileSync(path, text)
  return path
}
const tor = file('tor.txt', '198.51.100.66\n')

let fetched = '192.0.2.128/25,DE,DE-BE,Berlin,\n'
const lists = createServer((_, response) => void response.end(fetched))
await new Promise<void>((resolve) => lists.listen(0, '127.0.0.1', resolve))
t.teardown(() => lists.close())
const dataDir = temporaryFolder()
const fromUrl = {
  FINGERPOST_IP_RELAY_URL: `http://127.0.0.1:${(lists.address() as { port: number }).port}/relays`,
}
const main = new URL('../../server/main.js', import.meta.url).pathname
const update = async () =>
  await promisify(execFile)(process.execPath, [main, 'data', 'update'], {
    env: { PATH: process.env.PATH, FINGERPOST_DATA_DIR: dataDir, ...fromUrl },
  })
const before = await update()

const server = await startServer({
  dataDir,
  env: {
    ...fromUrl,
    FINGERPOST_TRUSTED_PROXIES: '127.0.0.1/32,10.0.0.0/8',
    FINGERPOST_IP_POLL_MS: '150',
    FINGERPOST_IP_TOR_FILE: tor,
    FINGERPOST_IP_VPN_FILE: `Example VPN=${file('vpn.txt', '203.0.113.0/25\n')},${file('vpn-asn.txt', 'AS64500 # OtherVPN\n')}`,
    FINGERPOST_IP_DATACENTER_FILE: file('dc.txt', '192.0.2.0/24\n'),
    FINGERPOST_IP_BAD_ASN_FILE: file('bad.csv', 'ASN,Entity\n64501,"Bad, Inc."\n'),
    FINGERPOST_IP_ASN_FILE: file(
      'asn.csv',
      '192.0.2.0,192.0.2.255,64502,Hosting GmbH\n198.51.100.0,198.51.100.127,64500,Net\n198.51.100.128,198.51.100.255,64501,Bad\n',
    ),
    FINGERPOST_IP_GEO_FILE: file(
      'geo.csv',
      '192.0.2.0,192.0.2.255,NA,US,California,Los Angeles,34.05,-118.24\n2001:db8::,2001:db8::ffff,JP\n203.0.113.0,203.0.113.255,CZ\n',
    ),
  },
})

t.test('events say what lists know of their address, as long as there are lists', async (t) => {
  const hosted = await of(server, '192.0.2.7', { components: { timezone: { value: 'Europe/Prague' } } })
  t.match(hosted.ip, {
    address: '192.0.2.*',
    country: 'US',
    region: 'California',
    city: 'Los Angeles',
    lat: 34.05,
    lng: -118.24,
    timezone: 'America/Los_Angeles',
    asn: 64502,
    asnName: 'Hosting GmbH',
    datacenter: true,
    blocklisted: false,
    blocklists: [],
  })
  t.match(hosted.signals, { vpn: { detected: true, provider: null }, proxy: true, tor: false })
  t.match(hosted.signalDetails.vpn, {
    state: 'detected',
    methods: ['timezone_mismatch', 'datacenter_range'],
    source: 'server',
    dataAgeSeconds: Number,
  })

  t.match((await of(server, '203.0.113.9')).signals, { vpn: { detected: true, provider: 'Example VPN' }, proxy: false })
  t.match((await of(server, '198.51.100.9')).signals.vpn, { detected: true, provider: 'OtherVPN' })
  const relayed = await of(server, '192.0.2.200')
  t.match(relayed.signals, { vpn: { detected: false, provider: 'iCloud Private Relay' }, proxy: false })
  t.match((await of(server, '198.51.100.200')).ip, { blocklisted: true, blocklists: ['bad_asn'], datacenter: true })
  const exit = await of(server, '198.51.100.66')
  t.match(exit.signals, { tor: true })
  t.match(exit.ip, { blocklisted: true, blocklists: ['tor'] })
  t.match(await of(server, '2001:db8::1'), { ip: { country: 'JP', city: null, timezone: null, asn: null } })
  t.match((await identify(server, { mock: { ip: '192.0.2.7', country: 'FR' } })).ip, {
    country: 'FR',
    city: null,
    lat: null,
    asn: 64502,
  })

  const forwarded = await browse(server, '203.0.113.200, 10.0.0.1')
  t.match(forwarded, { ip: { country: 'CZ' }, signals: { vpn: { detected: false }, proxy: false } })
  const passedOn = await browse(server, '8.8.8.8, 192.0.2.7, 10.0.0.1')
  t.match(passedOn.signalDetails.proxy.methods, ['forwarded_for', 'datacenter_range'])
  t.match(await browse(server, '127.0.0.1'), {
    signalDetails: { vpn: { state: 'undetermined' } },
    ip: { country: null },
  })

  const read = await fetch(`${server.url}/v1/events/${hosted.requestId}`, {
    headers: { authorization: `Bearer ${server.keys.testSecret}` },
  })
  const again = (await read.json()) as Json
  t.same([again.ip, again.signals, again.signalDetails], [hosted.ip, hosted.signals, hosted.signalDetails])

  const ready = (await (await fetch(`${server.url}/readyz`)).json()) as Json
  t.match(ready, {
    status: 'ready',
    ipSources: { tor: { ageSeconds: Number, entries: 1, failure: null }, abuse: null },
  })
  const metrics = async () => await (await fetch(`${server.url}/metrics`)).text()
  t.match(await metrics(), /^fingerpost_ip_source_age_seconds\{source="tor"\} \d+$/m)
  t.notMatch(await metrics(), /fingerpost_ip_source_age_seconds\{source="abuse"\}/)

  writeFileSync(`${tor}.new`, '198.51.100.67\n')
  renameSync(`${tor}.new`, tor)
  await until(t, 'a changed list is in force', async () => (await of(server, '198.51.100.67')).signals.tor === true)
  await until(t, 'and the old one is not', async () => (await of(server, '198.51.100.66')).signals.tor === false)
  writeFileSync(tor, '<html>\n'.repeat(30))
  await until(t, 'a broken one is counted', async () =>
    /ip_source_failures_total\{source="tor"\} [1-9]/.test(await metrics()),
  )
  t.equal((await of(server, '198.51.100.67')).signals.tor, true, 'and not used')
  rmSync(tor)
  await until(
    t,
    'without the list nobody can tell',
    async () => (await of(server, '198.51.100.67')).signalDetails.tor?.state === 'undetermined',
  )
  t.equal((await fetch(`${server.url}/readyz`)).status, 200)
})

t.test('data update fetches before the first start, and a running server takes what it fetches', async (t) => {
  t.match(before.stdout, /^updated: relay$/m)
  t.match(before.stderr, /^relay: 1 entries, 0\.0 MB, 0\.0 days old$/m)
  const isRelayed = async (ip: string) => (await of(server, ip)).signals.vpn.provider === 'iCloud Private Relay'
  t.equal(await isRelayed('192.0.2.200'), true)
  fetched = '192.0.2.64/26,DE,DE-BE,Berlin,\n'
  await update()
  await until(t, 'the running server takes it', () => isRelayed('192.0.2.70'))
  t.equal(await isRelayed('192.0.2.200'), false, 'and leaves the old one')
  fetched = '<html>\n'.repeat(30)
  await t.rejects(update(), { code: 1, stderr: /fingerpost: not refreshed, what was there stays: relay: / })
  t.equal(await isRelayed('192.0.2.70'), true)
  t.equal(await server.stop(), 0)
})
