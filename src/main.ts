#!/usr/bin/env node
// The command: argv and environment in, roles started, signals obeyed, an exit code out.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { setFlagsFromString } from 'node:v8'
import type { BuildInfo } from './app.ts'
import { BadSetting, type Config, PROCESS_ROLES, type ProcessRole, readConfig, warnings } from './config.ts'
import { systemClock } from './lib/clock.ts'
import { parseDatetime } from './lib/datetime.ts'
import { Told, Unavailable } from './lib/failures.ts'
import { isLmdbRejection } from './lib/lmdb-failures.ts'
import { type Logger, openLogger } from './lib/logger.ts'
import { isSystemFailure, reasonOf } from './lib/plain.ts'
import { within } from './lib/within.ts'
import { type CommandName, Misuse, type ParsedCommandLine, readArguments } from './ops/command-line.ts'
import { keygen } from './ops/keygen.ts'
import type { SeedWanted } from './ops/seed.ts'
import { welcomeText } from './ops/welcome.ts'
import { listensOn, serviceUrl } from './role-settings.ts'
import { startApp } from './server.ts'

/** Of a start that is no longer wanted. */
const OPENING_MS_MAX = 4_000

function readBuild(): BuildInfo {
  const info = JSON.parse(readFileSync(new URL('../build-info.json', import.meta.url), 'utf8')) as Partial<BuildInfo>
  return { version: info.version ?? 'unknown', commit: info.commit ?? 'unknown' }
}

function versionText(): string {
  const { version, commit } = readBuild()
  return `fingerpost ${version}${commit === 'unknown' ? '' : ` (${commit})`}`
}

/** One line; only what nobody foresaw is shown with its stack. */
function tellFailure(error: unknown): string {
  if (error instanceof Told) return `fingerpost: ${error.message}`
  if (error instanceof Unavailable || isSystemFailure(error)) return `fingerpost: ${reasonOf(error)}`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** lmdb rejects a promise of its own beside the one it gave us when a commit fails; any other ends the process. */
function ignoreLmdbRejections(tell: (reason: unknown) => void = (reason) => console.error(reason)): void {
  process.on('unhandledRejection', (reason) => {
    if (isLmdbRejection(reason)) return
    tell(reason)
    process.exit(1)
  })
}

/** What this process makes is for its user alone, files of libraries included. */
const beSecretive = () => void process.umask(0o077)

/**
 * Old generations hold little but caches: they may grow to five times what lives in them, below `engine.heapMbMax`, before they are collected (D200).
 * What is allocated in them at once, since most of its kind once lived longer, is garbage there as soon as less is under way (D238).
 */
function tuneCollector(): void {
  setFlagsFromString('--heap-growing-percent=400')
  setFlagsFromString('--no-allocation-site-pretenuring')
}

async function start(roleList: string | undefined, acceptLost: boolean): Promise<void> {
  beSecretive()
  tuneCollector()
  const config = readConfig(process.env, roleList)
  const log = openLogger(config['logging.level'])
  for (const warning of warnings(config)) log.warn({}, warning)
  ignoreLmdbRejections((reason) => log.error({ error: reason }, 'a promise was rejected and nobody looked'))

  const unwanted = new AbortController()
  const started = startApp(config, readBuild(), log, unwanted.signal, acceptLost)
  let stopping = false
  async function stop(signal: string): Promise<void> {
    // A group signal arrives twice, from the terminal and through npm: the second one must not cut the drain short.
    if (stopping) return
    stopping = true
    log.info({ signal }, 'stopping')
    unwanted.abort()
    const opened = started.catch(() => null)
    // What waits for servers has accepted nothing, and one of them may never answer. One machine has none to wait for.
    const app = await (config.isCluster ? within(systemClock, OPENING_MS_MAX, opened) : opened)
    await app?.stop()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))

  const app = await started.catch((error) => {
    if (!stopping) throw error
  })
  if (app === undefined) return
  const at = { listensOn: listensOn(config, app.port), url: serviceUrl(config, app.port) }
  const { generatedKeys: keys, setupLink, demoLink, advice } = app
  const welcome = welcomeText({ ...at, keys, setupLink, demoLink, advice })
  await new Promise((resolve) => process.stdout.write(`${welcome}\n\n`, resolve))
  await app.shown()
}

