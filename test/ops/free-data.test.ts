// Free data about addresses: nothing is fetched before its licences are accepted, and whatever a server or a network answers in
// place of the real thing, what is there stays.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { Agent, buildConnector, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { createAddresses } from '../../src/ipintel/addresses.ts'
import { FREE_DATA, withFreeData } from '../../src/ipintel/recommended.ts'
import { loadTable, tablePath } from '../../src/ipintel/store.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { dataUpdate } from '../../src/ops/data-update.ts'
import { download } from '../../src/ops/download.ts'
import { acceptedFreeData, askConsent, licencesText } from '../../src/ops/free-data.ts'
import { authorityIn, type Leaf, makeAuthority, openReceiver } from '../helpers/receiver.ts'

const HOSTS = [...new Set(FREE_DATA.flatMap(({ places }) => places.flatMap(({ urls }) => urls.map(hostOf))))]
function hostOf({ location }: { readonly location: string }): string {
  return new URL(location).hostname
}

type Answer = (response: ServerResponse) => void
const file =
  (body: string | Buffer, headers: Record<string, string> = { 'content-type': 'text/plain' }): Answer =>
  (response) =>
    void response.writeHead(200, headers).end(body)

const v4 = (n: number): string => `${11 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`
const lines = (count: number, line: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => `${line(n)}\n`).join('')

/** What each publisher has, in the form it has it, small. */
const GENUINE: Readonly<Record<string, Answer>> = {
  '/data/ip2asn-combined.tsv.gz': file(
    gzipSync(lines(110_000, (n) => `${v4(n)}.0\t${v4(n)}.255\t${n + 1}\t${n % 2 === 0 ? 'DE' : 'FR'}\tNET-${n}`)),
    { 'content-type': 'application/gzip' },
  ),
  '/torbulkexitlist': file(lines(150, (n) => `${v4(n)}.9`)),
  '/egress-ip-ranges.csv': file(lines(12_000, (n) => `${v4(n + 20_000)}.0/31,US,US-CA,Los Angeles,`)),
  '/X4BNet/lists_vpn/main/output/datacenter/ipv4.txt': file(lines(6_000, (n) => `${v4(n + 40_000)}.0/24`)),
  '/X4BNet/lists_vpn/main/output/datacenter/ipv6.txt': file('2001:db8:1::/48\n'),
  '/X4BNet/lists_vpn/main/output/vpn/ipv4.txt': file(lines(1_200, (n) => `${v4(n + 20_000)}.0/31`)),
  '/X4BNet/lists_vpn/main/output/vpn/ipv6.txt': file('2001:db8:2::/48\n'),
}

/** The publishers of the real names, on this machine and under an authority that this process trusts. */
async function publishers(t: Test, leaf?: Leaf) {
  const authority = makeAuthority(t)
  const server = await openReceiver(t, leaf ?? authority.leaf(HOSTS.map((host) => `DNS:${host}`).join(',')))
  const answers = new Map(Object.entries(GENUINE))
  server.behave = (request, response) => (answers.get(request.url ?? '') ?? ((r) => r.writeHead(404).end()))(response)
  const connect = buildConnector({ ca: authority.ca })
  const before = getGlobalDispatcher()
  const here = new Agent({
    connect: (options, done) =>
      connect({ ...options, servername: options.hostname, hostname: '127.0.0.1', port: String(server.port) }, done),
  })
  setGlobalDispatcher(here)
  t.teardown(async () => {
    setGlobalDispatcher(before)
    await here.destroy()
  })
  return { answers, asked: () => server.hits.map(({ headers, path }) => `${headers.host}${path}`) }
}

const update = (dir: string, accepted = FREE_DATA) =>
  dataUpdate({
    dir,
    places: withFreeData([], accepted),
    bytesMax: 512_000_000,
    clock,
    progress: { begin: () => undefined, advance: () => undefined, end: () => undefined },
  })
const failureOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'nothing failed',
    (error: Error) => error.message,
  )

