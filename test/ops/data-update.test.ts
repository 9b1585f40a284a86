// `fingerpost data update` against a server that answers as servers do: whole, unchanged, too much, too late, nonsense.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { parsePlace, placesProblem, type SourceName } from '../../src/ipintel/sources.ts'
import { loadTable, previousPath, tablePath } from '../../src/ipintel/store.ts'
import type { AddressTable } from '../../src/ipintel/table.ts'
import { systemClock as clock } from '../../src/lib/clock.ts'
import { dataUpdate } from '../../src/ops/data-update.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function serve(t: Test): Promise<{ url: string; answers: Map<string, Answer>; asked: string[] }> {
  const answers = new Map<string, Answer>()
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(
      `${request.url} ${request.headers['if-none-match'] ?? '-'} ${request.headers['if-modified-since'] ?? '-'}`,
    )
    const answer = answers.get(request.url ?? '')
    if (answer === undefined) response.writeHead(404).end()
    else answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, answers, asked }
}

const text =
  (body: string | Buffer, headers: Record<string, string> = {}): Answer =>
  (_, response) =>
    void response.writeHead(200, headers).end(body)

function update(dir: string, places: Partial<Record<SourceName, { files?: string[]; urls?: string[] }>>) {
  const told: string[] = []
  return dataUpdate({
    dir,
    places: Object.entries(places).map(([source, { files = [], urls = [] }]) => ({
      source: source as SourceName,
      files: files.map(parsePlace),
      urls: urls.map(parsePlace),
    })),
    bytesMax: 100_000,
    clock,
    progress: { begin: () => undefined, advance: () => undefined, end: (outcome) => void told.push(outcome) },
  }).then((result) => ({ ...result, told }))
}

const load = async (dir: string, source: SourceName) =>
  (await loadTable(tablePath(dir, source), source)) as AddressTable
const address = (a: number, b: number, c: number, d: number) => ((a * 256 + b) * 256 + c) * 256 + d

t.test('what is fetched is compiled and stored, and what has not changed is not fetched again', async (t) => {
  const { url, answers, asked } = await serve(t)
  const dir = t.testdir({})
  const modified = 'Fri, 20 Nov 2026 10:00:00 GMT'
  const conditional =
    (body: string): Answer =>
    (request, response) => {
      const isKnown = request.headers['if-none-match'] === '"1"'
      const headers = { etag: '"1"', 'last-modified': modified }
      response.writeHead(isKnown ? 304 : 200, headers).end(isKnown ? undefined : body)
    }
  answers.set('/a', conditional('192.0.2.0/24\n'))
  answers.set('/b', (_, response) => void response.writeHead(302, { location: '/b2' }).end())
  answers.set('/b2', text(gzipSync('198.51.100.0/24\n'), { 'last-modified': modified }))
  const places = { vpn: { urls: [`First=${url}/a`, `Second VPN=${url}/b`] } }

  const first = await update(dir, places)
  t.same([first.updated, first.unchanged], [['vpn'], []])
  t.match(first.told, [/^2 entries, .* days old$/])
  const table = await load(dir, 'vpn')
  t.equal(table.text(table.v4(address(192, 0, 2, 1))), 'First')
  t.equal(table.text(table.v4(address(198, 51, 100, 1))), 'Second VPN')
  t.equal(table.meta.dataAt, Date.parse(modified))

  asked.length = 0
  t.same((await update(dir, places)).unchanged, ['vpn'])
  t.same(asked, [`/a "1" ${modified}`, `/b - ${modified}`, `/b2 - ${modified}`])

  answers.set('/b2', text('203.0.113.0/24\n', { 'last-modified': 'Sat, 21 Nov 2026 10:00:00 GMT' }))
  t.same((await update(dir, places)).updated, ['vpn'])
  const next = await load(dir, 'vpn')
  t.equal(next.text(next.v4(address(192, 0, 2, 1))), 'First', 'the part that was not sent again')
  t.equal(next.text(next.v4(address(203, 0, 113, 1))), 'Second VPN')
  t.equal(next.v4(address(198, 51, 100, 1)), 0)
  t.ok(existsSync(previousPath(dir, 'vpn')), 'the one before is kept')
  t.same(
    readdirSync(dir, { recursive: true }).filter((name) => String(name).includes(`.${process.pid}`)),
    [],
    'no drafts are left',
  )
})

t.test('a list without a date is as new as it was last confirmed', async (t) => {
  const { url, answers } = await serve(t)
  const dir = t.testdir({})
  answers.set('/tor', text('192.0.2.9\n'))
  const from = Date.now()
  await update(dir, { tor: { urls: [`${url}/tor`] } })
  const first = await load(dir, 'tor')
  t.ok((first.meta.dataAt ?? 0) >= from)
  await clock.sleep(5)
  t.same((await update(dir, { tor: { urls: [`${url}/tor`] } })).updated, ['tor'])
  t.ok(((await load(dir, 'tor')).meta.dataAt ?? 0) > (first.meta.dataAt ?? 0))
})

