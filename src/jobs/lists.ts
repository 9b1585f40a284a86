// Time and lists: entries whose time is over leave through `changes`, within a second of it, and what is left of lists that were
// deleted is cleared away. Nothing is remembered here, so whoever holds the lease next goes on.

import { type Bus, pollEveryMs } from '../bus/bus.ts'
import { ENVS, type Env } from '../domain/event.ts'
import { makeCommandId, type RandomBytes } from '../domain/ids.ts'
import { ENTRIES_PER_CALL_MAX } from '../domain/list.ts'
import type { Kv, KvKey, Scope } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import { Unavailable } from '../lib/failures.ts'
import type { Log, Seq } from '../log/log.ts'
import { encodeCommand } from '../records/commands.ts'
import { onHint } from '../records/hints.ts'
import {
  type Due,
  dueKey,
  dueUpTo,
  entryExpiry,
  LIST_DUE,
  LIST_ENTRY,
  LIST_GONE,
  listGoneKey,
  listKey,
  type PackedEntry,
  readDueEntryId,
} from '../records/lists.ts'
import { CHANGES_SOURCE, tenantScope, under } from '../records/scopes.ts'
import { listWorkspaces } from '../records/workspaces.ts'

export interface ListJobNeeds {
  readonly log: Pick<Log, 'append'>
  readonly kv: Pick<Kv, 'get' | 'scan' | 'commit' | 'position'>
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomBytes
  readonly onError: (error: unknown) => void
}

const ROUND_MS = 250
/** Hints may be lost: every environment is looked at this often, or less often where there are very many. */
const LOOK_MS = 1_000
const LOOK_MS_PER_TENANT = 2
const APPLIED_WAIT_MS = 2_000
const APPLIED_POLL_MS = 20
/** Entries of deleted lists cleared before expiry is looked at again. */
const CLEARED_PER_ROUND = 20_000
const ACTOR = 'expiry'

interface Tenant {
  readonly workspace: string
  readonly env: Env
  readonly scope: Scope
  /** Monotonic; minus infinity: look now. */
  lookedAt: number
  /** When the next entry is due, as far as that look could tell. */
  nextDue: number
}

/** Runs until `signal` aborts. */
export async function runListJob(needs: ListJobNeeds, signal: AbortSignal): Promise<void> {
  const { kv, bus, clock, onError } = needs
  const lookEveryMs = pollEveryMs(bus, LOOK_MS)
  const tenants = new Map<string, Tenant>()
  const tenantOf = (workspace: string, env: Env): Tenant => {
    const scope = tenantScope(workspace, env)
    const known = tenants.get(scope)
    if (known !== undefined) return known
    const made = { workspace, env, scope, lookedAt: Number.NEGATIVE_INFINITY, nextDue: Number.POSITIVE_INFINITY }
    tenants.set(scope, made)
    return made
  }
  let wake = new AbortController()
  const rouse = () => wake.abort()
  signal.addEventListener('abort', rouse)
  const unsubscribe = onHint(bus, 'lists.changed', ({ workspace, env }) => {
    tenantOf(workspace, env).lookedAt = Number.NEGATIVE_INFINITY
    rouse()
  })

  async function round(): Promise<void> {
    for (const { id } of await listWorkspaces(kv)) for (const env of ENVS) tenantOf(id, env)
    const everyMs = Math.max(lookEveryMs, LOOK_MS_PER_TENANT * tenants.size)
    for (const tenant of tenants.values()) {
      if (signal.aborted) return
      const isTime = clock.monotonic() - tenant.lookedAt >= everyMs || clock.now() >= tenant.nextDue
      if (isTime) await look(tenant)
    }
  }

  async function look(tenant: Tenant): Promise<void> {
    tenant.lookedAt = clock.monotonic()
    while (!signal.aborted && (await expire(needs, tenant, signal))) {}
    const [next] = await kv.scan(tenant.scope, LIST_DUE, { limit: 1 })
    tenant.nextDue = next === undefined ? Number.POSITIVE_INFINITY : readDueEntryId(next.key[1]).expiresAt
    await clear(needs, tenant)
  }

  /** Until an entry is due, somebody says that lists changed, or it is time to look anyway. */
  async function rest(): Promise<void> {
    const nextDue = [...tenants.values()].reduce(
      (soonest, one) => Math.min(soonest, one.nextDue),
      Number.POSITIVE_INFINITY,
    )
    const dueMs = Math.max(ROUND_MS, nextDue - clock.now())
    if (dueMs >= lookEveryMs) await nextBeat(clock, lookEveryMs, wake.signal)
    else await clock.sleep(dueMs, wake.signal)
    // More of the same are about to follow.
    if (wake.signal.aborted) await clock.sleep(ROUND_MS, signal)
  }

  while (!signal.aborted) {
    wake = new AbortController()
    try {
      await round()
    } catch (error) {
      if (!(error instanceof Unavailable)) onError(error)
    }
    await rest()
  }
  signal.removeEventListener('abort', rouse)
  unsubscribe()
}

