#!/usr/bin/env node
// The command: argv and environment in, roles started, signals obeyed, an exit code out.

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { BuildInfo } from './app.ts'
import { BadSetting, type Config, readConfig, warnings } from './config.ts'
import { systemClock } from './lib/clock.ts'
import { parseDatetime } from './lib/datetime.ts'
import { Told, Unavailable } from './lib/failures.ts'
import { isLmdbRejection } from './lib/lmdb-failures.ts'
import { type Logger, openLogger } from './lib/logger.ts'
import { isSystemFailure, reasonOf } from './lib/plain.ts'
import { keygen } from './ops/keygen.ts'
import type { SeedWanted } from './ops/seed.ts'
import { helpText } from './ops/settings-text.ts'
import { welcomeText } from './ops/welcome.ts'
import { listensOn, serviceUrl } from './role-settings.ts'
import { startApp } from './server.ts'

const USAGE = `fingerpost start            run every role in one process on embedded storage
fingerpost start --role R   run roles in a cluster: ingress, engine, api, dispatcher, jobs, comma-separated
fingerpost start --accept-lost-secrets
                            give up secrets that the master key does not open: webhooks wait for new ones, and
                            storage tokens of before count as none
fingerpost rebuild          restore the state after it was lost (Redis wiped), from the log and ClickHouse
fingerpost backup FOLDER [--with-master-key]
                            write everything of a deployment into a new folder; the master key only sealed under a passphrase
                            (FINGERPOST_BACKUP_PASSPHRASE or FINGERPOST_BACKUP_PASSPHRASE_FILE, for restore as well)
fingerpost restore FOLDER   make an empty deployment out of a backup
fingerpost data update      fetch and compile the lists about IP addresses that the settings name
fingerpost corrections export
                            print pairs of visitors that were merged or split by hand, as lines of JSON
fingerpost webhooks listen --forward URL [--url SERVICE] [--shape A|B] [--secret S]
                            post what happens in the test environment to a receiver under development; its secret
                            key comes from FINGERPOST_TEST_SECRET_KEY, the service from --url or FINGERPOST_URL
fingerpost console link     print the link that sets the console up
fingerpost console reset EMAIL
                            print a link to choose a new password, for somebody who cannot sign in
fingerpost demo             print a link that opens the demo page of the running server once
fingerpost keygen [--json]  print a well-formed set of four keys
fingerpost --version        print the version
fingerpost seed [--events N] [--days D] [--seed S] [--workspace W] [--env live|test] [--until T]
                            add a made-up history, to try things on; the same seed again adds nothing

Settings come from the environment, or from the JSON file FINGERPOST_CONFIG names:
`

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

async function start(roleList: string | undefined, acceptLost: boolean): Promise<void> {
  beSecretive()
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
    const app = await (config.isCluster
      ? Promise.race([opened, systemClock.sleep(OPENING_MS_MAX).then(() => null)])
      : opened)
    await app?.stop()
    process.exit(0)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))

  const app = await started.catch((error) => {
    if (!stopping) throw error
  })
  if (app === undefined) return
  const at = { listensOn: listensOn(config, app.port), url: serviceUrl(config, app.port) }
  const { generatedKeys: keys, setupLink, demoLink } = app
  process.stdout.write(`${welcomeText({ ...at, keys, setupLink, demoLink })}\n\n`)
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

interface SeedOptions {
  readonly events: string
  readonly days: string
  readonly seed: string
  readonly workspace: string
  readonly env: string
  readonly until?: string | undefined
}

function seedWanted({ events, days, seed, workspace, env, until }: SeedOptions): SeedWanted {
  if (env !== 'live' && env !== 'test') throw new BadSetting('--env takes live or test')
  if (!/^[\w.-]{1,64}$/.test(seed)) throw new BadSetting('--seed takes up to 64 letters, digits, _, . and -')
  const wanted = { events: Number(events), days: Number(days), seed, workspace, env } as const
  if (until === undefined) return wanted
  const at = parseDatetime(until)
  if (at === null) throw new BadSetting('--until takes an RFC 3339 time')
  return { ...wanted, until: at }
}

interface ListenOptions {
  readonly forward?: string | undefined
  readonly url?: string | undefined
  readonly shape: string
  readonly secret?: string | undefined
}

