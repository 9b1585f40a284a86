// The limits on Redis: all counters of a key in one slot, taken from by one script on the server's clock, so that every process
// counts together.
import { Unavailable } from '../lib/failures.ts'
import { connectRedis, type RedisConfig, readScript, redisFailureOf } from '../lib/redis.ts'
import { checkTake, counterName } from './checks.ts'
import type { Limits, RateRule, Window } from './limits.ts'

export interface RedisLimitsConfig {
  readonly redis: RedisConfig
  /** Tells deployments on the same server apart: letters, digits and `_.:/-`. */
  readonly prefix: string
}

const PREFIX = /^[\w.:/-]{1,64}$/

const TAKE = readScript(new URL('./take.lua', import.meta.url))

/** Connects; fails with Unavailable. */
export async function openRedisLimits({ redis, prefix }: RedisLimitsConfig): Promise<Limits> {
  if (!PREFIX.test(prefix)) throw new RangeError(`not a prefix: ${JSON.stringify(prefix)}`)
  const client = await connectRedis(redis)
  let closed = false
  return {
    async take(key, rules, cost = 1) {
      if (closed) throw new Unavailable('the limits are closed')
      checkTake(key, rules, cost)
      const keys = rules.map((rule) => `${prefix}:limits:{${key}}:${counterName(rule)}`)
      const args = rules.flatMap(({ kind, limit, windowMs }) => [kind === 'fixed' ? 'f' : 's', limit, windowMs])
      const answer = await TAKE.run(client, keys, [cost, ...args]).catch((error: unknown) => {
        throw redisFailureOf(error)
      })
      const [allowed, retryAfterMs = 0, ...windows] = answer as number[]
      return { allowed: allowed === 1, retryAfterMs, windows: rules.map((rule, at) => windowOf(rule, windows, at)) }
    },
    async close() {
      closed = true
      client.disconnect()
    },
  }
}

const windowOf = ({ limit }: RateRule, windows: readonly number[], at: number): Window => ({
  limit,
  remaining: windows[2 * at] ?? 0,
  resetAt: windows[2 * at + 1] ?? 0,
})
