// The streams of a deployment: one per partition, made together with it and looked after ever since. A stream that was lost is
// made anew under a higher base, so that positions never go back.
import type { Clock } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import { must } from '../lib/must.ts'
import { UnsafeNats } from '../lib/nats.ts'
import {
  type Api,
  isRefusal,
  jetStreamFailureOf,
  NO_STORAGE,
  NOT_ENABLED,
  REPLICAS_NOT_SUPPORTED,
  STREAM_NAME_IN_USE,
  STREAM_NOT_FOUND,
  SUBJECTS_OVERLAP,
} from './jetstream-api.ts'
import {
  baseAt,
  type Deployment,
  type Description,
  FORMAT,
  listPartitions,
  parseDescription,
  streamBytesMax,
  streamName,
  subjectOf,
} from './jetstream-layout.ts'
import { APPEND_RECORDS_MAX, type Seq, TOPICS, type Topic } from './log.ts'

export interface StreamsConfig {
  readonly api: Api
  readonly clock: Clock
  /** Begins the names of streams and subjects: letters, digits, `_` and `-`. */
  readonly prefix: string
  /** Of a new deployment; an existing one keeps its own. */
  readonly partitions: number
  readonly replicas: number
  /** Of all streams together. */
  readonly bytesMax: number
  readonly makeDeploymentId: () => string
  /** Told when a lost stream was made anew. */
  readonly onRemade: (stream: string) => void
}

/** What a stream looked like when it was asked. */
export interface StreamLook {
  readonly name: string
  readonly subject: string
  readonly base: number
  readonly bytes: number
  readonly bytesMax: number
  readonly replicas: number
  readonly messages: number
  readonly firstSeq: number
  readonly lastSeq: number
}

export interface Streams {
  readonly deployment: Deployment
  /** Asks the stream's leader; makes the stream anew when it is gone, above the position `above`. */
  look(topic: Topic, partition: number, above?: Seq): Promise<StreamLook>
  /** Those streams whose leaders answer. */
  lookAtAll(): Promise<readonly StreamLook[]>
}

interface StreamInfo {
  readonly config: {
    readonly name: string
    readonly description?: string
    readonly subjects?: readonly string[]
    readonly storage: string
    readonly discard: string
    readonly retention: string
    readonly max_age: number
    readonly max_bytes: number
    readonly num_replicas: number
  }
  readonly state: {
    readonly messages: number
    readonly bytes: number
    readonly first_seq: number
    readonly last_seq: number
  }
}

interface StreamPage {
  readonly total: number
  readonly streams: readonly StreamInfo[] | null
}

const DUPLICATE_WINDOW_NS = 120_000_000_000
const TRIES_MAX = 50
const OVERLAPS_MAX = 10
const RETRY_MS = 200
const PARALLEL = 4
/** Made first: who has it made decides who the deployment is. */
const ANCHOR = ['changes', 0] as const

/**
 * Finds the deployment's streams or makes those of a new one; processes that start together agree on one deployment. Fails
 * with UnsafeNats or Unreadable when what is there must not be used, and with Unavailable.
 */