// Loaded only where they are used: they would lengthen every start of a server.
const loadCommands = () => import('./commands.ts')
type Commands = Awaited<ReturnType<typeof loadCommands>>

/** Runs a command on the deployment the settings name; says in one line what it did. */
async function maintain(work: (run: Commands, config: Config, log: Logger) => Promise<string>): Promise<void> {
  beSecretive()
  const config = readConfig(process.env)
  ignoreLmdbRejections()
  process.stdout.write(`${await work(await loadCommands(), config, openLogger(config['logging.level']))}\n`)
  process.exit(0)
}

/** For a command that has something to clear away: aborts with `said` when the process is told to end. A signal often comes twice. */
function untilSignalled(said: string): AbortSignal {
  const stopping = new AbortController()
  const stop = () => stopping.abort(new Told(said))
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, stop)
  return stopping.signal
}

/** The lines are all that goes to stdout. */
async function exportCorrections(): Promise<void> {
  beSecretive()
  const config = readConfig(process.env)
  ignoreLmdbRejections()
  const { runCorrectionsExport } = await loadCommands()
  const write = (line: string) => void process.stdout.write(`${line}\n`)
  process.stderr.write(`${await runCorrectionsExport(config, openLogger(config['logging.level']), write)}\n`)
  process.exitCode = 0
}

async function examine({ text, has }: Run): Promise<void> {
  const config = readConfig(process.env)
  ignoreLmdbRejections()
  const { runDoctor } = await loadCommands()
  const settingsFile = process.env.FINGERPOST_CONFIG ?? ''
  const said = await runDoctor(config, { settingsFile, backupDir: text('backup'), asJson: has('json') })
  process.stdout.write(`${said.text}\n`)
  process.exitCode = said.ok ? 0 : 1
}

type Run = Extract<ParsedCommandLine, { kind: 'run' }>

/** Undefined where none are given: the settings say which. */
function rolesWanted({ text }: Run): string | undefined {
  const roles = text('role')
  if (roles === '') return undefined
  const isKnown = roles === 'all' || roles.split(',').every((role) => PROCESS_ROLES.includes(role as ProcessRole))
  if (!isKnown) throw new Misuse(`--role takes ${PROCESS_ROLES.join(', ')}, comma-separated, or all, not ${roles}`)
  return roles
}

function seedWanted({ text }: Run): SeedWanted {
  const env = text('env')
  if (env !== 'live' && env !== 'test') throw new Misuse('--env takes live or test')
  const seed = text('seed')
  if (!/^[\w.-]{1,64}$/.test(seed)) throw new Misuse('--seed takes up to 64 letters, digits, _, . and -')
  const counts = { events: Number(text('events')), days: Number(text('days')) }
  const wanted = { ...counts, seed, workspace: text('workspace'), env } as const
  if (text('until') === '') return wanted
  const at = parseDatetime(text('until'))
  if (at === null) throw new Misuse('--until takes an RFC 3339 time')
  return { ...wanted, until: at }
}

async function listenToWebhooks({ text }: Run): Promise<void> {
  const config = readConfig(process.env)
  const key = config['keys.testSecret']
  const [forward, shape] = [text('forward'), text('shape')]
  if (!URL.canParse(forward)) throw new Misuse('--forward takes the address of a receiver')
  if (shape !== 'A' && shape !== 'B') throw new Misuse('--shape takes A or B')
  if (key === '') throw new BadSetting('FINGERPOST_TEST_SECRET_KEY must hold a secret key of the test environment')
  const service = text('url') || config['http.publicUrl'] || `http://localhost:${config['http.port']}`
  if (!URL.canParse(service)) throw new Misuse('--url takes the address of the service')
  const stopping = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopping.abort())
  const say = (line: string) => process.stdout.write(`${line}\n`)
  const needs = { clock: systemClock, random: randomBytes, version: readBuild().version, say }
  const { listen } = await import('./ops/listen.ts')
  await listen(needs, { service, key, forward, shape, secret: text('secret') || null }, stopping.signal)
}

