// Starts that must not succeed: each says in one sentence what to do, ends with exit code 1, and leaves alone what it met.

import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { BadSetting, readConfig } from '../../src/config.ts'
import { DEPTH } from '../helpers/depth.ts'
import { freePort } from '../helpers/port.ts'
import { pause } from '../helpers/processes.ts'
import { cleanUp, launchServer, makeKeys, type ServerOptions, startServer, temporaryFolder } from '../helpers/server.ts'

t.setTimeout(400_000)
t.teardown(cleanUp)

const END_MS_MAX = 60_000

/** The exit code, and what was printed besides the log. */
async function refusal(options: ServerOptions): Promise<{ code: number | null | 'still running'; said: string }> {
  const launched = await launchServer(options)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'still running'>((resolve) => {
    timer = setTimeout(() => resolve('still running'), END_MS_MAX)
  })
  const code = await Promise.race([launched.exited, late])
  clearTimeout(timer)
  if (code === 'still running') await launched.kill9()
  const lines = launched.logs().split('\n')
  return { code, said: lines.filter((line) => line !== '' && !line.startsWith('{')).join('\n') }
}

function folderWith(files: Readonly<Record<string, string>>): string {
  const dir = mkdtempSync(join(temporaryFolder(), 'data-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
  return dir
}

const format = (value: unknown) => ({ dataDir: folderWith({ 'format.json': JSON.stringify(value) }) })
const setting = (name: string, value: string) => ({ env: { [`FINGERPOST_${name}`]: value } })
const createdAt = '2026-11-20T10:00:00.000Z'
const keys = makeKeys()

/** Cases that the reader of settings refuses, after the first. */
const SETTINGS = [
  'a port that is none',
  'a port out of range',
  'a key with a typo',
  'a key of another kind',
  'a short operator token',
  'half of a TLS pair',
  'plain HTTP for everybody',
]

const CASES: readonly [what: string, options: () => ServerOptions, said: RegExp][] = [
  ['an unknown setting', () => setting('PROT', '8080'), /unknown setting: FINGERPOST_PROT$/],
  ['a port that is none', () => setting('PORT', 'http'), /FINGERPOST_PORT \(http\.port\) takes a whole number/],
  ['a port out of range', () => setting('PORT', '65536'), /FINGERPOST_PORT \(http\.port\) takes a whole number/],
  [
    'a key with a typo',
    () => ({ keys: { ...keys, secret: `${keys.secret.slice(0, -1)}_` } }),
    /keys\.secret is no well-formed sk_live_ key/,
  ],
  [
    'a key of another kind',
    () => ({ keys: { ...keys, public: keys.secret } }),
    /keys\.public is no well-formed pk_live_ key/,
  ],
  ['a short operator token', () => setting('OPERATOR_TOKEN', 'short'), /operator\.token takes at least 32 characters/],
  [
    'half of a TLS pair',
    () => setting('TLS_CERT_FILE', '/nowhere.pem'),
    /tls\.certFile and tls\.keyFile are set together/,
  ],
  ['plain HTTP for everybody', () => setting('HOST', '0.0.0.0'), /http\.host 0\.0\.0\.0 is not loopback/],
  [
    'a settings file that is none',
    () => setting('CONFIG', '/nowhere.json'),
    /settings file \/nowhere\.json cannot be read/,
  ],
  ['half a format file', () => ({ dataDir: folderWith({ 'format.json': '{"format":1,' }) }), /format\.json is damaged/],
  ['a format file without its fields', () => format({ format: 1 }), /format\.json is damaged/],
  [
    'a newer format',
    () => format({ format: 999, createdAt, partitions: 4 }),
    /has format 999, this build reads up to \d+/,
  ],
  ['a folder of something else', () => ({ dataDir: folderWith({ 'holiday.jpg': 'x' }) }), /is not a data folder/],
]

/** What the process does with a bad setting is the same for each: the others are asked of the reader of settings. */
const isReadHere = (what: string) => DEPTH !== 'long' && SETTINGS.includes(what)

/** The sentence of a refusal, from the settings that `launchServer` gives a process. */
function readingRefusal({ env = {}, keys: given = keys }: ServerOptions): string {
  try {
    readConfig({
      FINGERPOST_PUBLIC_KEY: given.public,
      FINGERPOST_SECRET_KEY: given.secret,
      FINGERPOST_TEST_PUBLIC_KEY: given.testPublic,
      FINGERPOST_TEST_SECRET_KEY: given.testSecret,
      ...env,
    })
    return ''
  } catch (error) {
    if (!(error instanceof BadSetting)) throw error
    return error.message
  }
}

for (const [what, options, expected] of CASES) {
  t.test(`${what} is refused in one sentence`, async (t) => {
    const given = options()
    if (isReadHere(what)) {
      const said = readingRefusal(given)
      t.match(said, expected)
      t.match(said, /^[^\n]+$/, 'one line')
      return
    }
    const before = given.dataDir === undefined ? null : readdirSync(given.dataDir)
    const { code, said } = await refusal(given)
    t.equal(code, 1)
    t.match(said, expected)
    t.match(said, /^fingerpost: [^\n]+$/, 'one line, no stack')
    if (given.dataDir !== undefined) t.same(readdirSync(given.dataDir), before, 'the folder is as it was')
  })
}

t.test('a first start that cannot listen keeps no keys that nobody was shown', async (t) => {
  const dataDir = temporaryFolder()
  const taken = createServer()
  const port = await new Promise<number>((resolve) => {
    taken.listen(0, '127.0.0.1', () => resolve((taken.address() as AddressInfo).port))
  })
  const env = Object.fromEntries(
    ['PUBLIC', 'SECRET', 'TEST_PUBLIC', 'TEST_SECRET'].map((name) => [`FINGERPOST_${name}_KEY`, '']),
  )
  t.match((await refusal({ dataDir, port, env })).said, /is in use/)
  taken.close()
  const second = await startServer({ dataDir, port, env })
  const printed = () => [...second.logs().matchAll(/^ {2}(?:public|secret) (?:live|test) +([ps]k_\w+)$/gm)]
  for (let tries = 0; printed().length < 4 && tries < 50; tries++) await pause(100)
  t.equal(printed().length, 4, 'the next one makes and shows others')
  const secret = printed().find(([, key]) => key?.startsWith('sk_live_'))?.[1]
  const asked = await fetch(`${second.url}/v1/rules`, { headers: { authorization: `Bearer ${secret}` } })
  t.equal(asked.status, 200)
  t.equal(await second.stop(), 0)
  const third = await startServer({ dataDir, port, env })
  t.equal([...third.logs().matchAll(/sk_live_/g)].length, 0, 'once they were shown they stay as they are')
  const again = await fetch(`${third.url}/v1/rules`, { headers: { authorization: `Bearer ${secret}` } })
  t.equal(again.status, 200)
  t.equal(await third.stop(), 0)
})

t.test('a folder or a port in use is refused, and its user goes on', async (t) => {
  const [dataDir, port] = [temporaryFolder(), await freePort()]
  const refused = await refusal({ dataDir, port, env: { FINGERPOST_PROT: '1' } })
  t.equal(refused.code, 1)
  const first = await startServer({ dataDir, port })
  t.pass('the folder of a start that was refused starts once the cause is gone')
  const secondFolder = await refusal({ dataDir: first.dataDir })
  t.equal(secondFolder.code, 1)
  t.match(secondFolder.said, new RegExp(`^fingerpost: .+ is in use by process ${first.pid}: [^\\n]+$`))

  const secondPort = await refusal({ port: first.port })
  t.equal(secondPort.code, 1)
  t.match(secondPort.said, new RegExp(`^fingerpost: 127\\.0\\.0\\.1:${first.port} is in use[^\\n]*$`))

  const answer = await fetch(`${first.url}/v1/identify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${first.keys.public}`, 'content-type': 'application/json' },
    body: '{}',
  })
  t.equal(answer.status, 200, 'the first still identifies')
  t.equal((await fetch(`${first.url}/readyz`)).status, 200)
  t.equal(await first.stop(), 0)
})