export async function openStreams(config: StreamsConfig): Promise<Streams> {
  const { api, clock, prefix, replicas } = config
  if (!/^[\w-]{1,64}$/.test(prefix)) throw new RangeError(`a prefix is letters, digits, _ and -, not ${prefix}`)
  const anchor = streamName(prefix, ...ANCHOR)

  function create(topic: Topic, partition: number, description: Description): Promise<StreamInfo> {
    const name = streamName(prefix, topic, partition)
    return api.call<StreamInfo>(`STREAM.CREATE.${name}`, {
      name,
      subjects: [subjectOf(prefix, topic, partition, description.base)],
      description: JSON.stringify(description),
      storage: 'file',
      retention: 'limits',
      discard: 'new',
      max_bytes: streamBytesMax(topic, config.bytesMax, description.deployment.partitions),
      max_age: 0,
      max_msgs: -1,
      max_msg_size: -1,
      max_consumers: -1,
      duplicate_window: DUPLICATE_WINDOW_NS,
      num_replicas: replicas,
      allow_direct: true,
    })
  }

  async function list(): Promise<StreamInfo[]> {
    const found: StreamInfo[] = []
    for (;;) {
      const query = { subject: `${prefix}.log.>`, offset: found.length }
      const { total, streams } = await api.call<StreamPage>('STREAM.LIST', query)
      found.push(...(streams ?? []))
      if (!streams?.length || found.length >= total) return found
    }
  }

  /** One round of finding and making; null when not all streams answer yet. */
  async function settle(): Promise<Deployment | null> {
    const found = new Map((await list()).map((info) => [info.config.name, describe(info)]))
    const known = [...found.values()]
    const deployment = known[0]?.deployment ?? {
      id: config.makeDeploymentId(),
      createdAt: new Date(clock.now()).toISOString(),
      partitions: config.partitions,
    }
    const foreign = known.find((one) => one.deployment.id !== deployment.id)
    if (foreign) {
      const ids = `${deployment.id} and ${foreign.deployment.id}`
      throw new UnsafeNats(`streams of two deployments, ${ids}, lie under the prefix ${prefix}`)
    }
    const first: Description = { format: FORMAT, deployment, base: 0 }
    const again = (): Description => ({ ...first, base: baseAt(clock.now()) })
    let complete = found.get(anchor)?.complete ?? false
    if (!found.has(anchor)) {
      complete = known.length > 0
      await create(...ANCHOR, { ...(complete ? again() : first), complete })
      if (complete) config.onRemade(anchor)
    }
    const missing = listPartitions(deployment).filter(([topic, partition]) => {
      const name = streamName(prefix, topic, partition)
      return name !== anchor && !found.has(name)
    })
    for (let at = 0; at < missing.length; at += PARALLEL) {
      await Promise.all(
        missing.slice(at, at + PARALLEL).map(async ([topic, partition]) => {
          await create(topic, partition, complete ? again() : first)
          if (complete) config.onRemade(streamName(prefix, topic, partition))
        }),
      )
    }
    const infos = await list()
    if (infos.length < listPartitions(deployment).length) return null
    for (const info of infos) await check(info, deployment)
    return deployment
  }

  /** Refuses what would not keep records safe, and writes what may change. */
  async function check(info: StreamInfo, { partitions }: Deployment): Promise<void> {
    const found = info.config
    const { name } = found
    const refuse = (why: string) => {
      throw new UnsafeNats(`the stream ${name} ${why}`)
    }
    if (found.storage !== 'file') refuse('is not stored in files')
    if (found.discard !== 'new') refuse('drops its oldest messages when it is full')
    if (found.retention !== 'limits' || found.max_age !== 0) refuse('drops messages by itself')
    if (found.subjects?.length !== 1) refuse('has other subjects than its own')
    if (found.num_replicas < replicas) refuse(`has ${found.num_replicas} replicas, not ${replicas}`)
    const topic = TOPICS.find((one) => name.startsWith(`${prefix}_${one}_`))
    const bytesMax = streamBytesMax(must(topic, `the topic of ${name}`), config.bytesMax, partitions)
    const description = describe(info)
    const isFinished = name !== anchor || description.complete === true
    if (found.max_bytes === bytesMax && isFinished) return
    const finished = JSON.stringify(isFinished ? description : { ...description, complete: true })
    await api.call(`STREAM.UPDATE.${name}`, { ...found, max_bytes: bytesMax, description: finished })
  }

  async function open(): Promise<Deployment> {
    for (let tries = 1; ; tries += 1) {
      try {
        const deployment = await settle()
        if (deployment) return deployment
        if (tries === TRIES_MAX) throw new Unavailable('not all streams of the log answer')
      } catch (error) {
        // Another process has made it or is making it, or it has no leader.
        const mayPass = isRefusal(error, STREAM_NAME_IN_USE)
          ? tries < TRIES_MAX
          : isRefusal(error, SUBJECTS_OVERLAP) && tries < OVERLAPS_MAX
        if (!mayPass) throw explain(error, config)
      }
      await clock.sleep(RETRY_MS)
    }
  }

  const deployment = await open()

  function lookOf(info: StreamInfo): StreamLook {
    const { name } = info.config
    const description = describe(info)
    if (description.deployment.id !== deployment.id) {
      throw new Unavailable(`the stream ${name} belongs to another deployment`)
    }
    return {
      name,
      subject: must(info.config.subjects?.[0], 'a subject'),
      base: description.base,
      bytes: info.state.bytes,
      bytesMax: info.config.max_bytes,
      replicas: info.config.num_replicas,
      messages: info.state.messages,
      firstSeq: info.state.first_seq,
      lastSeq: info.state.last_seq,
    }
  }

  async function remake(topic: Topic, partition: number, above: Seq): Promise<void> {
    const name = streamName(prefix, topic, partition)
    const base = Math.max(baseAt(clock.now()), Math.floor(above / APPEND_RECORDS_MAX) + 1)
    const description = { format: FORMAT, deployment, base }
    try {
      await create(topic, partition, name === anchor ? { ...description, complete: true } : description)
      config.onRemade(name)
    } catch (error) {
      // Another process has made it or is making it.
      if (!isRefusal(error, STREAM_NAME_IN_USE, SUBJECTS_OVERLAP)) throw error
    }
  }

  return {
    deployment,
    async look(topic, partition, above = 0) {
      const path = `STREAM.INFO.${streamName(prefix, topic, partition)}`
      try {
        const info = await api.call<StreamInfo>(path).catch(async (error: unknown) => {
          if (!isRefusal(error, STREAM_NOT_FOUND)) throw error
          await remake(topic, partition, above)
          return api.call<StreamInfo>(path)
        })
        return lookOf(info)
      } catch (error) {
        throw jetStreamFailureOf(error)
      }
    },
    async lookAtAll() {
      const infos = await list().catch((error: unknown) => {
        throw jetStreamFailureOf(error)
      })
      return infos.map(lookOf)
    },
  }
}

const describe = ({ config }: StreamInfo): Description => parseDescription(config.name, config.description)

/** What a refusal at the start means to the person who starts. */
function explain(error: unknown, { prefix, bytesMax, replicas }: StreamsConfig): unknown {
  const unsafe = (message: string) => new UnsafeNats(message, { cause: error })
  if (isRefusal(error, SUBJECTS_OVERLAP)) return unsafe(`another stream takes the subjects ${prefix}.log.>`)
  if (isRefusal(error, ...NOT_ENABLED)) return unsafe('JetStream is not enabled on the NATS servers')
  if (isRefusal(error, ...NO_STORAGE)) return unsafe(`NATS may not store the ${bytesMax} bytes the log may occupy`)
  if (isRefusal(error, REPLICAS_NOT_SUPPORTED)) return unsafe(`one NATS server cannot keep ${replicas} replicas`)
  return jetStreamFailureOf(error)
}
