// What the kv holds of a made-up history: every visitor as the engine would have it, but for what it is recognised by, and how often
// rules matched.

import { type Env, type StoredEvent, VERDICTS } from '../domain/event.ts'
import { hash53 } from '../domain/ids.ts'
import { lineOf, maskIp, subnetOf } from '../domain/ip.ts'
import { addAccount } from '../identity/linked-accounts.ts'
import { providersOf } from '../identity/provider.ts'
import { IPS_MAX, NETWORK_KEPT_MS, NETWORKS_MAX, newVisitor } from '../identity/visitor.ts'
import { packVisitor } from '../identity/visitor-record.ts'
import type { Kv, KvKey, Put } from '../kv/kv.ts'
import { partitionScope, ruleStatKeys, visitorKey } from '../records/partitions.ts'
import { packHeldVisitor } from '../records/visitors.ts'
import type { SeedVisitor } from './seed-visits.ts'
import { DEVICES } from './seed-world.ts'

export interface SeedStateNeeds {
  readonly kv: Pick<Kv, 'get' | 'commit'>
  readonly partitions: number
  readonly workspace: string
  readonly env: Env
  readonly name: string
}

export interface SeedState {
  /** Counts what one event matched. */
  count(event: StoredEvent, partition: number): void
  /** Writes a visitor after its last visit. */
  keep(visitor: SeedVisitor): void
  /** Resolves when there is room for more. */
  room(): Promise<void>
  /** Writes what is left, and the counts once and for all. Returns how many visitors there were. */
  flush(): Promise<number>
}

interface Counted {
  live: number
  monitored: number
  lastAt: number
}

const PUT_KEYS = 500
const UNDER_WAY_MAX = 8

export function openSeedState({ kv, partitions, workspace, env, name }: SeedStateNeeds): SeedState {
  const waiting: Put[][] = Array.from({ length: partitions }, () => [])
  const counts = Array.from({ length: partitions }, () => new Map<string, Counted>())
  const underWay = new Set<Promise<unknown>>()
  let failure: { readonly error: unknown } | null = null
  let visitors = 0

  function send(partition: number): void {
    const put = waiting[partition] as Put[]
    if (put.length === 0) return
    waiting[partition] = []
    const running: Promise<unknown> = kv
      .commit([{ scope: partitionScope(partition), put }])
      .catch((error: unknown) => {
        failure ??= { error }
      })
      .finally(() => underWay.delete(running))
    underWay.add(running)
  }

  function counterOf(partition: number, id: string): Counted {
    const known = counts[partition]?.get(id)
    if (known !== undefined) return known
    const made = { live: 0, monitored: 0, lastAt: 0 }
    counts[partition]?.set(id, made)
    return made
  }

  /** Guarded by a marker of its own, since counters that are added to twice have counted twice. */
  async function writeCounts(partition: number): Promise<void> {
    const scope = partitionScope(partition)
    const marker: KvKey = ['seed', name]
    const put: Put[] = [{ key: marker, value: true }]
    const add: (readonly [KvKey, number])[] = []
    for (const [id, { live, monitored, lastAt }] of counts[partition] as Map<string, Counted>) {
      const keys = ruleStatKeys(`${workspace}/${env}/${id}`)
      const [last] = await kv.get<number>(scope, [keys.last])
      if (live > 0) {
        add.push([keys.live, live])
        put.push({ key: keys.last, value: Math.max(lastAt, last?.value ?? 0) })
      }
      if (monitored > 0) add.push([keys.monitor, monitored])
    }
    await kv.commit([{ scope, check: [[marker, null]], put, add }])
  }

  const check = () => {
    if (failure !== null) throw failure.error
  }

  return {
    count({ timestamp, matchedRules, monitorMatches }, partition) {
      for (const { id } of matchedRules) {
        const counter = counterOf(partition, id)
        counter.live++
        counter.lastAt = timestamp
      }
      for (const { id } of monitorMatches) counterOf(partition, id).monitored++
    },
    keep(visitor) {
      visitors++
      const { partition } = visitor
      const put = waiting[partition] as Put[]
      put.push({ key: visitorKey(workspace, env, visitor.id), value: packed(visitor) })
      if (put.length >= PUT_KEYS) send(partition)
    },
    async room() {
      while (underWay.size >= UNDER_WAY_MAX && failure === null) await Promise.race(underWay)
      check()
    },
    async flush() {
      for (let partition = 0; partition < partitions; partition++) send(partition)
      await Promise.all(underWay)
      check()
      for (let partition = 0; partition < partitions; partition++) await writeCounts(partition)
      return visitors
    },
  }
}

/** As its visits would have left it. Without keys to be found by: it comes back with its token, or as somebody new. */
function packed(visitor: SeedVisitor): Uint8Array {
  const state = newVisitor(visitor.id, visitor.firstAt)
  state.lastSeenAt = visitor.lastAt
  state.totalVisits = visitor.visits
  state.tokenVisits = visitor.byToken
  for (const verdict of VERDICTS) state.verdicts[verdict] = visitor.verdicts[verdict]
  state.lastVerdict = visitor.lastVerdict
  const { homeIp, homeAt, awayIp, awayAt, others } = visitor
  const newest = [{ ip: homeIp, at: homeAt }, { ip: awayIp, at: awayAt }, ...(others ?? [])]
    .filter(({ at }) => at > 0)
    .sort((a, b) => b.at - a.at)
  state.ips = [...new Set(newest.map(({ ip }) => maskIp(ip)))].slice(0, IPS_MAX)
  state.networks = newest
    .filter(({ at }) => at >= visitor.lastAt - NETWORK_KEPT_MS)
    .slice(0, NETWORKS_MAX)
    .map(({ ip, at }) => ({ ip: hash53(lineOf(ip)), subnet: hash53(subnetOf(ip)), lastAt: at }))
  state.providers = providersOf(newest)
  const { platform, browser, gpu } = DEVICES[visitor.device] as (typeof DEVICES)[number]
  state.devices.push({ platform, browser, gpu })
  for (const [at, number] of visitor.accounts.entries()) {
    if ((visitor.accountsSeen & (1 << at)) !== 0) addAccount(state.accounts, `user_${number}`)
  }
  return packHeldVisitor([], packVisitor(state))
}
