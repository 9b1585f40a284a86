// One connection to NATS, shared by the log and the bus: it is made again for ever, and a link that went silent is noticed
// and replaced.
import { readFileSync } from 'node:fs'
import { type ConnectionOptions, connect, credsAuthenticator, type NatsConnection, NatsError } from 'nats'
import { Told, Unavailable } from './failures.ts'

export interface NatsConfig {
  /** Some servers of the cluster as `nats://host:port`; the others are learned from them. */
  readonly servers: readonly string[]
  /** An empty text counts as not given, here and below. */
  readonly user?: string
  readonly password?: string
  /** Instead of user and password. */
  readonly token?: string
  /** A file with a JWT and its seed. */
  readonly credsFile?: string
  /** A file with the PEM of the servers' authority; turns TLS on. */
  readonly caFile?: string
  /** Shown by the servers' monitoring. */
  readonly name: string
}

/** The servers are there, but refuse us, or would not keep safe what is given to them. */
export class UnsafeNats extends Told {
  override readonly name = 'UnsafeNats'
}

const CONNECT_MS_MAX = 3_000
const RETRY_MS = 250
/** A silent link is given up when two pings stayed without an answer at the time of the third. */
const PING_EVERY_MS = 2_500
const PINGS_OUT_MAX = 2

/**
 * Resolves when connected. Fails with Unavailable when no server answers and with UnsafeNats when one refuses the
 * credentials. Ends with `close()`.
 */
export async function connectNats(config: NatsConfig): Promise<NatsConnection> {
  const { servers, name } = config
  const options: ConnectionOptions = {
    servers: [...servers],
    name,
    timeout: CONNECT_MS_MAX,
    waitOnFirstConnect: false,
    reconnect: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RETRY_MS,
    reconnectJitter: RETRY_MS,
    reconnectJitterTLS: RETRY_MS,
    // Credentials may be replaced on the servers before they are replaced here, and back again.
    ignoreAuthErrorAbort: true,
    pingInterval: PING_EVERY_MS,
    maxPingOut: PINGS_OUT_MAX,
    // An error object per request costs more than the request.
    noAsyncTraces: true,
    ...credentials(config),
    ...(config.caFile ? { tls: { caFile: config.caFile } } : {}),
  }
  try {
    return await connect(options)
  } catch (cause) {
    const where = servers.join(', ')
    if (cause instanceof NatsError && cause.isAuthError()) {
      throw new UnsafeNats(`NATS at ${where} refuses the credentials`, { cause })
    }
    throw new Unavailable(`NATS cannot be reached at ${where}`, { cause })
  }
}

function credentials({ user, password, token, credsFile }: NatsConfig): ConnectionOptions {
  if (credsFile) return { authenticator: credsAuthenticator(readFileSync(credsFile)) }
  if (token) return { token }
  return user ? { user, pass: password ?? '' } : {}
}
