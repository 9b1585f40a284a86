// What an acknowledgement of the log on JetStream means: facts about the servers as they are, and a refusal of servers that could
// not keep what they acknowledge.
import type { NatsConnection } from 'nats'
import { Unavailable } from '../lib/failures.ts'
import { UnsafeNats } from '../lib/nats.ts'
import type { StreamLook } from './jetstream-streams.ts'
import { APPEND_BYTES_MAX } from './log.ts'

export interface MonitoredServer {
  readonly url: string
  /** Null, here and below: it did not tell. */
  readonly name: string | null
  readonly version: string | null
  /** Whether messages are flushed to disk before they are acknowledged. */
  readonly syncAlways: boolean | null
  /** How often they are flushed otherwise. */
  readonly syncIntervalMs: number | null
}

export interface JetStreamFacts {
  readonly version: string
  readonly cluster: string | null
  readonly replicas: number
  readonly storage: 'file'
  readonly whenFull: 'refuses'
  readonly bytesMax: number
  readonly maxPayloadBytes: number
  readonly servers: readonly MonitoredServer[]
  /** What an acknowledged record survives, in words. */
  readonly acknowledged: string
}

interface Varz {
  readonly server_name?: string
  readonly version?: string
  readonly jetstream?: { readonly config?: { readonly sync_interval?: number; readonly sync_always?: boolean } }
}

const VERSION_MIN = [2, 9] as const
/** Lengths and headers beside the records of the largest append. */
const PAYLOAD_BYTES_MIN = 1_048_576
const MONITOR_MS_MAX = 2_000

/** Throws UnsafeNats when the server we are connected to cannot carry the log. */
export function refuseUnsafeJetStream({ info }: NatsConnection): void {
  if (info === undefined) throw new Unavailable('there is no connection to NATS')
  const { version, jetstream, max_payload: payloadBytesMax } = info
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1])) {
    throw new UnsafeNats(`NATS is version ${version}; at least ${VERSION_MIN.join('.')} is needed`)
  }
  if (payloadBytesMax < PAYLOAD_BYTES_MIN) {
    throw new UnsafeNats(
      `NATS takes messages of ${payloadBytesMax} bytes (max_payload); appends of ${APPEND_BYTES_MAX} need ${PAYLOAD_BYTES_MIN}`,
    )
  }
  // A server of a cluster may leave JetStream to the others.
  if (jetstream !== true && info.cluster === undefined) throw new UnsafeNats('NATS runs without JetStream')
}

/** Asks the monitoring addresses, if any; what cannot be learned is null. */
export async function readJetStreamFacts(
  { info }: NatsConnection,
  streams: readonly StreamLook[],
  monitorUrls: readonly string[],
): Promise<JetStreamFacts> {
  const servers = await Promise.all(monitorUrls.map(readMonitor))
  const replicas = Math.min(...streams.map((stream) => stream.replicas))
  return {
    version: info?.version ?? 'unknown',
    cluster: info?.cluster ?? null,
    replicas,
    storage: 'file',
    whenFull: 'refuses',
    bytesMax: streams.reduce((sum, { bytesMax }) => sum + bytesMax, 0),
    maxPayloadBytes: info?.max_payload ?? 0,
    servers,
    acknowledged: describe(replicas, servers),
  }
}

function describe(replicas: number, servers: readonly MonitoredServer[]): string {
  const majority = Math.floor(replicas / 2) + 1
  const held = replicas === 1 ? 'held by one server' : `held by ${majority} of ${replicas} servers`
  if (servers.length > 0 && servers.every(({ syncAlways }) => syncAlways === true)) {
    return `${held} and flushed to disk: survives kill -9 and a loss of power`
  }
  const power =
    replicas === 1 ? 'not a loss of power' : `and a loss of power unless it hits ${majority} of them at once`
  const told = servers.some(({ syncAlways }) => syncAlways === false)
  return `${held}, ${told ? '' : 'as far as is known '}flushed to disk later: survives kill -9, ${power}`
}

async function readMonitor(url: string): Promise<MonitoredServer> {
  try {
    const answer = await fetch(new URL('/varz', url), { signal: AbortSignal.timeout(MONITOR_MS_MAX) })
    const { server_name, version, jetstream } = (await answer.json()) as Varz
    const config = jetstream?.config
    return {
      url,
      name: server_name ?? null,
      version: version ?? null,
      // Left out when it is off, and by servers before 2.10, which cannot turn it on.
      syncAlways: config === undefined ? null : config.sync_always === true,
      syncIntervalMs: config?.sync_interval === undefined ? null : config.sync_interval / 1_000_000,
    }
  } catch {
    return { url, name: null, version: null, syncAlways: null, syncIntervalMs: null }
  }
}
