// The table of settings: name, kind, default and a sentence each. config.ts makes the Config from it.

import { CONSOLE_SETTINGS } from './api/console/settings.ts'
import { HTTP_SETTINGS } from './api/settings.ts'
import { WEBHOOK_SETTINGS } from './dispatcher/settings.ts'
import { ENGINE_SETTINGS } from './engine/settings.ts'
import { INGRESS_SETTINGS } from './ingress/settings.ts'
import { IP_SETTINGS } from './ipintel/settings.ts'

export type Kind = 'text' | 'integer' | 'flag' | 'list'
export type Value = string | number | boolean | readonly string[]

export interface Setting {
  readonly name: string
  readonly kind: Kind
  readonly standard: Value
  readonly sentence: string
  readonly min?: number
  readonly max?: number
  readonly oneOf?: readonly string[]
  /** Shorter environment name, where decisions or custom give one. */
  readonly alias?: string
}

const DAY_SECONDS = 86_400

export const SETTINGS = [
  {
    name: 'deployment.mode',
    kind: 'text',
    standard: 'embedded',
    oneOf: ['embedded', 'cluster'],
    sentence: 'embedded: one process, everything in data.dir. cluster: roles on NATS JetStream, Redis and ClickHouse.',
  },
  {
    name: 'process.roles',
    kind: 'list',
    standard: ['all'],
    sentence:
      'Roles of this process: ingress, engine, api, dispatcher, jobs, or all; fingerpost start --role wins over it.',
  },
  ...HTTP_SETTINGS,
  ...CONSOLE_SETTINGS,
  {
    name: 'tls.certFile',
    kind: 'text',
    standard: '',
    sentence: 'PEM certificate chain; with tls.keyFile the server speaks HTTPS.',
  },
  { name: 'tls.keyFile', kind: 'text', standard: '', sentence: 'PEM private key of tls.certFile.' },
  {
    name: 'data.dir',
    kind: 'text',
    standard: './data',
    alias: 'DATA_DIR',
    sentence: 'Folder of the embedded log, state and ClickHouse.',
  },
  {
    name: 'data.partitions',
    kind: 'integer',
    standard: 0,
    min: 0,
    max: 256,
    sentence:
      'Partitions of the log, fixed when the deployment is created; 0: one for each shard and at least 4 embedded, 16 in a cluster.',
  },
  {
    name: 'data.freeBytesMin',
    kind: 'integer',
    standard: 536_870_912,
    min: 0,
    sentence: 'Free disk space below which identifications are refused; below 64 MiB they are in any case.',
  },
  {
    name: 'log.durability',
    kind: 'text',
    standard: 'fsync',
    oneOf: ['fsync', 'relaxed'],
    sentence: 'fsync: flushed to disk before the 2xx. relaxed: survives a crash of the process, not of the machine.',
  },
  {
    name: 'log.bytesMax',
    kind: 'integer',
    standard: 34_359_738_368,
    min: 67_108_864,
    sentence: 'Size of the log; identifications are refused from nine tenths of it on.',
  },
  {
    name: 'log.keepSeconds',
    kind: 'integer',
    standard: 300,
    min: 10,
    max: 7 * DAY_SECONDS,
    sentence: 'How long decided events stay in the log at least.',
  },
  {
    name: 'kv.bytesMax',
    kind: 'integer',
    standard: 34_359_738_368,
    min: 1_048_576,
    sentence:
      'Size of the state, as its store counts it, at which identifications are refused; from four fifths on it warns.',
  },
  {
    name: 'nats.servers',
    kind: 'list',
    standard: ['nats://127.0.0.1:4222'],
    sentence: 'NATS servers of a cluster, with JetStream.',
  },
  { name: 'nats.user', kind: 'text', standard: '', sentence: 'User at NATS.' },
  { name: 'nats.password', kind: 'text', standard: '', sentence: 'Password of nats.user.' },
  { name: 'nats.token', kind: 'text', standard: '', sentence: 'Token at NATS, instead of user and password.' },
  { name: 'nats.credsFile', kind: 'text', standard: '', sentence: 'Credentials file (JWT and seed) for NATS.' },
  { name: 'nats.caFile', kind: 'text', standard: '', sentence: 'PEM of the authority of NATS; turns TLS on.' },
  {
    name: 'nats.replicas',
    kind: 'integer',
    standard: 3,
    min: 1,
    max: 5,
    sentence: 'NATS servers that hold each accepted identification.',
  },
  { name: 'nats.prefix', kind: 'text', standard: 'fingerpost', sentence: 'Begins the names of streams and subjects.' },
  {
    name: 'nats.monitorUrls',
    kind: 'list',
    standard: [],
    sentence:
      'Monitoring addresses of the NATS servers, asked at the start whether they flush before they acknowledge.',
  },
  {
    name: 'redis.url',
    kind: 'text',
    standard: 'redis://127.0.0.1:6379',
    sentence: 'Redis of a cluster, rediss:// for TLS; user and password stand before the host.',
  },
  { name: 'redis.caFile', kind: 'text', standard: '', sentence: 'PEM of the authority of Redis, for rediss://.' },
  {
    name: 'redis.clusterNodes',
    kind: 'list',
    standard: [],
    sentence: 'host:port of nodes of a Redis Cluster, instead of the host in redis.url.',
  },
  { name: 'redis.prefix', kind: 'text', standard: 'fingerpost', sentence: 'Begins every key in Redis.' },
  { name: 'clickhouse.url', kind: 'text', standard: 'http://127.0.0.1:8123', sentence: 'ClickHouse of a cluster.' },
  { name: 'clickhouse.user', kind: 'text', standard: 'default', sentence: 'User at ClickHouse.' },
  { name: 'clickhouse.password', kind: 'text', standard: '', sentence: 'Password of clickhouse.user.' },
  { name: 'clickhouse.database', kind: 'text', standard: 'fingerpost', sentence: 'Database of the tables.' },
  {
    name: 'clickhouse.cluster',
    kind: 'text',
    standard: '',
    sentence: 'ClickHouse cluster whose replicas all hold the tables; empty: one server.',
  },
  ...INGRESS_SETTINGS,
  ...ENGINE_SETTINGS,
  {
    name: 'sink.flushMs',
    kind: 'integer',
    standard: 1_000,
    min: 10,
    max: 60_000,
    sentence: 'How long events gather before they are inserted into ClickHouse.',
  },
  {
    name: 'sink.rowsMax',
    kind: 'integer',
    standard: 10_000,
    min: 1,
    max: 1_000_000,
    sentence: 'Events that are inserted at once without waiting longer.',
  },
  {
    name: 'recent.eventsMax',
    kind: 'integer',
    standard: 1_000_000,
    min: 1_000,
    max: 100_000_000,
    sentence: 'Events not yet in ClickHouse that can be found by id.',
  },
  {
    name: 'retention.eventsDays',
    kind: 'integer',
    standard: 90,
    min: 1,
    max: 3_650,
    sentence: 'Days events are kept.',
  },
  {
    name: 'retention.visitorsDays',
    kind: 'integer',
    standard: 0,
    min: 0,
    max: 3_650,
    sentence:
      'Days after which a visitor nobody saw is forgotten, unless it is on a list or labelled; 0: as long as its events.',
  },
  {
    name: 'retention.fullIpDays',
    kind: 'integer',
    standard: 30,
    min: 1,
    max: 3_650,
    sentence: 'Days full addresses are kept; of older events the network is.',
  },
  {
    name: 'alerts.everySeconds',
    kind: 'integer',
    standard: 15,
    min: 1,
    max: 30,
    sentence: 'How often alerts are compared with their figures.',
  },
  {
    name: 'purge.everySeconds',
    kind: 'integer',
    standard: 43_200,
    min: 1,
    max: 86_400,
    sentence: 'How often what was erased, or has had its time, is removed from the disks of ClickHouse.',
  },
  ...IP_SETTINGS,
  {
    name: 'lists.max',
    kind: 'integer',
    standard: 1_000,
    min: 1,
    max: 10_000,
    sentence: 'Lists an environment may have.',
  },
  {
    name: 'lists.entriesMax',
    kind: 'integer',
    standard: 10_000_000,
    min: 1,
    max: 50_000_000,
    sentence: 'Entries a list may have.',
  },
  ...WEBHOOK_SETTINGS,
  {
    name: 'backup.passphrase',
    kind: 'text',
    standard: '',
    sentence: 'Seals the master key in a backup --with-master-key, and opens it in a restore; at least 12 characters.',
  },
  {
    name: 'backup.passphraseFile',
    kind: 'text',
    standard: '',
    sentence: 'File whose first line is the passphrase, instead of backup.passphrase.',
  },
  {
    name: 'operator.token',
    kind: 'text',
    standard: '',
    alias: 'OPERATOR_TOKEN',
    sentence: 'Token of the operator API, at least 32 characters; empty turns the API off.',
  },
  { name: 'keys.public', kind: 'text', standard: '', alias: 'PUBLIC_KEY', sentence: 'pk_live_ key to pre-seed.' },
  { name: 'keys.secret', kind: 'text', standard: '', alias: 'SECRET_KEY', sentence: 'sk_live_ key to pre-seed.' },
  {
    name: 'keys.testPublic',
    kind: 'text',
    standard: '',
    alias: 'TEST_PUBLIC_KEY',
    sentence: 'pk_test_ key to pre-seed.',
  },
  {
    name: 'keys.testSecret',
    kind: 'text',
    standard: '',
    alias: 'TEST_SECRET_KEY',
    sentence: 'sk_test_ key to pre-seed.',
  },
  {
    name: 'logging.level',
    kind: 'text',
    standard: 'info',
    oneOf: ['debug', 'info', 'warn', 'error', 'silent'],
    alias: 'LOG_LEVEL',
    sentence: 'Least severe log line that is written.',
  },
  {
    name: 'tracing.sdk',
    kind: 'text',
    standard: '',
    sentence:
      'Module that registers an SDK of OpenTelemetry, loaded in each thread; what it exports as shutdown is called at the end. Empty: no spans.',
  },
  {
    name: 'config.file',
    kind: 'text',
    standard: '',
    alias: 'CONFIG',
    sentence: 'JSON file of settings by section; the environment wins over it.',
  },
] as const satisfies readonly Setting[]
