// Chooses the backend of the limits; nothing else knows which one runs.
import type { Limits } from './limits.ts'
import { type MemoryLimitsConfig, openMemoryLimits } from './memory.ts'
import type { RedisLimitsConfig } from './redis.ts'

export type LimitsConfig =
  | ({ readonly backend: 'memory' } & MemoryLimitsConfig)
  | ({ readonly backend: 'redis' } & RedisLimitsConfig)

/** Throws Unavailable when the backend cannot be reached. */
export async function openLimits(config: LimitsConfig): Promise<Limits> {
  switch (config.backend) {
    case 'memory':
      return openMemoryLimits(config)
    case 'redis':
      // Loaded only where it is used: the client would lengthen every start on one machine.
      return (await import('./redis.ts')).openRedisLimits(config)
  }
}
