// A list as whoever reads all of it sees it: by name, its version, and its entries page by page.

import type { Env } from '../domain/event.ts'
import { foldListName, type ListType } from '../domain/list.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { entryExpiry, isAlive, isListed, LIST_ENTRY, type PackedEntry, readList, readListsNamed } from './lists.ts'
import { tenantScope, under } from './scopes.ts'

export interface ListFacts {
  readonly id: string
  readonly name: string
  readonly type: ListType
  /** Changes with every entry change. */
  readonly version: number
  readonly entryCount: number
}

export interface ListSource {
  /** By name, without regard to case; null when there is none now. */
  find(workspace: string, env: Env, name: string): Promise<ListFacts | null>
  /** Entries that have not expired, as normalised texts (ranges of addresses as `a/n`), in pages. Ends early with `signal`. */
  values(workspace: string, env: Env, listId: string, signal?: AbortSignal): AsyncIterable<readonly string[]>
}

const PAGE_ENTRIES = 2_000

export function openListSource(kv: Pick<Kv, 'get' | 'scan'>, clock: Pick<Clock, 'now'>): ListSource {
  return {
    async find(workspace, env, name) {
      const named = (await readListsNamed(kv, workspace, env, [name])).get(foldListName(name))
      const list = named === undefined ? null : await readList(kv, workspace, env, named.id)
      if (list === null) return null
      const { id, type, version, entryCount } = list
      return { id, name: list.name, type, version, entryCount }
    },
    async *values(workspace, env, listId, signal) {
      const nowMs = clock.now()
      for await (const page of pagesOf(kv, workspace, env, listId)) {
        if (signal?.aborted) return
        yield page.filter(({ expiresAt }) => isAlive(expiresAt, nowMs)).map(({ value }) => value)
      }
    },
  }
}

/** Answers the look-ups named in `asked` as decisions would: null where there is no such list. Names are in lower case. */
export async function lookUpLists(
  kv: Pick<Kv, 'get'>,
  workspace: string,
  env: Env,
  asked: readonly { readonly list: string; readonly value: string }[],
  nowMs: number,
): Promise<(list: string, value: string) => boolean | null> {
  const named = await readListsNamed(
    kv,
    workspace,
    env,
    asked.map(({ list }) => list),
  )
  const found = new Map<string, boolean>()
  for (const { list, value } of asked) {
    const known = named.get(list)
    const name = `${list} ${value}`
    if (known === undefined || found.has(name)) continue
    // Only texts can be entries: the empty one asks whether there is such a list.
    found.set(name, value !== '' && (await isListed(kv, { workspace, env, ...known }, value, nowMs)))
  }
  return (list, value) => found.get(`${list} ${value}`) ?? null
}

/** All entries of a list in order, overdue ones included, with their times of expiry. */
export async function* pagesOf(
  kv: Pick<Kv, 'scan'>,
  workspace: string,
  env: Env,
  listId: string,
): AsyncGenerator<readonly { readonly value: string; readonly expiresAt: number | null }[]> {
  const scope = tenantScope(workspace, env)
  const bounds = under(listId)
  let after = bounds.after
  for (;;) {
    const page = await kv.scan<PackedEntry>(scope, LIST_ENTRY, {
      ...bounds,
      ...(after && { after }),
      limit: PAGE_ENTRIES,
    })
    yield page.map(({ key, value }) => ({ value: key[1].slice(listId.length + 1), expiresAt: entryExpiry(value) }))
    if (page.length < PAGE_ENTRIES) return
    after = page.at(-1)?.key[1]
  }
}
