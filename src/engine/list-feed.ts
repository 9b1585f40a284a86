// The lists this thread decides by: read when it starts, followed delta by delta when a hint or a poll tells of one, read anew
// where deltas were missed, and handed to the decider with its next step.

import { type Bus, pollEveryMs } from '../bus/bus.ts'
import { ENVS, type Env } from '../domain/event.ts'
import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import { rulesetName } from '../records/evaluators.ts'
import { onHint } from '../records/hints.ts'
import { type ListDelta, NO_LISTS, readDeltas, readListsMeta } from '../records/list-deltas.ts'
import { pagesOf } from '../records/list-source.ts'
import { readLists, type StoredList } from '../records/lists.ts'
import { listWorkspaces } from '../records/workspaces.ts'
import { createListKeys, type ListKeys } from './list-keys.ts'
import { type EntryState, type ListReplica, loadReplica } from './list-replica.ts'
import type { ListNews, ListPart } from './list-views.ts'

export interface ListFeedNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan'>
  readonly bus: Bus
  readonly clock: Clock
  /** DIGEST_KEY_WORDS random numbers, secret. */
  readonly key: readonly number[]
  readonly report: {
    /** Deltas applied, or lists read anew. */
    followed(deltas: number, read: number): void
    failed(error: unknown): void
  }
}

/** What one thread was told; empty for a new one. */
export interface ToldLists {
  version: number
  readonly tenants: Map<
    string,
    { version: number; readonly lists: Map<string, { generation: number; changes: number }> }
  >
}
export const newToldLists = (): ToldLists => ({ version: 0, tenants: new Map() })

export interface ListFeed {
  /** What a thread has not been told of; noted as told. */
  news(told: ToldLists): readonly ListNews[]
  stop(): Promise<void>
}

interface Tenant {
  readonly workspace: string
  readonly env: Env
  readonly name: string
  /** The last delta applied; null: to be read anew. */
  seq: number | null
  readonly lists: Map<string, { readonly replica: ListReplica; version: number }>
  version: number
  /** Version at which a list last went. */
  goneAt: number
  /** Lists are being read anew: until deltas have caught up with that, threads are told nothing. */
  reading: boolean
  /** Refreshes follow one another. */
  refreshing: Promise<void>
}

const POLL_MS = 1_000

