// The command line: what there is to know of it, and that what it does not know (2) and what the system refuses (1) is told in one line.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { isSystemFailure, reasonOf } from '../../src/lib/plain.ts'
import { COMMANDS, readArguments } from '../../src/ops/command-line.ts'
import { settingsText } from '../../src/ops/settings-text.ts'
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

t.test('what the command line does not know is refused in one line, with 2', async (t) => {
  for (const [args, said] of [
    [['--foo'], /'--foo'/],
    [['--role', 'api'], /--role belongs to a command/],
    [['start', '--roles', 'api'], /'--roles'/],
    [['start', 'foo'], /start takes no foo/],
    [['start', '--json'], /start has no option --json/],
    [['nonsense', '--help'], /unknown command: nonsense/],
    [['nonsense', '--version'], /unknown command: nonsense/],
    [['help', 'nonsense'], /unknown command: nonsense/],
    [['help', 'settings', 'nonsense'], /no section of settings: nonsense/],
    [['keygen', '--json=1'], /'--json' does not take/],
    [['backup'], /backup needs FOLDER/],
    [['console', 'reset'], /console reset needs EMAIL/],
    [['backup', 'a', 'b'], /backup takes no b/],
    [['data'], /there is fingerpost data update/],
    [['data', 'update', 'all'], /data update takes no all/],
    [['constructor'], /unknown command: constructor/],
    [['begin'], /unknown command: begin/],
  ] as const) {
    t.throws(() => readArguments(args), { name: 'Misuse', message: said }, args.join(' '))
  }
  for (const args of [
    ['start', 'foo'],
    ['nonsense', '--help'],
    ['seed', '--env', 'both'],
  ]) {
    const { code, out, err } = await run(args)
    t.equal(code, 2)
    t.equal(out, '')
    t.match(err, /^fingerpost: [^\n]+\n$/, 'one line, no stack')
  }
})

t.test('every command has a page with its options and their defaults', async (t) => {
  const pageOf = (...args: string[]) => {
    const asked = readArguments(args)
    if (asked.kind !== 'help') throw new Error(`${args.join(' ')} is no help`)
    return asked.text
  }
  const overview = pageOf('help')
  for (const [name, { sentence, ...command }] of Object.entries(COMMANDS)) {
    t.match(overview, sentence, name)
    const page = pageOf('help', ...name.split(' '))
    t.equal(pageOf(...name.split(' '), '--help'), page)
    t.match(page, `usage: fingerpost ${name}`)
    const options: Readonly<Record<string, { sentence: string; standard?: string }>> =
      'options' in command ? command.options : {}
    for (const [option, { sentence: says, standard }] of Object.entries(options)) {
      t.ok(page.includes(`--${option}`) && page.includes(says), `${name} --${option}`)
      if (standard !== undefined) t.ok(page.includes(`${says} Default ${standard}.`), `default of ${name} --${option}`)
    }
  }
  t.equal(pageOf(), overview)
  t.equal(pageOf('help', 'settings'), settingsText())
  t.equal(pageOf('help', 'settings', 'tls'), settingsText('tls'))
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