t.test('whatever a server answers, a failed update leaves the old data and says why', async (t) => {
  const { url, answers } = await serve(t)
  const dir = t.testdir({})
  const many = Array.from({ length: 2_000 }, (_, i) => `192.0.${i >> 8}.${i & 255}`).join('\n')
  answers.set('/tor', text(many))
  answers.set('/vpn', text('192.0.2.0/24\n'))
  const places = { tor: { urls: [`${url}/tor`] }, vpn: { urls: [`${url}/vpn`] } }
  await update(dir, places)
  const before = readFileSync(tablePath(dir, 'tor'))

  const wrong: readonly (readonly [string, Answer | null, RegExp])[] = [
    ['nothing there', null, /answered 404/],
    ['an error', (_, response) => void response.writeHead(500).end('192.0.2.1\n'), /answered 500/],
    ['an error page', text('<html>\n'.repeat(40)), /lines cannot be read/],
    ['nothing at all', text(''), /no entries/],
    ['too much', text('192.0.2.1\n'.repeat(20_000)), /larger than 100000 bytes/],
    [
      'too much without saying so',
      (_, response) => {
        response.writeHead(200)
        for (let i = 0; i < 20; i++) response.write('192.0.2.1\n'.repeat(1_000))
        response.end()
      },
      /larger than 100000 bytes/,
    ],
    ['a bomb', text(gzipSync('192.0.2.1\n'.repeat(50_000))), /unpacked/],
    ['half of it', text(many.slice(0, many.length / 3)), /entries are left of 2000.*remove .*tor\.table/],
    [
      'a connection that ends',
      (_, response) => {
        response.writeHead(200, { 'content-length': String(many.length) })
        response.write(many.slice(0, 9_000))
        setTimeout(() => response.destroy(), 20)
      },
      /./,
    ],
    ['a circle', (_, response) => void response.writeHead(302, { location: '/tor' }).end(), /more than 5 times/],
    [
      'elsewhere',
      (_, response) => void response.writeHead(302, { location: 'http://192.0.2.1/' }).end(),
      /is not https/,
    ],
    ['unchanged, unasked', (_, response) => void response.writeHead(304).end(), /./],
  ]
  for (const [name, answer, reason] of wrong) {
    if (answer === null) answers.delete('/tor')
    else answers.set('/tor', answer)
    if (name === 'unchanged, unasked') {
      for (const kept of readdirSync(join(dir, 'fetched'))) writeFileSync(join(dir, 'fetched', kept), 'damaged')
    }
    answers.set('/vpn', text(`203.0.113.0/24\n# ${name}\n`))
    const failure = await update(dir, places).then(
      () => null,
      (error: Error) => error,
    )
    t.match(failure, { name: 'UpdateFailed', message: reason }, name)
    t.match(failure?.message, /^not refreshed, what was there stays: tor: /)
    t.same(readFileSync(tablePath(dir, 'tor')), before, `${name}: untouched`)
    t.not((await load(dir, 'vpn')).v4(address(203, 0, 113, 1)), 0, `${name}: the others go on`)
  }
})

t.test('files are compiled ahead for servers that start', async (t) => {
  const dir = t.testdir({ 'geo.csv': '192.0.2.0,192.0.2.255,DE\n' })
  const places = { geo: { files: [join(dir, 'geo.csv')] } }
  t.same((await update(join(dir, 'ip'), places)).updated, ['geo'])
  t.same((await update(join(dir, 'ip'), places)).unchanged, ['geo'])
  t.match((await load(join(dir, 'ip'), 'geo')).meta.inputs, [{ location: join(dir, 'geo.csv'), etag: null }])
  await t.rejects(update(dir, { geo: { files: [join(dir, 'none')] } }), {
    name: 'UpdateFailed',
    message: /no such file/,
  })
  await t.rejects(update(dir, {}), { name: 'UpdateFailed', message: /no source is configured/ })
})

t.test('places that cannot be are refused before anything is fetched', async (t) => {
  const problem = (files: string[], urls: string[]) =>
    placesProblem({ source: 'tor', files: files.map(parsePlace), urls: urls.map(parsePlace) })
  t.equal(
    problem([], ['https://x.example/a?b=c', 'Name=https://x.example/', 'http://127.0.0.1:1/', 'http://localhost/']),
    null,
  )
  for (const url of ['http://x.example/', 'ftp://x.example/', '/etc/passwd', 'x', '', 'Name=', 'file:///etc/passwd'])
    t.match(problem([], [url]), /ip\.torUrl takes https/, url)
  t.match(problem(['/a'], ['https://x.example/']), /set one of them/)
  t.match(problem(['Name='], []), /ip\.torFile takes paths/)
  t.same(parsePlace('https://x.example/?a=b'), { name: null, location: 'https://x.example/?a=b' })
  t.same(parsePlace(' Proton VPN = ./x=y.txt '), { name: 'Proton VPN', location: './x=y.txt' })
})
