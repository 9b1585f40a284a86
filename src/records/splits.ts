// Visits that turned out to be another device's: which events a split moved to whom, in the scope of their environment, and the
// order that tells the owner of the visitor's partition.

import type { Env, Verdict } from '../domain/event.ts'
import { requestTime } from '../domain/ids.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import { scanAll, tenantScope } from './scopes.ts'

export const SPLIT_EVENTS_MAX = 100

/** What is known of moved visits and of the others, as far as events are kept. */
export interface Parting {
  /** Visits of the record when this was read; of another count the rest may know more than this. */
  readonly totalVisits: number
  /** The new visitor as the moved visits make it: packed, base64. */
  readonly state: string
  /** null: no visit is left. */
  readonly rest: {
    readonly firstSeenAt: number
    readonly lastSeenAt: number
    readonly lastVerdict: Verdict | null
    readonly generation: number
  } | null
  /** What only the moved visits had. */
  readonly gone: {
    readonly accounts: readonly number[]
    readonly ips: readonly string[]
    /** Hashes of lines. */
    readonly networks: readonly number[]
    /** Platform, browser family, GPU. */
    readonly devices: readonly (readonly [string, string, string | null])[]
  }
}

/** Asks the owner of a record to let some of its visits be a new visitor's, whose home is the same partition. */
export interface Splitting {
  readonly workspace: string
  readonly env: Env
  readonly visitorId: string
  readonly to: string
  /** Whom the new visitor stands for, perhaps itself, where the split concerns several records; null: it concerns one. */
  readonly survivor: string | null
  /** Milliseconds. */
  readonly at: number
  /** Oldest first. */
  readonly requestIds: readonly string[]
  /** Of these, those that could not be decided: they go along and are nobody's visits. */
  readonly uncounted?: readonly string[]
  /** Of tokens that only moved visits brought or were given. */
  readonly generations: readonly number[]
  readonly parting: Parting | null
  /** The records were made anew from events that are moved already: only tokens have to be told apart. */
  readonly isRebuilt?: boolean
}

/** Whose an event is that a split moved. */
export interface Moved {
  readonly to: string
  /** Place of the split in `changes`. */
  readonly seq: number
  /** Milliseconds: the first of the visits that were moved with it. */
  readonly firstSeenAt: number
  /** How many visits of the new visitor there are up to this one. */
  readonly visit: number
  /** Milliseconds: how long this is kept. */
  readonly until: number
  /** Whom it names was erased, and goes by another name since. */
  readonly isErased?: true
}

/** One record's part of a split. */
export interface SplitPart {
  /** The new visitor. */
  readonly to: string
  /** Whose visits they were; null: erased since. */
  readonly from: string | null
  readonly survivor: string | null
  readonly seq: number
  readonly at: number
  readonly requestIds: readonly string[]
  readonly generations: readonly number[]
}

export const MOVED = 'moved'
const SPLIT = 'split'
const SPLIT_FROM = 'split-from'
export const movedKey = (requestId: string): KvKey => [MOVED, requestId]
/** Of a new visitor, what it was made of. */
export const splitKey = (to: string): KvKey => [SPLIT, to]
/** Of a visitor, those it was split into. */
export const splitFromKey = (visitorId: string): KvKey => [SPLIT_FROM, visitorId]
/** What is known for an order, left for whoever makes it, by the id of the new visitor. */
export const partingKey = (to: string): KvKey => ['parting', to]
export const PARTING_TTL_MS = 3_600_000

export const byTime = (requestIds: readonly string[]): string[] => [...requestIds].sort()
/** For each of these events, oldest first, how many visits there are up to it. */
export function visitNumbers(requestIds: readonly string[], uncounted: readonly string[] = []): number[] {
  let visits = 0
  return requestIds.map((id) => (uncounted.includes(id) ? visits : ++visits))
}
export const timeOf = (requestId: string): number => must(requestTime(requestId), 'a request id with a time')

/** null for events that were never moved. */
export async function readMoved(
  kv: Pick<Kv, 'get'>,
  workspace: string,
  env: Env,
  requestIds: readonly string[],
): Promise<(Moved | null)[]> {
  const found = await kv.get<Moved>(tenantScope(workspace, env), requestIds.map(movedKey))
  return found.map((entry) => entry?.value ?? null)
}

/** The new visitors of the split that moved exactly these events out of one of `ids`, its survivor first; null: there was none. */
export async function repeatedSplit(
  kv: Pick<Kv, 'get'>,
  workspace: string,
  env: Env,
  ids: readonly string[],
  requestIds: readonly string[],
): Promise<readonly [SplitPart, ...SplitPart[]] | null> {
  const moved = await readMoved(kv, workspace, env, requestIds)
  const seq = moved[0]?.seq
  if (seq === undefined || moved.some((one) => one?.seq !== seq)) return null
  const keys = [...new Set(moved.map((one) => one?.to as string))].map(splitKey)
  const parts = (await kv.get<SplitPart>(tenantScope(workspace, env), keys)).flatMap((entry) => entry?.value ?? [])
  if (parts.reduce((sum, part) => sum + part.requestIds.length, 0) !== requestIds.length) return null
  // Merged back since, they can be split off once more.
  if (!parts.every(({ from, to }) => from !== null && ids.includes(from) && !ids.includes(to))) return null
  const [first, ...others] = parts.sort((a, b) => Number(a.survivor !== null) - Number(b.survivor !== null))
  return first === undefined ? null : [first, ...others]
}

/** Everybody who was made by a split and is not erased. */
export async function* allSplits(kv: Pick<Kv, 'scan'>, workspace: string, env: Env): AsyncGenerator<SplitPart> {
  for await (const { value } of scanAll<SplitPart>(kv, tenantScope(workspace, env), SPLIT)) yield value
}
