// What a process and its shards say to each other, besides the log, the kv, the bus and requests that are passed on.

import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../config.ts'
import type { Env, StoredEvent } from '../domain/event.ts'
import type { ProxySuspicion } from '../ingress/proxy-watch.ts'
import type { IpData } from '../ipintel/addresses.ts'
import type { SharedCounts } from '../lib/counts.ts'
import type { Bells } from '../lib/doorbell.ts'
import type { Samples } from '../lib/prometheus.ts'
import type { PartitionHead } from '../log/front-protocol.ts'
import type { Seq } from '../log/log.ts'
import type { Glimpse, Original } from '../records/event-locator.ts'
import type { Peer } from './peers.ts'

/** What a shard is started with. */
export interface ShardStart {
  readonly index: number
  readonly config: Config
  readonly deployment: string
  readonly partitions: number
  /** The place of embedded storage: where the partitions of this shard stand. Empty in a cluster. */
  readonly own: readonly PartitionHead[]
  readonly generation: number
  /** Of the process, by which engines know its shards. */
  readonly processId: string
  readonly sealsSecrets: boolean
  readonly ipData: IpData
  readonly refusal: string | null
  /** Records that ended a shard again and again, by partition. */
  readonly givenUp: readonly (readonly [partition: number, seqs: readonly number[]])[]
  readonly cells: Cells
  /** With a share of this thread's own. */
  readonly counts: Shared
}

/** What the task of a shard's thread is given. */
export interface ShardTask {
  readonly start: ShardStart
  readonly port: MessagePort
  readonly peers: readonly Peer[]
}

/** Memory that all threads share. */
export interface Cells {
  /** Counted up by the shard as long as its loop turns. */
  readonly beat: Int32Array
  /** By partition: the record being decided, 0 for none. */
  readonly deciding: Float64Array
  /** By partition: 1 while this process decides it. */
  readonly held: Int32Array
  /** By partition: the index of the shard that decides it where this process does, or MOVING. */
  readonly owner: Int32Array
  /** The partition of the first with a nonce, as `lib/first-claims.ts` keeps it. */
  readonly nonceRoutes: Int32Array
  /** 1 when one of them has told the log of a proxy that is not trusted. */
  readonly toldOfProxy: Int32Array
  /** By shard. */
  readonly bells: Bells
}

/** In place of a shard while a partition goes from one to another: what comes for it waits in the process. */
export const MOVING = -1

/** What is limited for all threads together. */
export interface Shared {
  readonly inFlight: SharedCounts
  readonly pending: SharedCounts
  /** Requests under way by host, as `http/hosts.ts` counts them. */
  readonly hosts: SharedCounts
}

/** What a shard says of itself when it changes. */
export interface ShardStatus {
  readonly problem: string | null
  readonly caughtUp: readonly number[]
  readonly recent: number
  readonly pending: number
  /** Share of the last second in which the thread did something, in tenths. */
  readonly busy: number
  readonly proxy: ProxySuspicion | null
}

/** Calls to a shard. */
export interface ShardCalls {
  /** Serves what others hand over, and with `listens` what arrives on the port. May be called again to listen later than to serve. */
  listen(host: string, port: number, listens: boolean): Promise<void>
  stopListening(): void
  drain(deadlineMs: number): Promise<void>
  /** As `Freshness` has it. */
  freshen(partition: number): Promise<boolean>
  /** Reads all keys again. */
  reloadKeys(): Promise<void>
  /** Appends identifications to a partition of this shard. */
  append(partition: number, records: readonly Uint8Array[]): Promise<Seq>
  /** Resolves when the shard can decide without having to load anything first. */
  prepare(): Promise<void>
  /** Owns a partition until `release`. */
  hold(partition: number): Promise<void>
  /** Of embedded storage: another shard is about to append to the partition. Resolves when nothing of this one's is under way. */
  giveUp(partition: number): Promise<void>
  /** Of embedded storage: from here on this shard appends to the partition, which stands there. */
  take(heads: readonly PartitionHead[]): void
  glimpse(scope: string, requestId: string): Glimpse
  samples(): Promise<Samples>
  /** Ends everything; the thread ends behind its answer. */
  stop(): Promise<void>
}

/** Calls of a shard. */
export interface ProcessCalls {
  findEvent(workspace: string, env: Env, requestId: string): Promise<StoredEvent | 'pending' | null>
  fateOf(workspace: string, env: Env, requestId: string): Promise<StoredEvent | Original | null>
}

/** Names a shard to engines that reply to it. */
export const ingressIdOf = (processId: string, index: number): string => `${processId}.${index}`

/** Casts to a shard, and its own. */
export const CASTS = {
  release: 'release',
  sunk: 'sunk',
  refusal: 'refusal',
  ipData: 'ipData',
  peer: 'peer',
  status: 'status',
} as const
