// The commands that work on a whole deployment: rebuild, backup, restore and its drill, seed. They open its ports and start no role;
// data update needs none.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { BadSetting, type Config } from './config.ts'
import { withFreeData } from './ipintel/recommended.ts'
import { systemClock as clock } from './lib/clock.ts'
import { askCommand } from './lib/command-socket.ts'
import { Unavailable } from './lib/failures.ts'
import { FolderInUse } from './lib/folder-lock.ts'
import { createLifetime } from './lib/lifetime.ts'
import type { Logger } from './lib/logger.ts'
import { openRandom } from './lib/random.ts'
import { backup } from './ops/backup.ts'
import type { Manifest } from './ops/backup-format.ts'
import { backupMasterKey, openBackedUpKey, readPassphrase, restoreMasterKey } from './ops/backup-key.ts'
import { markBackup } from './ops/backup-mark.ts'
import { Misuse } from './ops/command-line.ts'
import { exportCorrections } from './ops/corrections.ts'
import { dataUpdate } from './ops/data-update.ts'
import { showDemo } from './ops/demo.ts'
import { findingsJson, findingsText, isWell } from './ops/doctor/finding.ts'
import { findFresh } from './ops/doctor/fresh.ts'
import { findNative, findPresent, findPrivate } from './ops/doctor/local.ts'
import { findReachable } from './ops/doctor/reach.ts'
import { drillConfig } from './ops/drill-config.ts'
import { acceptedFreeData, askConsent, type ConsentNeeds } from './ops/free-data.ts'
import { openProgress, type Progress, whileWaiting } from './ops/progress.ts'
import { rebuild } from './ops/rebuild.ts'
import { checkBackup, restore } from './ops/restore.ts'
import { countRestored, restoreDrill } from './ops/restore-drill.ts'
import { type SeedWanted, seed, seedProblem } from './ops/seed.ts'
import { unlessStopped, untilStopped } from './ops/until-stopped.ts'
import { openEmbedded, type Ports } from './ports.ts'
import { countUnreadable } from './records/secrets.ts'
import { consoleUrl, ipSettings, masterKeyFile, serviceUrl } from './role-settings.ts'

type Opened = Ports & { readonly clock: typeof clock; readonly progress: Progress }

const progress = () => openProgress(process.stderr, clock)

const NEVER = new AbortController().signal

/** Opens everything, works, and lets go of everything, whatever comes. Once `stopping` aborts it fails with its reason. */
async function withPorts<T>(
  config: Config,
  logger: Logger,
  work: (opened: Opened) => Promise<T>,
  stopping: AbortSignal = NEVER,
): Promise<T> {
  stopping.throwIfAborted()
  const lifetime = createLifetime(logger, stopping)
  try {
    const open = config.isCluster ? (await import('./ports-cluster.ts')).openCluster : openEmbedded
    const ports = await open(config, logger, lifetime)
    await ports.startHistory(lifetime.stopping)
    stopping.throwIfAborted()
    return await work(untilStopped({ ...ports, clock, progress: progress() }, stopping))
  } finally {
    await lifetime.settle()
    await lifetime.close()
  }
}

/** Restores the kv after it was lost. Embedded, the server must not run; in a cluster it may. */
export function runRebuild(config: Config, logger: Logger, untilSignalled: () => AbortSignal): Promise<string> {
  return withPorts(config, logger, async (opened) => {
    const done = await rebuild({ ...opened, stopping: untilSignalled() })
    const configuration = done.commands === null ? 'configuration was there' : `${done.commands} commands applied`
    const events = `${done.adoptable} events in the log to adopt`
    const rows = `${done.inserted} rows inserted, ${done.doubled} found twice`
    return `rebuilt: ${configuration}, ${done.partitions} partitions, ${done.visitors} visitors, ${events}, ${rows}`
  })
}

