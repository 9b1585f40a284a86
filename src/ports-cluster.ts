// Opens the ports of a process on the servers of a cluster: NATS JetStream, Redis and ClickHouse.

import { openBus } from './bus/open.ts'
import type { Config } from './config.ts'
import { base62 } from './domain/ids.ts'
import { openRedisKv } from './kv/redis.ts'
import { systemClock as clock } from './lib/clock.ts'
import type { Lifetime } from './lib/lifetime.ts'
import type { Logger } from './lib/logger.ts'
import { measured } from './lib/measured.ts'
import type { Metrics } from './lib/metrics.ts'
import { connectNats } from './lib/nats.ts'
import { reasonOf } from './lib/plain.ts'
import { openRandom } from './lib/random.ts'
import { openRepeats } from './lib/repeats.ts'
import { openFallbackLimits } from './limits/fallback.ts'
import { openLimits } from './limits/open.ts'
import { openJetStreamLog } from './log/jetstream.ts'
import { busError, openHistoryPort, type Ports, patiently } from './ports.ts'
import { UNSORTED_COLLECTIONS } from './records/partitions.ts'

const DEPLOYMENT_ID_CHARS = 20

/** Throws what a person can act upon: Unreadable. Waits for servers that do not answer yet. */
export async function openCluster(
  config: Config,
  logger: Logger,
  lifetime: Lifetime,
  metrics: Metrics | null = null,
): Promise<Ports> {
  const random = openRandom()
  const name = `fingerpost ${[...config.roles].join(',')}`
  const { waiting } = lifetime
  const connection = await patiently(
    () =>
      connectNats({
        servers: config['nats.servers'],
        user: config['nats.user'],
        password: config['nats.password'],
        token: config['nats.token'],
        credsFile: config['nats.credsFile'],
        caFile: config['nats.caFile'],
        name,
      }),
    'NATS',
    logger,
    waiting,
  )
  lifetime.onClose(() => connection.close())
  const bus = await openBus({ backend: 'nats', connection, prefix: config['nats.prefix'], onError: busError(logger) })
  lifetime.onClose(() => bus.close())
  const jetStream = await patiently(
    () =>
      openJetStreamLog({
        connection,
        prefix: config['nats.prefix'],
        partitions: config.partitions,
        replicas: config['nats.replicas'],
        bytesMax: config['log.bytesMax'],
        monitorUrls: config['nats.monitorUrls'],
        clock,
        makeDeploymentId: () => base62(DEPLOYMENT_ID_CHARS, random),
        report: (fact) => logger.warn(fact, 'the log on JetStream was mended'),
      }),
    'JetStream',
    logger,
    waiting,
  )
  const { deployment } = jetStream
  const log =
    metrics === null ? jetStream.log : measured(jetStream.log, ['append', 'last'], clock, metrics.dependency('nats'))
  lifetime.onClose(() => log.close())
  const redis = {
    url: config['redis.url'],
    clusterNodes: config['redis.clusterNodes'],
    caFile: config['redis.caFile'],
    name,
    clock,
    onError: openRepeats(clock, (error, times) =>
      logger.warn({ times, why: reasonOf(error) }, 'a connection to Redis failed'),
    ),
  }
  const kvConfig = { redis, prefix: config['redis.prefix'], unsorted: UNSORTED_COLLECTIONS, random }
  const redisKv = await patiently(() => openRedisKv(kvConfig), 'Redis', logger, waiting)
  const kv =
    metrics === null
      ? redisKv
      : measured(redisKv, ['get', 'scan', 'commit', 'position'], clock, metrics.dependency('redis'))
  lifetime.onClose(() => kv.close())
  const limitsConfig = { backend: 'redis', redis, prefix: config['redis.prefix'] } as const
  const limits = openFallbackLimits({
    shared: await patiently(() => openLimits(limitsConfig), 'Redis', logger, waiting),
    local: await openLimits({ backend: 'memory', clock }),
    clock,
  })
  lifetime.onClose(() => limits.close())
  const where = {
    url: config['clickhouse.url'],
    username: config['clickhouse.user'],
    password: config['clickhouse.password'],
    database: config['clickhouse.database'],
    cluster: config['clickhouse.cluster'],
  }
  return {
    ...openHistoryPort(where, config, logger, lifetime, metrics),
    bus,
    limits,
    log,
    kv,
    partitions: deployment.partitions,
    deployment: deployment.id,
    durability: {
      log: await patiently(jetStream.facts, 'JetStream', logger, waiting),
      kv: await patiently(() => kv.facts(), 'Redis', logger, waiting),
    },
    dataDir: null,
  }
}
