// Follows what happens to lists: entries that were added or whose time was over become deliveries. How far subscribers were told
// stands beside the lists, and deltas that they were not told of yet are kept until then.

import { pollEveryMs } from '../bus/bus.ts'
import { ENVS, type Env } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import type { EventType } from '../domain/webhook.ts'
import type { Kv } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import { Conflict, Unavailable } from '../lib/failures.ts'
import { onHint } from '../records/hints.ts'
import { LIST_DELTA, LISTS_TOLD, type ListDelta, readDeltas, readListsMeta } from '../records/list-deltas.ts'
import { partitionScope } from '../records/partitions.ts'
import { tenantScope } from '../records/scopes.ts'
import { listWorkspaces } from '../records/workspaces.ts'
import { forgetVisitor } from './forget.ts'
import { listOccurrences } from './list-occurrences.ts'
import type { Listeners } from './listening.ts'
import { type OutboxEntries, outboxEntriesOf } from './match.ts'
import { type PassOnNeeds, passOn } from './pass-on.ts'
import type { Subscriptions } from './subscriptions.ts'
import { aboutErased, withoutErased } from './without-erased.ts'

export interface FollowListsNeeds extends PassOnNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'commit'>
  readonly clock: Clock
  readonly partitions: number
  readonly subscriptions: Subscriptions
  readonly listening: Listeners
  readonly report: (error: unknown) => void
  /** Changes that nobody can be told of any more: the follower was away for too long. */
  readonly onLost: (workspace: string, env: Env) => void
}

/** Hints may be lost: every environment is looked at this often, or less often where there are very many. */
const LOOK_MS = 1_000
const LOOK_MS_PER_TENANT = 2
const DELTAS_PER_PAGE = 50

/** Until `signal` aborts. */
export async function followLists(needs: FollowListsNeeds, signal: AbortSignal): Promise<void> {
  const { kv, bus, clock, report } = needs
  const lookEveryMs = pollEveryMs(bus, LOOK_MS)
  const hinted = new Map<string, readonly [string, Env]>()
  let wake = new AbortController()
  const rouse = () => wake.abort()
  signal.addEventListener('abort', rouse)
  const unsubscribe = onHint(bus, 'lists.changed', ({ workspace, env }) => {
    hinted.set(`${workspace}/${env}`, [workspace, env])
    rouse()
  })
  let lookAt = Number.NEGATIVE_INFINITY
  while (!signal.aborted) {
    wake = new AbortController()
    try {
      if (clock.monotonic() >= lookAt) {
        const workspaces = await listWorkspaces(kv)
        for (const { id } of workspaces) for (const env of ENVS) hinted.set(`${id}/${env}`, [id, env])
        lookAt = clock.monotonic() + Math.max(lookEveryMs, LOOK_MS_PER_TENANT * hinted.size)
      }
      for (const [name, [workspace, env]] of [...hinted]) {
        if (signal.aborted) break
        hinted.delete(name)
        await followTenant(needs, workspace, env, signal)
      }
    } catch (error) {
      if (!(error instanceof Conflict)) report(error)
      lookAt = clock.monotonic() + LOOK_MS
    }
    const waitMs = Math.max(0, lookAt - clock.monotonic())
    if (hinted.size === 0) await clock.sleep(waitMs, wake.signal)
  }
  signal.removeEventListener('abort', rouse)
  unsubscribe()
}

async function followTenant(needs: FollowListsNeeds, workspace: string, env: Env, signal: AbortSignal): Promise<void> {
  const { kv, clock, partitions, subscriptions, listening, onLost } = needs
  const scope = tenantScope(workspace, env)
  const { last } = await readListsMeta(kv, workspace, env)
  let [told] = await kv.get<number>(scope, [LISTS_TOLD])
  while (!signal.aborted && (told?.value ?? 0) < last) {
    let deltas = await readDeltas(kv, workspace, env, told?.value ?? 0, last)
    if (deltas === null) {
      onLost(workspace, env)
      deltas = (await kv.scan<ListDelta>(scope, LIST_DELTA, { limit: DELTAS_PER_PAGE })).map(({ value }) => value)
    }
    const tenant = await subscriptions.tenant(workspace, env)
    const upTo = deltas.at(-1)?.seq ?? last
    const nowMs = clock.now()
    const news: OutboxEntries = { payloads: [], deliveries: [] }
    const isHeard = listening.isHeard(workspace, env)
    const wants = (type: EventType) => isHeard || tenant?.types.has(type) === true
    for (const delta of tenant === null || (tenant.types.size === 0 && !isHeard) ? [] : deltas) {
      for (const found of listOccurrences({ workspace, env }, delta, wants)) {
        if (isHeard && tenant !== null) listening.publish(tenant, found.occurrence)
        const visitorId = found.isVisitor ? found.value : null
        const payloadAt = partitionScope(visitorId === null ? 0 : homePartition(visitorId, partitions))
        if (tenant !== null) outboxEntriesOf(news, tenant, found, { payloadAt, nowMs, visitorId })
      }
    }
    const kept = await withoutErased(kv, news)
    await passOn(needs, kept, nowMs)
    // Their partition may have forgotten them before this was stored.
    for (const { scope: at, about } of await aboutErased(kv, kept.payloads)) await forgetVisitor(kv, at, about)
    const check = [[LISTS_TOLD, told?.version ?? null]] as const
    const [moved] = await kv.commit([{ scope, check, put: [{ key: LISTS_TOLD, value: upTo }] }])
    if (moved !== true) throw new Conflict('another dispatcher follows these lists')
    ;[told] = await kv.get<number>(scope, [LISTS_TOLD])
    if (told === undefined) throw new Unavailable('the place in the changes of lists has disappeared')
  }
}
