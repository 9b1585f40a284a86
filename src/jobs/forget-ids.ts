// Takes erased visitors out of what is kept of commands: of `changes`, for good, of the newest deltas of lists, and of answers that may
// be asked for again. In the place of an id comes a name that says nothing of the visitor and is always the same, so that applying
// the commands again comes to what it came to; what was written about the visitor and the names of its events go without one.

import { createHash } from 'node:crypto'
import { ENVS, type Env } from '../domain/event.ts'
import { BASE62, homePartition, makeRequestId } from '../domain/ids.ts'
import type { Kv, Put } from '../kv/kv.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'
import {
  COMMAND_OUTCOME,
  type Command,
  type CommandOutcome,
  decodeCommand,
  encodeCommand,
  OUTCOME_TTL_MS,
} from '../records/commands.ts'
import { erasedId, readTombstone } from '../records/erasures.ts'
import { IDEMPOTENCY, type Kept, keptUntil } from '../records/idempotency.ts'
import { LIST_DELTA, type ListDelta } from '../records/list-deltas.ts'
import { CHANGES_READER, SYSTEM, scanAll, tenantScope } from '../records/scopes.ts'
import { MOVED, type Moved, timeOf } from '../records/splits.ts'
import { listWorkspaces } from '../records/workspaces.ts'

export interface ForgetIdsNeeds {
  readonly kv: Pick<Kv, 'get' | 'scan' | 'position' | 'commit'>
  readonly log: Pick<Log, 'read' | 'replace'>
  readonly clock: Pick<Clock, 'now'>
  readonly partitions: number
}

/** The text without erased visitors of the environment. */
export type Rename = (workspace: string, env: Env, text: string) => Promise<string>

const BATCH = { recordsMax: 200, bytesMax: 2_000_000, waitMsMax: 0 }
const VISITOR_ID = /pv_[0-9A-Za-z]{20}/g
/** In effects on lists: whose event it was is known to nobody once it is erased. */
const NO_REQUEST = `req_${'0'.repeat(26)}`

/** Twice equals once. */
export async function forgetIds(needs: ForgetIdsNeeds, signal: AbortSignal): Promise<void> {
  const rename = openRename(needs)
  await forgetInChanges(needs, rename, signal)
  for (const { id } of await listWorkspaces(needs.kv)) {
    for (const env of ENVS) {
      if (signal.aborted) return
      const at = { workspace: id, env }
      const now = needs.clock.now()
      await forgetIn<ListDelta>(needs, rename, at, LIST_DELTA, () => undefined)
      await forgetIn<Kept>(needs, rename, at, IDEMPOTENCY, (kept) => keptUntil(kept) - now)
      await forgetIn<CommandOutcome>(needs, rename, at, COMMAND_OUTCOME, (one) =>
        one.ok ? one.at + OUTCOME_TTL_MS - now : OUTCOME_TTL_MS,
      )
      await forgetInSplits(needs, rename, id, env)
    }
  }
}

export function openRename({
  kv,
  partitions,
}: {
  readonly kv: Pick<Kv, 'get' | 'position'>
  readonly partitions: number
}): Rename {
  const known = new Map<string, string | null>()

  async function nameFor(workspace: string, env: Env, visitorId: string): Promise<string | null> {
    const key = erasedId(workspace, env, visitorId)
    const found = known.get(key)
    if (found !== undefined) return found
    const home = homePartition(visitorId, partitions)
    const erased = await readTombstone(kv, home, workspace, env, visitorId)
    const name = erased === null ? null : otherName(key, home, partitions)
    known.set(key, name)
    return name
  }

  return async (workspace, env, text) => {
    let changed = text
    for (const id of new Set(text.match(VISITOR_ID))) {
      const name = await nameFor(workspace, env, id)
      if (name !== null) changed = changed.replaceAll(id, name)
    }
    return changed
  }
}

/** A command without erased visitors, and without requests that only who was told then had to know; the same bytes where there are none. */
export async function withoutErased(rename: Rename, bytes: Uint8Array): Promise<Uint8Array> {
  const text = Buffer.from(bytes).toString('latin1')
  if (!text.includes('pv_') && !text.includes('req_')) return bytes
  const command = decodeCommand(bytes)
  if (typeof command === 'string' || command.env === null) return bytes
  const { workspace, env } = command
  const isErased = async (id: string) => (await rename(workspace, env, id)) !== id
  const before = JSON.stringify(command.data)
  const after = await rename(workspace, env, JSON.stringify(await blanked(command, isErased)))
  return after === before ? bytes : encodeCommand({ ...command, data: JSON.parse(after) })
}