/** Takes off what is due, at most a call's worth of entries; false when nothing was. */
async function expire(needs: ListJobNeeds, tenant: Tenant, signal: AbortSignal): Promise<boolean> {
  const { kv, clock } = needs
  const range = { upTo: dueUpTo(clock.now()), limit: ENTRIES_PER_CALL_MAX }
  const due = (await kv.scan(tenant.scope, LIST_DUE, range)).map(({ key }) => readDueEntryId(key[1]))
  if (due.length === 0) return false
  const byList = groupByList(due)
  const ids = [...byList.keys()]
  const lists = await kv.get(tenant.scope, ids.map(listKey))
  let last: Seq = 0
  for (const [i, id] of ids.entries()) {
    const some = byList.get(id) ?? []
    // Of a list that is gone nobody needs to be told.
    if (lists[i] === null) await kv.commit([{ scope: tenant.scope, drop: some.map(keyOf) }])
    else last = await append(needs, tenant, id, some)
  }
  await applied(needs, tenant, last, signal)
  return true
}

const keyOf = ({ expiresAt, listId, value }: Due): KvKey => dueKey(expiresAt, listId, value)

function groupByList(due: readonly Due[]): Map<string, Due[]> {
  const byList = new Map<string, Due[]>()
  for (const one of due) {
    const those = byList.get(one.listId)
    if (those === undefined) byList.set(one.listId, [one])
    else those.push(one)
  }
  return byList
}

function append({ log, clock, random }: ListJobNeeds, tenant: Tenant, id: string, due: readonly Due[]): Promise<Seq> {
  const at = clock.now()
  const entries = due.map(({ value, expiresAt }) => ({ value, expiresAt }))
  const { workspace, env } = tenant
  const head = { id: makeCommandId(at, random), at, actor: ACTOR, workspace, env }
  return log.append('changes', 0, [encodeCommand({ ...head, type: 'list.expire', data: { id, entries } })])
}

/** Waits, not for ever, until the command at `seq` is applied: before that the same entries would be found again. */
async function applied({ kv, clock }: ListJobNeeds, tenant: Tenant, seq: Seq, signal: AbortSignal): Promise<void> {
  const deadline = clock.monotonic() + APPLIED_WAIT_MS
  while (seq > 0 && !signal.aborted && clock.monotonic() < deadline) {
    if (((await kv.position(tenant.scope, CHANGES_SOURCE)) ?? seq) >= seq) return
    await clock.sleep(APPLIED_POLL_MS, signal)
  }
}

/** Entries of deleted lists: nobody can see them, so they are dropped as they are found. */
async function clear({ kv }: ListJobNeeds, { scope }: Tenant): Promise<void> {
  const [gone] = await kv.scan(scope, LIST_GONE, { limit: 1 })
  if (gone === undefined) return
  const [, id] = gone.key
  for (let cleared = 0; cleared < CLEARED_PER_ROUND; cleared += ENTRIES_PER_CALL_MAX) {
    const page = await kv.scan<PackedEntry>(scope, LIST_ENTRY, { ...under(id), limit: ENTRIES_PER_CALL_MAX })
    const drop = page.flatMap(({ key, value }): KvKey[] => {
      const expiresAt = entryExpiry(value)
      return expiresAt === null ? [key] : [key, dueKey(expiresAt, id, key[1].slice(id.length + 1))]
    })
    const isLast = page.length < ENTRIES_PER_CALL_MAX
    await kv.commit([{ scope, drop: isLast ? [...drop, listGoneKey(id)] : drop }])
    if (isLast) return
  }
}