/** Writes a backup into `dir`, a new or empty folder, also while the deployment works. */
export async function runBackup(
  config: Config,
  logger: Logger,
  dir: string,
  wanted: BackupWanted,
  stopping: AbortSignal = NEVER,
): Promise<string> {
  const passphrase = passphraseOf(config)
  if (wanted.withMasterKey && passphrase === '') {
    throw new BadSetting('--with-master-key needs backup.passphrase or backup.passphraseFile')
  }
  const { product } = wanted
  const { files, partitions, createdAt } = await withPorts(
    config,
    logger,
    (opened) => backup({ ...opened, product }, dir),
    stopping,
  ).catch(async (error) => {
    if (!(error instanceof FolderInUse)) throw error
    const asked = unlessStopped(askCommand(config['data.dir'], { backup: resolve(dir) }), stopping)
    return (await whileWaiting(progress(), clock, 'the running server writes the backup', asked)) as Manifest
  })
  if (wanted.withMasterKey) await backupMasterKey(dir, masterKeyFile(config), passphrase, openRandom())
  if (!config.isCluster) markBackup(config['data.dir'], createdAt)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const size = `${files.length} files, ${Math.ceil(bytes / 1e6)} MB, ${partitions.length} partitions`
  const key = wanted.withMasterKey
    ? 'with the master key'
    : `without the master key: keep a copy of ${masterKeyFile(config)}`
  return `backed up: ${size}, in ${dir}, ${key}`
}

export interface BackupWanted {
  /** Of this build. */
  readonly product: string
  readonly withMasterKey: boolean
}

const passphraseOf = (config: Config): string =>
  readPassphrase(config['backup.passphrase'], config['backup.passphraseFile'])

/** A link that opens the demo page of the server that runs on this data folder. */
export async function runDemo(config: Config): Promise<string> {
  if (config.isCluster)
    throw new BadSetting('demo is for one process on embedded storage; in a cluster there is /demo/?key=pk_test_…')
  const link = await askCommand(config['data.dir'], { demo: true })
  if (typeof link !== 'string') throw new Unavailable('the server that runs has no demo page')
  return link
}

/** Restores a backup that was checked; `key` is what `openBackedUpKey` gave. */
function restoreFrom(
  config: Config,
  logger: Logger,
  dir: string,
  manifest: Manifest,
  key: BackedUpKey,
  stopping: AbortSignal = NEVER,
) {
  const keyFile = masterKeyFile(config)
  const wanted = { ...config, partitions: manifest.partitions.length }
  const work = async (opened: Opened) => {
    // Before anything is written: where another key lies, this is another deployment's place.
    if (key instanceof Uint8Array) restoreMasterKey(keyFile, key, openRandom())
    const restored = await restore(opened, dir, manifest)
    return { ...restored, unreadable: await countUnreadable(opened.kv, keyFile, openRandom()) }
  }
  return withPorts(wanted, logger, work, stopping)
}
type BackedUpKey = ReturnType<typeof openBackedUpKey>

/** Restores a backup into a deployment that holds nothing. */
export async function runRestore(config: Config, logger: Logger, dir: string): Promise<string> {
  const manifest = await checkBackup(dir, progress())
  const key = openBackedUpKey(dir, passphraseOf(config))
  const { commands, rows, undecided, unreadable } = await restoreFrom(config, logger, dir, manifest, key)
  const done = `restored: ${commands} commands, ${rows} events, ${undecided} identifications to decide`
  if (unreadable === 0) return done
  const how =
    key === 'closed'
      ? 'the backup has the key, for whoever has its passphrase; else'
      : `bring the key of the deployment to ${masterKeyFile(config)}, or`
  return `${done}; ${unreadable} secrets cannot be opened without their master key: ${how} start with --accept-lost-secrets`
}

/** Starts a server of these settings in this process. */
export type StartCopy = (config: Config, logger: Logger) => Promise<{ readonly port: number; stop(): Promise<void> }>

export interface DrillWanted extends BackupWanted {
  /** Empty: a backup is made first. */
  readonly backupDir: string
  /** Empty: the folder of temporary files. */
  readonly inDir: string
}

