// The table of settings: name, kind, default and a sentence each. config.ts makes the Config from it.

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
  { name: 'http.host', kind: 'text', standard: '127.0.0.1', alias: 'HOST', sentence: 'Address to listen on.' },
  {
    name: 'http.port',
    kind: 'integer',
    standard: 8080,
    min: 0,
    max: 65_535,
    alias: 'PORT',
    sentence: 'Port to listen on; 0 takes a free one.',
  },
  {
    name: 'http.trustedProxies',
    kind: 'list',
    standard: [],
    alias: 'TRUSTED_PROXIES',
    sentence: 'CIDR ranges of proxies whose X-Forwarded-For is believed.',
  },
  {
    name: 'http.allowPlainHttp',
    kind: 'flag',
    standard: false,
    alias: 'ALLOW_PLAIN_HTTP',
    sentence: 'Permits plain HTTP on an address other than loopback.',
  },
  {
    name: 'http.inFlightMax',
    kind: 'integer',
    standard: 20_000,
    min: 1,
    max: 1_000_000,
    sentence: 'Requests served at once; more are refused with 503.',
  },
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
    standard: 4,
    min: 1,
    max: 256,
    sentence: 'Partitions of the log; fixed when the data folder is created.',
  },
  {
    name: 'data.freeBytesMin',
    kind: 'integer',
    standard: 536_870_912,
    min: 0,
    sentence: 'Free disk space below which identifications are refused.',
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
    sentence: 'Size of the log at which identifications are refused.',
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
    name: 'ingress.decisionWaitMs',
    kind: 'integer',
    standard: 2_000,
    min: 10,
    max: 60_000,
    alias: 'DECISION_WAIT_MS',
    sentence: 'How long a client waits for its decision before it gets 202.',
  },
  {
    name: 'ingress.pendingMax',
    kind: 'integer',
    standard: 50_000,
    min: 1,
    max: 10_000_000,
    sentence: 'Accepted and undecided identifications beyond which new ones are refused.',
  },
  {
    name: 'engine.threads',
    kind: 'integer',
    standard: 1,
    min: 1,
    max: 64,
    sentence: 'Worker threads that decide; partitions are spread over them.',
  },
  {
    name: 'engine.visitorsMax',
    kind: 'integer',
    standard: 50_000,
    min: 100,
    max: 10_000_000,
    sentence: 'Visitors kept in memory per partition.',
  },
  {
    name: 'engine.stepMsMax',
    kind: 'integer',
    standard: 10_000,
    min: 100,
    max: 600_000,
    sentence: 'Time after which a worker is taken to hang and is replaced.',
  },
  {
    name: 'engine.heapMbMax',
    kind: 'integer',
    standard: 2_048,
    min: 64,
    max: 65_536,
    sentence: 'Heap of one worker thread, in MiB.',
  },
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
    name: 'config.file',
    kind: 'text',
    standard: '',
    alias: 'CONFIG',
    sentence: 'JSON file of settings by section; the environment wins over it.',
  },
] as const satisfies readonly Setting[]
