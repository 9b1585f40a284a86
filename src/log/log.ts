// The durable log: ordered partitions of opaque records, and the only buffer in the system.

/** `identifications` and `events` have P partitions; `changes` and `dead` use partition 0 only. */
export type Topic = 'identifications' | 'events' | 'changes' | 'dead'
export const TOPICS: readonly Topic[] = ['identifications', 'events', 'changes', 'dead']

/** Position in one partition. Increases by at least 1 per record (gaps are legal); 0 means "before the first". */
export type Seq = number

export interface LogRecord {
  readonly seq: Seq
  readonly bytes: Uint8Array
  /** What was appended along with it, handed out once, to who reads it in the thread that appended it before it is old. */
  readonly attached?: unknown
}

export interface ReadLimits {
  readonly recordsMax: number
  /** The batch stops before this sum of record bytes, but always holds at least one record when there is one. */
  readonly bytesMax: number
  /** How long to wait for a first record when there is none; 0 answers at once. */
  readonly waitMsMax: number
  /**
   * Also records whose append is not answered yet, where writer and reader share a process: whoever reads them tells nobody of them
   * before an append with the `basis` they were read at has succeeded.
   */
  readonly submitted?: boolean
}

export interface AppendOptions {
  /** The fence: the append fails with Conflict unless this is the partition's last seq. */
  readonly expectLast?: Seq
  /** Fails with Conflict unless this still is `basis()`: what was submitted before it and not answered was not taken back. */
  readonly basis?: number
  /** Another append that does not wait is about to follow: this one may wait some milliseconds to share its flush. */
  readonly patient?: boolean
  /** Told the seq of the last record before `append` returns, where it is known before it is durable. */
  readonly onPlaced?: (last: Seq) => void
  /** Of each record what it was made of, for a reader in this thread; a log may drop it. */
  readonly attached?: readonly unknown[]
}

export interface PlacedAppend {
  readonly topic: Topic
  readonly partition: number
  readonly after: Seq
  /** The records as `slab.ts` lays them out. Must not change until the append is answered. */
  readonly entry: Uint8Array
}

/** A backend with a smaller message limit packs below it; no backend takes a larger record. */
export const RECORD_BYTES_MAX = 1_000_000
export const APPEND_RECORDS_MAX = 1_024
/** Of the records of one append together. */
export const APPEND_BYTES_MAX = 1_000_000

export interface Log {
  /**
   * Appends all records or none, in order, and resolves with the seq of the last one when they are durable.
   * Fails with Full when there is no room (nothing written) and Unavailable when the outcome is unknown.
   */
  append(topic: Topic, partition: number, records: readonly Uint8Array[], opts?: AppendOptions): Promise<Seq>
  /**
   * All of these appends or none, each right behind the record `after` of its partition: Conflict when another one is there. Absent
   * where partitions may lie on different servers.
   */
  appendTogether?(appends: readonly PlacedAppend[], opts?: Pick<AppendOptions, 'patient'>): Promise<void>
  /** Whether appends keep the order in which they are submitted, so that nobody need wait for one before the next. */
  readonly pipelined: boolean
  /** Another number whenever submitted records were taken back because their append failed. Those appended later are durable later. */
  basis(): number
  /**
   * Records with seq > `after`, in order; empty when none came within `waitMsMax` or when `signal` aborted. A batch may hold
   * fewer than its limits allow. With `waitMsMax` 0 an empty answer means that there is none. May fail with Unavailable.
   */
  read(
    topic: Topic,
    partition: number,
    after: Seq,
    limits: ReadLimits,
    signal?: AbortSignal,
  ): Promise<readonly LogRecord[]>
  /** One record by its seq, or null when it was trimmed or never existed. */
  at(topic: Topic, partition: number, seq: Seq): Promise<LogRecord | null>
  /**
   * Removes records with seq <= `upTo`. The last seq is remembered: it never goes back, even when nothing is left. Removed
   * records of an append that also holds later ones may come back in another process, or after reopening.
   */
  trim(topic: Topic, partition: number, upTo: Seq): Promise<void>
  /** The seq of the newest record ever appended; 0 when there was none. */
  last(topic: Topic, partition: number): Promise<Seq>
  /**
   * Bytes the log occupies on its medium and the most it may occupy: the ingress refuses above a watermark. Where parts of
   * the log have caps of their own, a part that is nearly full speaks for the whole.
   */
  usage(): Promise<{ readonly bytes: number; readonly bytesMax: number }>
  /** Stores other bytes as the record `seq`, if it is there. One at a time. Absent where records cannot be changed. */
  replace?(topic: Topic, partition: number, seq: Seq, bytes: Uint8Array): Promise<void>
  /**
   * Resolves when no byte of what was trimmed or replaced before the call is on the disk. Absent where the disk is a server's own matter.
   * Fails with Full when there is no room for it.
   */
  compact?(): Promise<void>
  close(): Promise<void>
}
