// What a series of faults is aimed at: a deployment that serves, and the injuries it must get over.

import type { Rng } from '../helpers/rng.ts'
import type { Keys } from '../helpers/server.ts'
import type { Ledger } from './ledger.ts'
import type { Load } from './load.ts'

export interface Injury {
  readonly name: string
  /** Hurts the deployment while it is under load. */
  hurt(): Promise<void>
  /** Brings everything back that was hurt; clients repeat themselves meanwhile. Resolves when all of it should serve. */
  heal(): Promise<void>
}

export interface Target {
  /** Where identifications go; each client picks one for every request. */
  readonly urls: readonly string[]
  /** Where events and visitors are read. */
  readonly url: string
  readonly keys: Keys
  readonly partitions: number
  /** The next injury; `cycle` counts from 0. */
  injury(cycle: number, random: Rng, ledger: Ledger): Injury
  /** Milliseconds from the heal to readiness, and from readiness to a decision of every partition, of each cut. */
  readonly readyMs: readonly number[]
  readonly decidingMs: readonly number[]
  /** Resolves when everything accepted is decided and in ClickHouse, with nothing put aside that was not to be. */
  quiet(load: Load): Promise<void>
  /** Tells the target by which load it is watched. */
  watch(load: Load): Promise<void>
  stop(): Promise<void>
}
