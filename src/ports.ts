// The ports a process works on, and opening them embedded in a data folder. ports-cluster.ts opens them on servers.

import type { Bus } from './bus/bus.ts'
import { openBus } from './bus/open.ts'
import type { ClickHouse } from './clickhouse/clickhouse.ts'
import { deferClickHouse } from './clickhouse/deferred.ts'
import { type HistoryPlace, openHistory } from './clickhouse/history.ts'
import type { Config } from './config.ts'
import type { Kv } from './kv/kv.ts'
import { openKv } from './kv/open.ts'
import { systemClock as clock } from './lib/clock.ts'
import { serveCommands } from './lib/command-socket.ts'
import { claimDataFolder, DATA_FORMAT } from './lib/data-folder.ts'
import { Unavailable, Unreadable } from './lib/failures.ts'
import type { Lifetime } from './lib/lifetime.ts'
import type { Logger } from './lib/logger.ts'
import { measured } from './lib/measured.ts'
import type { Metrics } from './lib/metrics.ts'
import { reasonOf } from './lib/plain.ts'
import type { Limits } from './limits/limits.ts'
import { openLimits } from './limits/open.ts'
import type { Log } from './log/log.ts'
import { openLog } from './log/open.ts'
import { openProgress } from './ops/progress.ts'
import { UNSORTED_COLLECTIONS } from './records/partitions.ts'

const RETRY_MS = 2_000

export interface Ports {
  readonly log: Log
  readonly kv: Kv
  readonly bus: Bus
  readonly limits: Limits
  /** Fails with Unavailable until `startHistory` has opened it. */
  readonly clickhouse: ClickHouse
  /** Resolves when ClickHouse serves, or when `signal` aborts; fails when it never can. */
  startHistory(signal: AbortSignal): Promise<void>
  readonly partitions: number
  /** Unlike that of any other deployment. */
  readonly deployment: string
  /** What an acknowledgement means here: facts about the servers as they are, not as they were meant to be. */
  readonly durability: Readonly<Record<string, unknown>>
  /** The folder whose disk holds everything, or null. */
  readonly dataDir: string | null
}

/** Throws what a person can act upon: FolderInUse, Unreadable. */
export async function openEmbedded(
  config: Config,
  logger: Logger,
  lifetime: Lifetime,
  metrics: Metrics | null = null,
): Promise<Ports> {
  const groups = (store: 'log' | 'kv') => (writes: number, seconds: number) => {
    metrics?.storeFlush[store].observe(seconds)
    metrics?.storeGroup[store].observe(writes)
  }
  const dataDir = config['data.dir']
  const folder = await claimDataFolder(dataDir, {
    format: DATA_FORMAT,
    partitions: config.partitions,
    clock,
    random: Math.random,
  })
  lifetime.onClose(() => folder.release())
  const { partitions } = folder
  const durability = config['log.durability'] === 'relaxed' ? ('relaxed' as const) : ('fsync' as const)
  const history = openHistoryPort({ dataDir: `${dataDir}/clickhouse` }, config, logger, lifetime, metrics)
  const bus = await openBus({ backend: 'local', onError: busError(logger) })
  lifetime.onClose(() => bus.close())
  const log = await openLog({
    backend: 'lmdb',
    dataDir,
    partitions,
    clock,
    durability,
    bytesMax: config['log.bytesMax'],
    onGroup: groups('log'),
    // They are read by the thread that appends them.
    unread: ['identifications'],
  })
  lifetime.onClose(() => log.close())
  const kv = await openKv({
    backend: 'lmdb',
    dataDir,
    clock,
    durability,
    unsorted: UNSORTED_COLLECTIONS,
    onGroup: groups('kv'),
    onError: (error) => logger.error({ error }, 'sweeping the kv failed'),
  })
  lifetime.onClose(() => kv.close())
  const limits = await openLimits({ backend: 'memory', clock })
  lifetime.onClose(() => limits.close())
  return {
    ...history,
    bus,
    limits,
    log,
    kv,
    partitions,
    deployment: folder.createdAt,
    durability: { log: durability },
    dataDir,
  }
}

/** What commands ask of the process that has the folder: backups, made beside everything else it does, and links to its demo page. */
export async function serveCommandsOf(
  ports: Ports,
  product: string,
  demo: { newLink(): string } | null,
  lifetime: Lifetime,
): Promise<void> {
  const { dataDir } = ports
  if (dataDir === null) return
  const stop = await serveCommands(dataDir, async (command) => {
    const { backup: dir, demo: wanted } = command as { readonly backup?: unknown; readonly demo?: unknown }
    if (wanted === true) return demo?.newLink() ?? null
    if (typeof dir !== 'string') throw new Unreadable('this process knows no such command')
    // Loaded only where it is used: it would lengthen every start.
    const { backup } = await import('./ops/backup.ts')
    return backup({ ...ports, clock, product, progress: openProgress({ write: () => undefined }, clock) }, dir)
  })
  lifetime.onClose(stop)
}

export const busError = (logger: Logger) => (error: unknown) => logger.error({ error }, 'a message of the bus failed')

export function openHistoryPort(
  where: HistoryPlace,
  config: Config,
  logger: Logger,
  lifetime: Lifetime,
  metrics: Metrics | null,
): Pick<Ports, 'clickhouse' | 'startHistory'> {
  const historyConfig = { ...where, retentionDays: config['retention.eventsDays'] }
  const tokenFirst = !(config.isCluster && config['clickhouse.cluster'] !== '')
  const history = deferClickHouse(() => openHistory(historyConfig, { clock, log: logger }), { clock, tokenFirst })
  lifetime.onClose(() => history.port.close())
  // A server may come later; an engine of our own that does not start never will.
  const startHistory = config.isCluster
    ? (signal: AbortSignal) =>
        patiently(() => history.start(), 'ClickHouse', logger, signal).catch((error) => {
          if (!signal.aborted) throw error
        })
    : () => history.start()
  const clickhouse =
    metrics === null
      ? history.port
      : measured(history.port, ['insert', 'query', 'command', 'patch'], clock, metrics.dependency('clickhouse'))
  return { clickhouse, startHistory }
}

/** Of tries that failed, those that are told: fewer and fewer, then one a minute. */
const isTold = (tries: number): boolean => Number.isInteger(Math.log2(tries)) || tries % 30 === 0

/**
 * For calls to servers that have answered already: in a cluster one may fail a call all the same, and is waited for like one that does not answer
 * yet. One machine has none to wait for.
 */
export function insisting(
  isCluster: boolean,
  logger: Logger,
  signal: AbortSignal,
): <T>(call: () => Promise<T>) => Promise<T> {
  return (call) => (isCluster ? patiently(call, 'a server', logger, signal) : call())
}

/** Repeats what fails only because a server does not answer yet: every order of starting works. */
export async function patiently<T>(
  open: () => Promise<T>,
  what: string,
  logger: Logger,
  signal: AbortSignal,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof Unavailable) || signal.aborted) throw error
      if (isTold(tries)) logger.warn({ tries, why: reasonOf(error) }, `waiting for ${what}`)
      await clock.sleep(RETRY_MS, signal)
    }
  }
}
