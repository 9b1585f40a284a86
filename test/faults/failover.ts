// A Redis with a standby behind one address, as a Service of Kubernetes or a proxy gives it: the master dies, the standby is
// promoted, the address leads to it, and the old master comes back as its standby.

import { until } from '../helpers/processes.ts'
import type { Proxy as FaultProxy } from '../helpers/proxy.ts'
import { type RedisServer, startRedis } from '../helpers/redis.ts'

export interface RedisPair {
  /** Who is the master now. */
  master(): RedisServer
  /** The master dies; the address leads nowhere. */
  killMaster(): Promise<void>
  /** The standby is the master, and the old one its standby once it has all that the new one has. */
  promote(): Promise<void>
  /** Ends the standby; the first master is ended by whoever started it. */
  remove(): Promise<void>
}

const SYNCED_MS_MAX = 60_000
const ANSWERS_MS_MAX = 60_000

/** Resolves when the standby has all that the master has. `address`: what clients of `first` go through. */
export async function openRedisPair(first: RedisServer, address: FaultProxy): Promise<RedisPair> {
  const second = await startRedis({ aof: 'always' })
  let master = first
  let standby = second

  async function follow(): Promise<void> {
    const client = await standby.client()
    await client.replicaof('127.0.0.1', master.port)
    await until('the standby is in step', SYNCED_MS_MAX, async () =>
      (await client.info('replication')).includes('master_link_status:up'),
    )
  }

  await follow()
  return {
    master: () => master,
    async killMaster() {
      address.mode({ kind: 'refuse' })
      await master.kill9()
    },
    async promote() {
      ;[master, standby] = [standby, master]
      const client = await master.client()
      await client.replicaof('NO', 'ONE')
      await until('the standby is master', ANSWERS_MS_MAX, async () =>
        (await client.info('replication')).includes('role:master'),
      )
      address.lead(master.port)
      address.mode({ kind: 'pass' })
      await standby.restart()
      await follow()
    },
    remove: () => second.remove(),
  }
}