async function listenToWebhooks({ forward = '', url, shape, secret }: ListenOptions): Promise<void> {
  const config = readConfig(process.env)
  const key = config['keys.testSecret']
  if (!URL.canParse(forward)) throw new BadSetting('--forward takes the address of a receiver')
  if (shape !== 'A' && shape !== 'B') throw new BadSetting('--shape takes A or B')
  if (key === '') throw new BadSetting('FINGERPOST_TEST_SECRET_KEY must hold a secret key of the test environment')
  const service = url ?? (config['http.publicUrl'] || `http://localhost:${config['http.port']}`)
  if (!URL.canParse(service)) throw new BadSetting('--url takes the address of the service')
  const stopping = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopping.abort())
  const say = (line: string) => process.stdout.write(`${line}\n`)
  const needs = { clock: systemClock, random: randomBytes, version: readBuild().version, say }
  const { listen } = await import('./ops/listen.ts')
  await listen(needs, { service, key, forward, shape, secret: secret ?? null }, stopping.signal)
}

async function printConsoleLink(kind: string, email: string): Promise<void> {
  const config = readConfig(process.env)
  const { consoleLink, consoleReset } = await import('./ops/console-link.ts')
  if (kind === 'link') process.stdout.write(`${consoleLink(config, randomBytes)}\n`)
  else if (kind === 'reset') process.stdout.write(`${consoleReset(config, randomBytes, systemClock.now(), email)}\n`)
  else throw new BadSetting('console takes link, or reset and an e-mail')
}

const OPTIONS = {
  json: { type: 'boolean', default: false },
  version: { type: 'boolean', short: 'v', default: false },
  help: { type: 'boolean', short: 'h', default: false },
  role: { type: 'string' },
  'with-master-key': { type: 'boolean', default: false },
  'accept-lost-secrets': { type: 'boolean', default: false },
  events: { type: 'string', default: '100000' },
  days: { type: 'string', default: '30' },
  seed: { type: 'string', default: '1' },
  workspace: { type: 'string', default: 'default' },
  env: { type: 'string', default: 'live' },
  until: { type: 'string' },
  forward: { type: 'string' },
  url: { type: 'string' },
  shape: { type: 'string', default: 'B' },
  secret: { type: 'string' },
} as const

function readArguments() {
  try {
    return parseArgs({ allowPositionals: true, options: OPTIONS })
  } catch (error) {
    const [problem = ''] = (error as Error).message.split(/\. |\n/)
    throw new BadSetting(`${problem}; see fingerpost --help`)
  }
}

async function main(): Promise<void> {
  const { positionals, values } = readArguments()
  const [command = 'help', folder = ''] = positionals
  const backupWanted = { product: readBuild().version, withMasterKey: values['with-master-key'] }
  if (['backup', 'restore'].includes(command) && folder === '') throw new BadSetting(`${command} takes a folder`)
  if (values.version) process.stdout.write(`${versionText()}\n`)
  else if (values.help || command === 'help') process.stdout.write(`${USAGE}\n${helpText()}\n`)
  else if (command === 'keygen') process.stdout.write(`${keygen(values.json)}\n`)
  else if (command === 'start') await start(values.role, values['accept-lost-secrets'])
  else if (command === 'rebuild') await maintain((run, config, log) => run.runRebuild(config, log))
  else if (command === 'backup') await maintain((run, config, log) => run.runBackup(config, log, folder, backupWanted))
  else if (command === 'restore') await maintain((run, config, log) => run.runRestore(config, log, folder))
  else if (command === 'seed') await maintain((run, config, log) => run.runSeed(config, log, seedWanted(values)))
  else if (command === 'corrections' && folder === 'export') await exportCorrections()
  else if (command === 'demo') await maintain((run, config) => run.runDemo(config))
  else if (command === 'data' && folder === 'update') await maintain((run, config) => run.runDataUpdate(config))
  else if (command === 'console') await printConsoleLink(folder, positionals[2] ?? '')
  else if (command === 'webhooks' && folder === 'listen') await listenToWebhooks(values)
  else throw new BadSetting(`unknown command: ${command}; see fingerpost --help`)
}

main().catch((error: unknown) => {
  process.stderr.write(`${tellFailure(error)}\n`)
  process.exit(1)
})
