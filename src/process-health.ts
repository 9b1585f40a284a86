// What this process tells of itself: what has started, whether it can accept, what it is, and its metrics with those of its shards.

import { ipAdvice, proxyAdvice } from './advice.ts'
import type { Advice, HealthNeeds } from './api/health.ts'
import type { Config } from './config.ts'
import type { Driver } from './http/server.ts'
import type { Capacity } from './ingress/capacity.ts'
import type { IpFeed } from './ipintel/feed.ts'
import type { Lifetime } from './lib/lifetime.ts'
import type { Logger } from './lib/logger.ts'
import type { Metrics } from './lib/metrics.ts'
import { lastBackup } from './ops/backup-mark.ts'
import type { Ports } from './ports.ts'
import type { HistoryWatch } from './reads/history-watch.ts'
import { countConfiguration } from './records/configuration-counts.ts'
import type { KeyDirectory } from './records/key-directory.ts'
import type { Shards } from './shards/shards.ts'
import type { Sinks } from './sink/role.ts'

/** What runs in the process; null is what it does not have. */
export interface HealthParts {
  readonly config: Config
  readonly version: string
  readonly driver: Driver
  readonly ports: Ports
  readonly metrics: Metrics
  readonly lifetime: Lifetime
  readonly capacity: Capacity
  readonly history: HistoryWatch
  readonly isDraining: () => boolean
  readonly directory: KeyDirectory | null
  readonly shards: Shards | null
  readonly sinks: Sinks | null
  readonly backlog: { observe(): Promise<void> } | null
  readonly ip: IpFeed | null
}

export interface StartedNeeds extends Pick<HealthParts, 'config' | 'driver' | 'lifetime'> {
  readonly build: { readonly version: string; readonly commit: string }
  readonly partitions: number
  readonly kv: Ports['kv']
  readonly logger: Logger
}

/** One line. Nobody waits for it: a deployment may have thousands of workspaces to count in. */
export function tellStarted({ config, build, driver, partitions, kv, logger, lifetime }: StartedNeeds): void {
  const { shards, 'deployment.mode': mode } = config
  const running = { ...build, node: process.version, driver, mode, roles: [...config.roles], partitions, shards }
  countConfiguration(kv).then(
    (counts) => logger.info({ ...running, ...counts }, 'the server has started'),
    (error) => {
      if (!lifetime.stopping.aborted) logger.warn({ ...running, error }, 'the server has started and was not counted')
    },
  )
}

/** Each thing once, whichever shard noticed it. */
function adviceOf({ ip, shards }: Pick<HealthParts, 'ip' | 'shards'>): Advice[] {
  const proxy = shards?.status().find((status) => status.proxy !== null)?.proxy ?? null
  return [...ipAdvice(ip?.state() ?? null), ...(proxy === null ? [] : [proxyAdvice(proxy)])]
}

/** A mark that nobody can read is the doctor's to tell of: the other figures are told all the same. */
function lastBackupSeconds(dataDir: string): number {
  try {
    const at = lastBackup(dataDir)
    return at === null ? 0 : Date.parse(at) / 1_000
  } catch {
    return 0
  }
}

export function processHealth(parts: HealthParts): HealthNeeds {
  const { config, driver, ports, metrics, lifetime, capacity, history, directory, shards, sinks, backlog, ip } = parts
  const accepts = config.roles.has('ingress')
  return {
    checks: () => ({
      draining: parts.isDraining() ? 'the server is shutting down' : null,
      log: accepts ? capacity.log() : null,
      kv: accepts ? capacity.kv() : null,
      keys: directory === null || directory.isFresh() ? null : 'keys cannot be confirmed',
      engine: shards?.problem() ?? null,
      roles: lifetime.failed().length === 0 ? null : `stopped: ${lifetime.failed().join(', ')}`,
    }),
    info: () => ({
      advice: adviceOf(parts),
      roles: [...config.roles],
      durability: ports.durability,
      partitions: ports.partitions,
      // Nothing that is accepted waits for it.
      kv: { answers: capacity.kvAnswers() },
      clickhouse: { answers: history.answers() },
      disk: { freeBytes: capacity.usage().freeBytes, freeBytesMin: config.freeBytesMin },
      native: driver === 'uws',
      driver,
      version: parts.version,
      ...(ip === null ? {} : { ipSources: ip.state() }),
    }),
    async metrics() {
      const status = shards?.status() ?? []
      await backlog?.observe()
      metrics.oldestUnsunk.set(((await sinks?.oldestUnsunkMs().catch(() => 0)) ?? 0) / 1_000)
      metrics.pending.set(status.reduce((sum, { pending }) => sum + pending, 0))
      metrics.recent.set(status.reduce((sum, { recent }) => sum + recent, 0))
      metrics.lastBackup.set(lastBackupSeconds(config['data.dir']))
      if (ip !== null) metrics.observeIpSources(ip.state())
      return metrics.text((await shards?.samples()) ?? [])
    },
    metricsContentType: metrics.contentType,
  }
}