/** What the command says without free text about erased visitors and without the requests that would lead to their events. */
async function blanked(command: Command, isErased: (id: string) => Promise<boolean>): Promise<Command['data']> {
  const { type, data } = command
  const unexplained = async <T extends { readonly value: string; readonly reason?: string }>(entry: T): Promise<T> => {
    if (entry.reason === undefined || entry.reason === '' || !(await isErased(entry.value))) return entry
    return { ...entry, reason: '' }
  }
  if (type === 'list.entries') return { ...data, add: await Promise.all(data.add.map(unexplained)) }
  if (type === 'list.effects') {
    const effects = await Promise.all(data.effects.map(unexplained))
    return { ...data, effects: effects.map((effect) => ({ ...effect, requestId: NO_REQUEST })) }
  }
  if (type === 'visitor.note') {
    if (data.about === null || !(await isErased(data.about))) return data
    return { ...data, before: null, after: null, ...(data.resource === 'event' ? { id: NO_REQUEST } : {}) }
  }
  if (type !== 'visitor.split') return data
  const parts = data.parts.map(async (part) =>
    (await isErased(part.to)) ? { ...part, requestIds: part.requestIds.map(timeAlone) } : part,
  )
  return { ...data, parts: await Promise.all(parts) }
}

/** A request of the same millisecond: when a visitor was first seen is told by its requests. */
const timeAlone = (requestId: string): string =>
  makeRequestId(timeOf(requestId), (bytes) => createHash('sha256').update(requestId).digest().subarray(0, bytes))

/** Only of commands that were applied: before, they need the id. */
async function forgetInChanges({ kv, log }: ForgetIdsNeeds, rename: Rename, signal: AbortSignal): Promise<void> {
  if (log.replace === undefined) return
  const applied = (await kv.position(SYSTEM, CHANGES_READER)) ?? 0
  let position = 0
  while (!signal.aborted) {
    const records = await log.read('changes', 0, position, BATCH)
    for (const { seq, bytes } of records) {
      if (seq > applied || signal.aborted) return
      position = seq
      const changed = await withoutErased(rename, bytes)
      if (changed !== bytes) await log.replace('changes', 0, seq, changed)
    }
    if (records.length === 0) return
  }
}

/**
 * What lies in a collection as JSON. `ttlOf`: for how long it stays, milliseconds; undefined: for good. A replica of lists that reads
 * of the other name keeps an id that nobody will have again.
 */
async function forgetIn<T>(
  { kv }: ForgetIdsNeeds,
  rename: Rename,
  { workspace, env }: { readonly workspace: string; readonly env: Env },
  collection: string,
  ttlOf: (value: T) => number | undefined,
): Promise<void> {
  const scope = tenantScope(workspace, env)
  for await (const { key, value, version } of scanAll<T>(kv, scope, collection)) {
    const text = JSON.stringify(value)
    const changed = await rename(workspace, env, text)
    if (changed === text) continue
    const ttlMs = ttlOf(value)
    const put: Put = { key, value: JSON.parse(changed), ...(ttlMs === undefined ? {} : { ttlMs: Math.max(1, ttlMs) }) }
    await kv.commit([{ scope, check: [[key, version]], put: [put] }])
  }
}

/** Whose the events of a split are: of nobody, where that visitor was erased. */
async function forgetInSplits(
  { kv, clock }: ForgetIdsNeeds,
  rename: Rename,
  workspace: string,
  env: Env,
): Promise<void> {
  const scope = tenantScope(workspace, env)
  for await (const { key, value, version } of scanAll<Moved>(kv, scope, MOVED)) {
    const to = await rename(workspace, env, value.to)
    if (to === value.to) continue
    const ttlMs = Math.max(1, value.until - clock.now())
    const renamed: Moved = { ...value, to, isErased: true }
    await kv.commit([{ scope, check: [[key, version]], put: [{ key, value: renamed, ttlMs }] }])
  }
}

/** Of the same partition, where the orders of a refold go. */
function otherName(key: string, home: number, partitions: number): string {
  for (let n = 0; ; n++) {
    const digest = createHash('sha256').update(`${n} ${key}`).digest()
    const name = `pv_${Array.from(digest.subarray(0, 20), (byte) => BASE62[byte % BASE62.length]).join('')}`
    if (homePartition(name, partitions) === home) return name
  }
}
