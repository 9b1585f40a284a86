// Visitors that were found to be one: which id stands for which, the order that tells the owner of a visitor's partition, and
// the corrections that were made by hand. All of it lies in the scope of its environment, so that one commit changes it together.

import type { Env } from '../domain/event.ts'
import type { Kv, KvKey } from '../kv/kv.ts'
import { scanAll, seqId, tenantScope } from './scopes.ts'

/**
 * Asks the owner of a visitor's partition to let its future events be the survivor's. Of the survivor itself it says that others
 * are one with it.
 */
export interface Aliasing {
  readonly workspace: string
  readonly env: Env
  readonly visitorId: string
  readonly survivor: string
  /** Milliseconds. */
  readonly at: number
  /** Left out where people merged them. */
  readonly healedBy?: HealedBy
}

/** The visit that showed two visitors to be one device, and how sure that was: 0 to 1. */
export interface HealedBy {
  readonly requestId: string
  readonly confidence: number
}

export const ALIASES_MAX = 50
export const CORRECTIONS_MAX = 10_000

const ALIAS = 'alias'
const MERGED = 'merged'
/** Of an alias, the survivor: never an alias itself. */
export const aliasKey = (visitorId: string): KvKey => [ALIAS, visitorId]
/** Of a survivor, its aliases. */
export const mergedKey = (visitorId: string): KvKey => [MERGED, visitorId]

/** One of them exists for everybody who was ever part of a merge. */
export const aliasKeysOf = (visitorId: string): readonly [KvKey, KvKey] => [aliasKey(visitorId), mergedKey(visitorId)]

const HEALED = 'healed'
/** Of an alias that nobody merged: why it is one. */
export const healedKey = (visitorId: string): KvKey => [HEALED, visitorId]
export interface Healed extends HealedBy {
  readonly survivor: string
  /** Milliseconds. */
  readonly at: number
}

export const CORRECTION = 'correction'
export const CORRECTION_OF = 'correction-of'
export const CORRECTIONS: KvKey = ['meta', 'corrections']
export const correctionKey = (seq: number): KvKey => [CORRECTION, seqId(seq)]
export const correctionOfKey = (visitorId: string, seq: number): KvKey => [CORRECTION_OF, `${visitorId}/${seqId(seq)}`]

/** A pair that somebody labelled. */
export interface Correction {
  readonly visitors: readonly [string, string]
  /** They were one device, or the same id had stood for two. */
  readonly same: boolean
  readonly at: number
  readonly actor: string
  readonly seq: number
}

/** The survivor an id stands for, or the id itself, first; then everybody merged into it. */
export async function groupOf(
  kv: Pick<Kv, 'get'>,
  workspace: string,
  env: Env,
  visitorId: string,
): Promise<readonly [survivor: string, ...aliases: string[]]> {
  const scope = tenantScope(workspace, env)
  const [alias, merged] = await kv.get(scope, [aliasKey(visitorId), mergedKey(visitorId)])
  if (!alias) return [visitorId, ...((merged?.value as readonly string[] | undefined) ?? [])]
  const survivor = alias.value as string
  const [entry] = await kv.get<readonly string[]>(scope, [mergedKey(survivor)])
  return [survivor, ...(entry?.value ?? [])]
}

/** Everybody who was merged into another, with the survivor. */
export async function* allAliases(
  kv: Pick<Kv, 'scan'>,
  workspace: string,
  env: Env,
): AsyncGenerator<Pick<Aliasing, 'visitorId' | 'survivor'>> {
  for await (const { key, value } of scanAll<string>(kv, tenantScope(workspace, env), ALIAS)) {
    yield { visitorId: key[1], survivor: value }
  }
}

/** Everybody who others were merged into. */
export async function* allSurvivors(kv: Pick<Kv, 'scan'>, workspace: string, env: Env): AsyncGenerator<string> {
  for await (const { key } of scanAll(kv, tenantScope(workspace, env), MERGED)) yield key[1]
}

/** Pairs that were labelled, oldest first: what recognition can be measured on. */
export async function* readCorrections(kv: Pick<Kv, 'scan'>, workspace: string, env: Env): AsyncGenerator<Correction> {
  for await (const { value } of scanAll<Correction>(kv, tenantScope(workspace, env), CORRECTION)) yield value
}
