// The settings of a restored copy that is only looked at: on loopback, one thread, nothing to send to and nothing that removes.

import type { Config, ProcessRole } from '../config.ts'
import { IP_SOURCES } from '../ipintel/sources.ts'

const DRILLED = {
  'deployment.mode': 'embedded',
  isCluster: false,
  'http.host': '127.0.0.1',
  'http.port': 0,
  'http.adminPort': 0,
  'http.lingerMs': 0,
  'tls.certFile': '',
  'tls.keyFile': '',
  'engine.threads': 1,
  shards: 1,
  'keys.public': '',
  'keys.secret': '',
  'keys.testPublic': '',
  'keys.testSecret': '',
  'console.setupFile': '',
  'smtp.host': '',
  'tracing.sdk': '',
  'ip.dir': '',
  // Deliveries that were due are not this process's, and jobs would remove what has had its time.
  roles: new Set<ProcessRole>(['ingress', 'engine', 'api']),
} as const satisfies Partial<Config>

export interface DrillPlace {
  readonly dir: string
  readonly partitions: number
  readonly operatorToken: string
  /** Empty: the one in `dir`. */
  readonly keyFile: string
}

/** `config` is that of the deployment that was backed up. */
export function drillConfig(config: Config, { dir, partitions, operatorToken, keyFile }: DrillPlace): Config {
  const noSources = Object.fromEntries(
    IP_SOURCES.flatMap((name) => [`ip.${name}Url`, `ip.${name}File`]).map((name) => [name, []]),
  )
  const own = { 'data.dir': dir, partitions, 'operator.token': operatorToken, 'webhooks.masterKeyFile': keyFile }
  return { ...config, ...DRILLED, ...noSources, ...own }
}