t.test(
  'every licence is printed before anything is fetched, and nothing is fetched unless it is accepted',
  async (t) => {
    const dir = join(t.testdir({}), 'ip')
    const said: string[] = []
    const needs = {
      dir,
      nowMs: Date.UTC(2026, 10, 23),
      accepts: false,
      ask: null,
      say: (text: string) => said.push(text),
    }
    await t.rejects(askConsent(needs), { name: 'NotAccepted', message: /--accept-licences/ })
    for (const { name, licence, terms, places } of FREE_DATA) {
      for (const text of [name, licence, terms]) t.ok(said[0]?.includes(text), text)
      for (const { urls } of places) for (const { location } of urls) t.ok(said[0]?.includes(location), location)
    }
    t.equal(await askConsent({ ...needs, ask: async () => false }), false)
    t.notOk(existsSync(dir), 'a refusal leaves nothing')
    t.same(acceptedFreeData(dir), [])

    t.ok(await askConsent({ ...needs, ask: async () => true }))
    t.same(acceptedFreeData(dir), FREE_DATA)
    said.length = 0
    t.ok(await askConsent({ ...needs, ask: async () => t.fail('asked twice') }), 'what was accepted is not asked again')
    t.match(said, [/licence/])

    const stricter = FREE_DATA.map((data, i) => (i === 0 ? { ...data, licence: 'another one' } : data))
    t.same(acceptedFreeData(dir, stricter), FREE_DATA.slice(1), 'another licence was not accepted')
    t.equal(await askConsent({ ...needs, ask: async () => false }, stricter), false)
    t.ok(await askConsent({ ...needs, accepts: true }, stricter), 'scripts accept')
    writeFileSync(join(dir, 'accepted-licences.json'), '{"licences":7')
    t.same(acceptedFreeData(dir), [], 'what cannot be read was not accepted')
  },
)

t.test(
  'free data is fetched by name over https, and tells country, network, Tor, VPN, relay and data centre',
  async (t) => {
    const { asked } = await publishers(t)
    const dir = t.testdir({})
    t.same((await update(dir)).updated, ['geo', 'asn', 'tor', 'relay', 'datacenter', 'vpn'])
    t.equal(asked().filter((one) => one.includes('ip2asn')).length, 1, 'one file is fetched once for two sources')
    const tables = await Promise.all(
      (['geo', 'asn', 'tor', 'relay', 'datacenter', 'vpn'] as const).map((name) =>
        loadTable(tablePath(dir, name), name),
      ),
    )
    const addresses = createAddresses()
    addresses.take({ images: tables.map((table) => table?.image as SharedArrayBuffer), relayIsVpn: false })
    t.match(addresses.lookup(`${v4(0)}.9`), { geo: { country: 'DE' }, network: { asn: 1, name: 'NET-0' }, tor: true })
    t.match(addresses.lookup(`${v4(1)}.1`), { geo: { country: 'FR' }, tor: false, vpn: null, hosting: null })
    t.match(addresses.lookup(`${v4(40_001)}.1`), { hosting: 'datacenter_range' })
    t.match(addresses.lookup('2001:db8:2::1'), { vpn: { provider: null } })
    t.match(addresses.lookup(`${v4(20_000)}.1`), { relay: { isVpn: false } }, 'the relay is told beside the VPN list')
    t.same(
      readdirSync(dir, { recursive: true }).filter((name) => String(name).includes(`.${process.pid}`)),
      [],
      'no drafts are left',
    )
  },
)

t.test('a list of VPNs that holds the exits of the relay is not taken without the list of the relay', async (t) => {
  const { answers } = await publishers(t)
  const dir = t.testdir({})
  answers.delete('/egress-ip-ranges.csv')
  const failure = await failureOf(update(dir))
  t.match(failure, /relay: https:\/\/mask-api\.icloud\.com\/egress-ip-ranges\.csv: the server answered 404/)
  t.match(failure, /vpn: it is not taken without data of relay/)
  t.equal(await loadTable(tablePath(dir, 'vpn'), 'vpn'), null)
  t.not(await loadTable(tablePath(dir, 'datacenter'), 'datacenter'), null, 'the others are there')
})

t.test('settings of the operator win over free data', async (t) => {
  const own = { source: 'tor' as const, files: [], urls: [{ name: null, location: 'https://lists.example/tor' }] }
  const none = { source: 'geo' as const, files: [], urls: [] }
  const places = withFreeData([own, none], FREE_DATA)
  t.same(places[0], own)
  t.equal(places.filter(({ source }) => source === 'tor').length, 1)
  t.equal(places.filter(({ source }) => source === 'geo').length, 1)
  t.match(licencesText(FREE_DATA), /iptoasn/)
})