function maintainDemo({ given }: Run): Promise<void> {
  const other = given.find((option) => option !== 'demo')
  if (other !== undefined)
    throw new Misuse(`--demo takes no --${other}: it is a week of visits in the test environment`)
  return maintain((run, config) => run.runSeedDemo(config))
}

async function printConsoleLink(kind: 'link' | 'reset', email: string): Promise<void> {
  const config = readConfig(process.env)
  const { consoleLink, consoleReset } = await import('./ops/console-link.ts')
  const now = systemClock.now()
  const link = kind === 'link' ? consoleLink(config, randomBytes) : consoleReset(config, randomBytes, now, email)
  process.stdout.write(`${link}\n`)
}

async function askOnTerminal(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  // An end of the input is no answer.
  const ended = once(terminal, 'close').then(() => '')
  const answer = await Promise.race([terminal.question(question).catch(() => ''), ended])
  terminal.close()
  return /^y(es)?$/i.test(answer.trim())
}

function updateData({ has }: Run): Promise<void> {
  const [isRecommended, accepts] = [has('recommended'), has('accept-licences') || has('yes')]
  if (accepts && !isRecommended) throw new Misuse('--accept-licences and --yes belong to --recommended')
  const ask = process.stdin.isTTY === true ? askOnTerminal : null
  const say = (text: string) => void process.stdout.write(`${text}\n`)
  return maintain((run, config) => run.runDataUpdate(config, { isRecommended, accepts, ask, say }))
}

/** Each command by its name. */
const RUNS: Readonly<Record<CommandName, (asked: Run) => Promise<void>>> = {
  start: async (asked) => start(rolesWanted(asked), asked.has('accept-lost-secrets')),
  seed: (asked) => {
    if (asked.has('demo')) return maintainDemo(asked)
    const wanted = seedWanted(asked)
    return maintain((run, config, log) => run.runSeed(config, log, wanted))
  },
  backup: ({ operand, has }) => {
    const wanted = { product: readBuild().version, withMasterKey: has('with-master-key') }
    return maintain((run, config, log) => run.runBackup(config, log, operand, wanted))
  },
  restore: ({ operand }) => maintain((run, config, log) => run.runRestore(config, log, operand)),
  'restore-drill': ({ text }) => {
    const { version } = readBuild()
    const withMasterKey = (config: Config) =>
      config['backup.passphrase'] !== '' || config['backup.passphraseFile'] !== ''
    return maintain((run, config, log) => {
      const backup = { product: version, withMasterKey: withMasterKey(config) }
      const wanted = { ...backup, backupDir: text('backup'), inDir: text('in') }
      const stopping = untilSignalled('stopped: the copy is thrown away')
      const startCopy = (copy: Config, quiet: Logger) => startApp(copy, readBuild(), quiet, stopping, false)
      return run.runRestoreDrill(config, log, wanted, startCopy, stopping)
    })
  },
  rebuild: () => {
    const stopped = () => untilSignalled('stopped: run it again to finish')
    return maintain((run, config, log) => run.runRebuild(config, log, stopped))
  },
  'data update': updateData,
  'webhooks listen': listenToWebhooks,
  demo: () => maintain((run, config) => run.runDemo(config)),
  'corrections export': exportCorrections,
  'console link': () => printConsoleLink('link', ''),
  'console reset': ({ operand }) => printConsoleLink('reset', operand),
  doctor: examine,
  keygen: async ({ has }) => void process.stdout.write(`${keygen(has('json'))}\n`),
}

async function main(): Promise<void> {
  const asked = readArguments(process.argv.slice(2))
  if (asked.kind === 'version') process.stdout.write(`${versionText()}\n`)
  else if (asked.kind === 'help') process.stdout.write(`${asked.text}\n`)
  else await RUNS[asked.command](asked)
}

main().catch((error: unknown) => {
  process.stderr.write(`${tellFailure(error)}\n`)
  process.exit(error instanceof Misuse ? 2 : 1)
})
