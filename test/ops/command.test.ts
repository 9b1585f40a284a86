// The command line: what it does not know and what the system refuses is told in one line, and ends with 1.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { isSystemFailure, reasonOf } from '../../src/lib/plain.ts'
import { cleanUp, temporaryFolder } from '../helpers/server.ts'

t.teardown(cleanUp)
const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const NOBODY = 65_534

interface Said {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** `uid`: whose process it is, where this one may choose. */
async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}, uid?: number): Promise<Said> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { PATH: process.env.PATH, FINGERPOST_PORT: '0', FINGERPOST_LOG_LEVEL: 'silent', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid === undefined ? {} : { uid }),
  })
  const said = { out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    said.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    said.err += chunk
  })
  const [code] = await once(child, 'close')
  return { code, ...said }
}

t.test('--version tells the version', async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  for (const option of ['--version', '-v']) {
    const { code, out, err } = await run([option])
    t.equal(code, 0)
    t.match(out, new RegExp(`^fingerpost ${version.replaceAll('.', '\\.')}( \\(\\w+\\))?\n$`))
    t.equal(err, '')
  }
})

t.test('what the command line does not know is refused in one line', async (t) => {
  for (const [args, said] of [
    [['--foo'], /'--foo'/],
    [['start', '--roles', 'api'], /'--roles'/],
    [['keygen', '--json=1'], /'--json' does not take/],
    [['begin'], /unknown command: begin/],
  ] as const) {
    const { code, err } = await run(args)
    t.equal(code, 1)
    t.match(err, said)
    t.match(err, /^fingerpost: [^\n]+\n$/, 'one line, no stack')
  }
})

t.test('a data folder that the system refuses is told in one line', async (t) => {
  const dir = temporaryFolder()
  const file = join(dir, 'file')
  writeFileSync(file, '')
  const locked = join(dir, 'locked')
  mkdirSync(locked)
  chmodSync(locked, 0o555)
  chmodSync(dir, 0o755)
  const isRoot = process.getuid?.() === 0
  for (const [dataDir, said, uid] of [
    [file, /EEXIST/],
    [join(file, 'below'), /ENOTDIR/],
    ['/proc/nothing/x', /ENOENT.*\/proc\/nothing/],
    [join(locked, 'data'), /EACCES/, isRoot ? NOBODY : undefined],
  ] as const) {
    const { code, err } = await run(['start'], { FINGERPOST_DATA_DIR: dataDir }, uid)
    t.equal(code, 1, dataDir)
    t.match(err, said)
    t.match(err, /^fingerpost: [^\n]+\n$/, 'one line, no stack')
  }
})

t.test('a full disk is a failure of the system, however it is told, and a mistake of ours is not', async (t) => {
  t.ok(isSystemFailure(Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC', syscall: 'write' })))
  t.ok(isSystemFailure(Object.assign(new Error('No space left on device'), { code: 28 })))
  t.notOk(isSystemFailure(new TypeError('x is not a function')))
  t.notOk(isSystemFailure(Object.assign(new Error('bad'), { code: 'ERR_INVALID_ARG_TYPE' })))
})

t.test('the reason of a failure is what it says with what was behind it, each once and in one line', async (t) => {
  const refused = new Error('connect ECONNREFUSED 10.0.0.1:4222')
  t.equal(reasonOf(new Error('NATS is away', { cause: refused })), `NATS is away: ${refused.message}`)
  const both = new AggregateError([refused, new Error('other\nlines')])
  t.equal(reasonOf(new Error('away', { cause: both })), `away: ${refused.message}: other lines`)
  t.equal(reasonOf(new Error('a: b', { cause: new Error('b') })), 'a: b')
  t.equal(reasonOf('text'), 'text')
})