const TOR = '/torbulkexitlist'
const to =
  (location: string): Answer =>
  (response) =>
    void response.writeHead(302, { location }).end()

t.test(
  'whatever comes in place of a list, good data stays as it is and the sentence says which source failed',
  async (t) => {
    const { answers } = await publishers(t)
    const dir = t.testdir({})
    const tor = FREE_DATA.filter(({ places }) => places.some(({ source }) => source === 'tor'))
    await update(dir, tor)
    const before = readFileSync(tablePath(dir, 'tor'))
    const endless: Answer = (response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      const more = (): void => {
        while (!response.destroyed && response.write('192.0.2.1\n'.repeat(6_000)));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    }
    const page = '<!doctype html><title>Sign in</title>\n12345\n'
    const hostile: readonly (readonly [string, Answer | null, RegExp])[] = [
      ['an endless body', endless, /larger than 4000000 bytes/],
      ['a size that is told', file('', { 'content-length': '9000000000' }), /larger than 4000000 bytes/],
      ['a page', file(page, { 'content-type': 'text/html; charset=utf-8' }), /a page \(text\/html/],
      ['a page that says it is a list', file(page), /1 entries, where at least 100 are expected/],
      ['a few lines', file(lines(99, (n) => `${v4(n)}.9`)), /99 entries, where at least 100/],
      ['noise', file(Buffer.alloc(50_000, 'ÿ\n')), /lines cannot be read/],
      ['a bomb', file(gzipSync(Buffer.alloc(40_000_000, '192.0.2.1\n'))), /unpacked/],
      ['half a gzip', file(gzipSync(lines(150, (n) => `${v4(n)}.9`)).subarray(0, 90)), /unpacked/],
      ['everybody', file(`0.0.0.0/0\n${lines(20, () => '0.0.0.0/1')}`), /lines cannot be read/],
      [
        'plain http',
        to('http://check.torproject.org/list'),
        /redirected to http:\/\/check\.torproject\.org, which is not https/,
      ],
      ['http on this machine', to('http://127.0.0.1:1/'), /redirected to http:\/\/127\.0\.0\.1:1, which is not https/],
      ['this machine', to('https://127.0.0.1/'), /in a private network/],
      ['its metadata', to('https://169.254.169.254/latest'), /in a private network/],
      ['a private network', to('https://[fd00::1]/'), /in a private network/],
      ['a name of this machine', to('https://localhost/'), /in a private network/],
      ['a file', to('file:///etc/passwd'), /not https/],
      ['a circle', to(TOR), /more than 5 times/],
      ['an error', (response) => void response.writeHead(503).end(), /answered 503/],
      ['nothing there', null, /answered 404/],
      ['no answer', (response) => void response.destroy(), /./],
    ]
    for (const [name, answer, reason] of hostile) {
      if (answer === null) answers.delete(TOR)
      else answers.set(TOR, answer)
      const failure = await failureOf(update(dir, tor))
      t.match(failure, reason, name)
      t.match(failure, /^not refreshed, what was there stays: tor: https:\/\/check\.torproject\.org/, name)
      t.ok(readFileSync(tablePath(dir, 'tor')).equals(before), `${name}: untouched`)
    }
  },
)

t.test(
  'a publisher that cannot prove its name is not believed, and without a network each source is named',
  async (t) => {
    const dir = t.testdir({})
    const { asked } = await publishers(t, authorityIn(t.testdir({ other: {} })).leaf(`DNS:${HOSTS[0]}`))
    const failure = await failureOf(update(dir))
    for (const host of HOSTS) t.ok(failure.includes(host), host)
    t.match(failure, /certificate/)
    t.same(asked(), [])
    t.notOk(existsSync(tablePath(dir, 'geo')))
  },
)

t.test('a body that never ends by itself is given up after its time', async (t) => {
  const { answers } = await publishers(t)
  answers.set(TOR, (response) => {
    response.writeHead(200, { 'content-type': 'text/plain' })
    const drip = setInterval(() => response.write('1'), 20)
    response.once('close', () => clearInterval(drip))
  })
  const options = { etag: null, lastModified: null, bytesMax: 1_000_000, msMax: 300, onBytes: () => undefined }
  await t.rejects(download('https://check.torproject.org/torbulkexitlist', options), { message: /longer than 300 ms/ })
})