/** Restores a backup into a folder of its own, runs it there, counts, and throws it away, also when it is told to stop. */
export async function runRestoreDrill(
  config: Config,
  logger: Logger,
  wanted: DrillWanted,
  start: StartCopy,
  stopping: AbortSignal,
): Promise<string> {
  const dir = await mkdtemp(join(wanted.inDir || tmpdir(), 'fingerpost-drill-'))
  try {
    const backupDir = wanted.backupDir || join(dir, 'backup')
    if (wanted.backupDir === '') await runBackup(config, logger, backupDir, wanted, stopping)
    const manifest = await checkBackup(backupDir, progress(), stopping)
    const key = openBackedUpKey(backupDir, passphraseOf(config))
    const operatorToken = Buffer.from(openRandom()(32)).toString('hex')
    const copy = drillConfig(config, {
      operatorToken,
      dir: join(dir, 'data'),
      partitions: manifest.partitions.length,
      keyFile: key instanceof Uint8Array ? '' : masterKeyFile(config),
    })
    const quiet = { ...logger, debug: () => undefined, info: () => undefined }
    const needs = {
      clock,
      stopping,
      operatorToken,
      restore: () => restoreFrom(copy, quiet, backupDir, manifest, key, stopping),
      count: () => withPorts(copy, quiet, countRestored, stopping),
      start: () => start(copy, quiet),
    }
    return await restoreDrill(needs, manifest)
  } finally {
    await rm(dir, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** Writes pairs that were labelled by hand, a line each, to `write`. Embedded, the server must not run; in a cluster it may. */
export function runCorrectionsExport(config: Config, logger: Logger, write: (line: string) => void): Promise<string> {
  return withPorts(config, logger, async ({ kv, partitions }) => {
    let pairs = 0
    for await (const pair of exportCorrections(kv, partitions)) {
      write(JSON.stringify(pair))
      pairs++
    }
    return `exported: ${pairs} pairs`
  })
}

/** Adds a made-up history. Embedded, the server must not run; in a cluster it may. */
export async function runSeed(config: Config, logger: Logger, wanted: SeedWanted): Promise<string> {
  const retentionDays = config['retention.eventsDays']
  // Before anything is opened: a command line that cannot be leaves no data folder behind.
  const problem = seedProblem(wanted, { nowMs: clock.now(), retentionDays })
  if (problem !== null) throw new Misuse(problem)
  return withPorts(config, logger, async (opened) => {
    const { events, visitors, seconds } = await seed({ ...opened, random: openRandom(), retentionDays }, wanted)
    if (seconds === 0) return 'seeded: this history was there already, nothing added'
    return `seeded: ${events} events of ${visitors} visitors in ${seconds.toFixed(1)} s`
  })
}

/** Fills the test environment of the server that runs. */
export async function runSeedDemo(config: Config): Promise<string> {
  const key = config['keys.testSecret']
  if (key === '') {
    throw new BadSetting('FINGERPOST_TEST_SECRET_KEY must hold the secret test key that the first start printed')
  }
  const service = serviceUrl(config, config['http.port'])
  const made = await showDemo({ clock, random: openRandom(), progress: progress() }, { service, key })
  const { visits, visitors, labelled, seconds } = made
  const verdicts = Object.entries(made.verdicts).map(([verdict, count]) => `${count} ${verdict}`)
  return [
    `shown: ${visits} visits of ${visitors} visitors in ${seconds.toFixed(1)} s (${verdicts.join(', ')}), ${labelled} labelled`,
    `Look at it in the console, with Test chosen at the top: ${consoleUrl(config, config['http.port'])}/console/`,
  ].join('\n')
}

export interface DataWanted extends Pick<ConsentNeeds, 'accepts' | 'ask' | 'say'> {
  /** Free data by name, besides what the settings name. */
  readonly isRecommended: boolean
}

/** Refreshes the data about addresses. Needs no port: servers that run find what is new by themselves. */
export async function runDataUpdate(config: Config, wanted: DataWanted): Promise<string> {
  const { places, ...settings } = ipSettings(config)
  const { dir } = settings
  if (wanted.isRecommended && !(await askConsent({ ...wanted, dir, nowMs: clock.now() }))) return 'nothing was fetched'
  const all = withFreeData(places, acceptedFreeData(dir))
  const { updated, unchanged } = await dataUpdate({ ...settings, places: all, clock, progress: progress() })
  return `updated: ${updated.join(', ') || 'nothing'}${unchanged.length > 0 ? `; not changed: ${unchanged.join(', ')}` : ''}`
}

export interface DoctorWanted {
  readonly settingsFile: string
  readonly backupDir: string
  readonly asJson: boolean
}

/** Looks at an installation; `ok` is false when something must be mended. */
export async function runDoctor(config: Config, wanted: DoctorWanted): Promise<{ text: string; ok: boolean }> {
  const findings = [
    ...(await findNative(config)),
    ...findPresent(config),
    ...findPrivate(config, wanted.settingsFile),
    ...(await findReachable(config, clock)),
    ...(await findFresh(config, clock.now(), wanted.backupDir)),
  ]
  return { text: (wanted.asJson ? findingsJson : findingsText)(findings), ok: isWell(findings) }
}
