// Where configuration lives in the kv: scope and collection names, and reading whole collections page by page.

import type { Env } from '../domain/event.ts'
import type { Kv, KvEntry, Scope } from '../kv/kv.ts'

/** Workspaces, keys, evaluators, and the readers of `changes`. */
export const SYSTEM: Scope = 'system'
/** Everything a workspace owns in one environment, so that one commit can change it together. */
export const tenantScope = (workspace: string, env: Env): Scope => `w/${workspace}/${env}`

/** Digits of a seq in an id, so that ids sort like seqs. */
export const SEQ_DIGITS = 16
export const seqId = (seq: number): string => String(seq).padStart(SEQ_DIGITS, '0')

/** The position in `changes` of the last command applied in a scope. */
export const CHANGES_SOURCE = 'changes'
/** The position in `changes` up to which every command has been applied; kept in `system`. */
export const CHANGES_READER = 'changes.reader'

export interface ScanBounds {
  readonly after?: string
  readonly upTo?: string
}

/** All entries of a collection in id order. `pageMax` bounds what one answer of the store holds. */
export async function* scanAll<T>(
  kv: Pick<Kv, 'scan'>,
  scope: Scope,
  collection: string,
  bounds: ScanBounds = {},
  pageMax = 500,
): AsyncGenerator<KvEntry<T>> {
  let after = bounds.after
  while (true) {
    const page = await kv.scan<T>(scope, collection, {
      ...(after === undefined ? {} : { after }),
      ...(bounds.upTo === undefined ? {} : { upTo: bounds.upTo }),
      limit: pageMax,
    })
    yield* page
    if (page.length < pageMax) return
    after = page.at(-1)?.key[1]
  }
}

/** Bounds of all ids that begin with `<prefix>/`: '0' is the character after '/'. */
export const under = (prefix: string): ScanBounds => ({ after: `${prefix}/`, upTo: `${prefix}0` })
