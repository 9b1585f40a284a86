// A list as whoever reads all of it sees it: by name, its version, and its entries page by page.

import type { Env } from '../domain/event.ts'

export interface ListFacts {
  readonly id: string
  readonly name: string
  readonly type: 'visitor' | 'ip' | 'email'
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

/** Where there are no lists. */
export const noListSource: ListSource = {
  find: async () => null,
  async *values() {},
}
