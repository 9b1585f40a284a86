// Chooses the backend of the kv; nothing else knows which one runs.
import { join } from 'node:path'
import type { Kv } from './kv.ts'
import { type LmdbKvConfig, openLmdbKv } from './lmdb.ts'

export type KvConfig = { readonly backend: 'lmdb'; readonly dataDir: string } & Omit<LmdbKvConfig, 'path'>

/** Throws Unreadable when the stored data is damaged, Unavailable when the backend cannot be reached. */
export async function openKv(config: KvConfig): Promise<Kv> {
  const { backend, dataDir, ...rest } = config
  switch (backend) {
    case 'lmdb':
      return openLmdbKv({ ...rest, path: join(dataDir, 'kv') })
  }
}