/** Resolves when all lists are read. */
export async function openListFeed({ kv, bus, clock, key, report }: ListFeedNeeds): Promise<ListFeed> {
  const keys: ListKeys = createListKeys(key)
  const tenants = new Map<string, Tenant>()
  const stopped = new AbortController()
  const tidying = new Set<Promise<void>>()
  /** Counts whatever threads have to be told. */
  let version = 0
  let generation = 0
  const nextGeneration = () => ++generation

  function tenantOf(workspace: string, env: Env): Tenant {
    const name = rulesetName(workspace, env)
    const known = tenants.get(name)
    if (known !== undefined) return known
    const lists = new Map()
    const state = { seq: null, lists, version: 0, goneAt: 0, reading: false, refreshing: Promise.resolve() }
    const made: Tenant = { workspace, env, name, ...state }
    tenants.set(name, made)
    return made
  }

  function refresh(workspace: string, env: Env): Promise<void> {
    const tenant = tenantOf(workspace, env)
    tenant.refreshing = tenant.refreshing.catch(() => undefined).then(() => follow(tenant))
    return tenant.refreshing
  }

  async function follow(tenant: Tenant): Promise<void> {
    const { workspace, env } = tenant
    for (;;) {
      const { last } = await readListsMeta(kv, workspace, env)
      if (tenant.seq === last || stopped.signal.aborted) break
      // Nothing where there was something: the store was emptied. Decisions keep what they have until it is rebuilt.
      if (last === NO_LISTS.last && tenant.seq !== null) break
      // A position that went back is another store's: it was restored or emptied.
      const isBehind = tenant.seq !== null && tenant.seq < last
      const deltas = isBehind ? await readDeltas(kv, workspace, env, tenant.seq as number, last) : null
      if (deltas === null) await readAnew(tenant, last)
      else for (const delta of deltas) take(tenant, delta)
      if (deltas !== null) report.followed(deltas.length, 0)
    }
    if (!tenant.reading) return
    tenant.reading = false
    touch(tenant, null)
  }

  function touch(tenant: Tenant, id: string | null): void {
    version += 1
    tenant.version = version
    const list = id === null ? undefined : tenant.lists.get(id)
    if (list !== undefined) list.version = version
    else tenant.goneAt = version
  }

  function take(tenant: Tenant, { seq, changes }: ListDelta): void {
    for (const { id, name, type, gone, added, removed, expired } of changes) {
      if (gone) tenant.lists.delete(id)
      else {
        if (!tenant.lists.has(id))
          hold(tenant, loadReplica({ id, name, type, keys, clock, nextGeneration }, 0).finish())
        const entries: EntryState[] = [
          ...[...removed, ...expired.map(({ value }) => value)].map((value) => ({ value, expiresAt: 'gone' as const })),
          // Last: what was overdue may have been added again by the same command.
          ...added.map(({ value, expiresAt }) => ({ value, expiresAt })),
        ]
        const replica = tenant.lists.get(id)?.replica
        replica?.apply(entries)
        if (replica !== undefined) tidy(tenant, replica)
      }
      touch(tenant, gone ? null : id)
    }
    tenant.seq = seq
  }

  const hold = (tenant: Tenant, replica: ListReplica) => void tenant.lists.set(replica.id, { replica, version })

  /** Makes a new table where it is time, beside everything else. */
  function tidy(tenant: Tenant, replica: ListReplica): void {
    const before = replica.generation()
    const work = replica
      .tidy()
      .then(() => {
        if (replica.generation() !== before && tenant.lists.get(replica.id)?.replica === replica) {
          touch(tenant, replica.id)
        }
      })
      .catch(report.failed)
      .finally(() => tidying.delete(work))
    tidying.add(work)
  }

  /** Reads every list whose entries may have changed since; the deltas after `last` make right what changes meanwhile. */
  async function readAnew(tenant: Tenant, last: number): Promise<void> {
    const { workspace, env } = tenant
    tenant.reading = true
    const stored = await readLists(kv, workspace, env)
    const isCurrent = (list: StoredList) =>
      tenant.seq !== null && tenant.seq <= last && tenant.lists.has(list.id) && list.version <= tenant.seq
    let read = 0
    for (const list of stored.filter((one) => !isCurrent(one))) {
      const about = { id: list.id, name: list.name, type: list.type, keys, clock, nextGeneration }
      const load = loadReplica(about, list.entryCount)
      for await (const page of pagesOf(kv, workspace, env, list.id)) {
        load.add(page)
        if (stopped.signal.aborted) return
        // Pages of a store in the same process come without a pause.
        await clock.sleep(0)
      }
      hold(tenant, load.finish())
      touch(tenant, list.id)
      read += 1
    }
    const ids = new Set(stored.map(({ id }) => id))
    for (const id of tenant.lists.keys()) if (!ids.has(id)) tenant.lists.delete(id)
    tenant.seq = last
    report.followed(0, read)
  }

  async function refreshAll(): Promise<void> {
    for (const { id } of await listWorkspaces(kv)) await Promise.all(ENVS.map((env) => refresh(id, env)))
  }

  const unsubscribe = onHint(bus, 'lists.changed', ({ workspace, env }) => {
    refresh(workspace, env).catch(report.failed)
  })
  await refreshAll()
  async function poll(): Promise<void> {
    while (!stopped.signal.aborted) {
      await nextBeat(clock, pollEveryMs(bus, POLL_MS), stopped.signal)
      await refreshAll().catch(report.failed)
    }
  }
  const polling = poll()

  function newsOf(tenant: Tenant, told: ToldLists): ListNews {
    const known = told.tenants.get(tenant.name) ?? { version: 0, lists: new Map() }
    told.tenants.set(tenant.name, known)
    const parts: ListPart[] = []
    for (const [id, { replica, version }] of tenant.lists) {
      if (version > known.version) parts.push(partOf(replica, known.lists, id))
    }
    const ids = tenant.goneAt > known.version ? [...tenant.lists.keys()] : null
    if (ids !== null) for (const id of known.lists.keys()) if (!tenant.lists.has(id)) known.lists.delete(id)
    known.version = tenant.version
    return { workspace: tenant.workspace, env: tenant.env, key, parts, ids }
  }

  return {
    news(told) {
      if (told.version === version) return []
      told.version = version
      const changed = [...tenants.values()].filter(
        (tenant) => !tenant.reading && tenant.version > (told.tenants.get(tenant.name)?.version ?? 0),
      )
      return changed.map((tenant) => newsOf(tenant, told))
    },
    async stop() {
      unsubscribe()
      stopped.abort()
      await polling
      await Promise.all([...tenants.values()].map(({ refreshing }) => refreshing.catch(() => undefined)))
      await Promise.all(tidying)
    },
  }
}

function partOf(
  replica: ListReplica,
  known: Map<string, { generation: number; changes: number }>,
  id: string,
): ListPart {
  const { name, type } = replica
  const changes = replica.changes()
  const before = known.get(id)
  const generation = replica.generation()
  known.set(id, { generation, changes: changes.length })
  const isNew = before?.generation !== generation
  return {
    id,
    name,
    type,
    ...(isNew ? { base: replica.base() } : {}),
    changes: isNew ? [...changes] : changes.slice(before.changes),
  }
}
