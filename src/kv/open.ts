// Chooses the backend of the kv; nothing else knows which one runs.
import { join } from 'node:path'
import type { RedisFacts } from '../lib/redis.ts'
import type { Kv } from './kv.ts'
import { type LmdbKvConfig, openLmdbKv } from './lmdb.ts'
import type { RedisKvConfig } from './redis.ts'

export type KvConfig =
  | ({ readonly backend: 'lmdb'; readonly dataDir: string } & Omit<LmdbKvConfig, 'path'>)
  | ({ readonly backend: 'redis' } & RedisKvConfig)

export interface OpenedKv extends Kv {
  /** How the servers behind it keep data, as of now; null when there are none. Fails with Unavailable. */
  facts(): Promise<RedisFacts | null>
}

/**
 * Throws Unreadable when the stored data is damaged, Unavailable when the backend cannot be reached, UnsafeRedis when it would
 * not keep what it is given.
 */
export async function openKv(config: KvConfig): Promise<OpenedKv> {
  switch (config.backend) {
    case 'lmdb': {
      const { backend: _, dataDir, ...rest } = config
      return { ...(await openLmdbKv({ ...rest, path: join(dataDir, 'kv') })), facts: async () => null }
    }
    case 'redis':
      // Loaded only where it is used: the client would lengthen every start on one machine.
      return (await import('./redis.ts')).openRedisKv(config)
  }
}
