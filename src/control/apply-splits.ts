// A split: some visits of a visitor turn out to be another's. Whose each event is, is decided here, in the order of `changes`, and
// ordered from the owners of the partitions that hold the records.

import type { Env } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import type { KvKey, Put } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import { aliasKey, type Correction, groupOf, mergedKey } from '../records/aliases.ts'
import { encodeSplitting } from '../records/identification.ts'
import { tenantScope } from '../records/scopes.ts'
import {
  byTime,
  type Moved,
  movedKey,
  type Parting,
  partingKey,
  readMoved,
  repeatedSplit,
  type SplitPart,
  splitFromKey,
  splitKey,
  timeOf,
  visitNumbers,
} from '../records/splits.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { type Change, type CommandOf, type Order, type Read, refuse } from './change.ts'
import { addCorrection, isForgotten } from './corrections.ts'

type Data = CommandOf<'visitor.split'>['data']

export async function applyVisitorSplit(command: CommandOf<'visitor.split'>, seq: number, read: Read): Promise<Change> {
  const { workspace, at, actor, data } = command
  const env = must(command.env, 'an environment')
  const { parts, partitions, keptMs } = data
  if ((await readWorkspace(read, workspace)) === null) return refuse(seq, 'not_found')
  const group = await groupOf(read, workspace, env, data.visitorId)
  if (await isForgotten(read, { workspace, env }, group)) return refuse(seq, 'not_found')
  const all = parts.flatMap(({ requestIds }) => requestIds)
  const main = parts[0]?.to ?? ''
  const fits = ({ from, to }: Data['parts'][number]) =>
    homePartition(to, partitions) === homePartition(from, partitions)
  if (new Set(all).size !== all.length || !parts.every(fits)) return refuse(seq, 'validation_error')
  const repeated = await repeatedSplit(read, workspace, env, group, all)
  if (repeated !== null) {
    return { outcome: { ok: true, seq, at, split: { visitorId: repeated[0].to, moved: all.length } }, effects: [] }
  }
  const moved = await readMoved(read, workspace, env, all)
  // Asked for while another split was on its way.
  const isOther = (from: string, i: number) => !group.includes(from) || (moved[i] ?? { to: from }).to !== from
  const owners = parts.flatMap(({ from, requestIds }) => requestIds.map(() => from))
  const other = owners.findIndex(isOther)
  // The field is the id itself: only the caller knows where it stands.
  if (other >= 0) return refuse(seq, 'validation_error', 'This event is not one of the visitor.', all[other])

  const scope = tenantScope(workspace, env)
  const put: Put[] = []
  const known = await read.get<Parting>(
    scope,
    parts.map(({ to }) => partingKey(to)),
  )
  const orders: Order[] = []
  for (const [i, { from, to, requestIds, uncounted = [], generations }] of parts.entries()) {
    const survivor = to === main ? null : main
    const part: SplitPart = { to, from, survivor, seq, at, requestIds: byTime(requestIds), generations }
    const firstSeenAt = Math.min(...requestIds.map(timeOf))
    const numbers = visitNumbers(part.requestIds, uncounted)
    part.requestIds.forEach((requestId, j) => {
      const value: Moved = { to, seq, firstSeenAt, visit: must(numbers[j], 'a number of visits'), until: at + keptMs }
      put.push({ key: movedKey(requestId), value, ttlMs: keptMs })
    })
    const [before] = await read.get<readonly string[]>(scope, [splitFromKey(from)])
    put.push({ key: splitKey(to), value: part }, { key: splitFromKey(from), value: [...(before?.value ?? []), to] })
    if (survivor !== null) put.push({ key: aliasKey(to), value: survivor })
    const order = { workspace, env, visitorId: from, to, at, requestIds: part.requestIds, uncounted, generations }
    const isMerged = parts.length > 1
    orders.push({
      partition: homePartition(from, partitions),
      bytes: encodeSplitting({ ...order, survivor: isMerged ? main : null, parting: known[i]?.value ?? null }),
    })
  }
  if (parts.length > 1) put.push({ key: mergedKey(main), value: parts.slice(1).map(({ to }) => to) })
  const correction: Correction = { visitors: [group[0], main], same: false, at, actor, seq }
  const corrected = await addCorrection(read, scope, correction)
  return {
    outcome: { ok: true, seq, at, split: { visitorId: main, moved: all.length } },
    effects: [
      {
        scope,
        put: [...put, ...corrected.put],
        drop: [...parts.map(({ to }) => partingKey(to)), ...corrected.drop],
      },
    ],
    orders,
    audit: {
      resource: 'visitor',
      id: group[0],
      action: 'split',
      before: null,
      after: { visitorId: main, moved: all.length },
    },
  }
}

interface Unsplit {
  readonly put: Put[]
  readonly drop: KvKey[]
  /** Records that name one of them. */
  readonly named: { readonly visitorId: string; readonly erased: string }[]
}

/** What is left of splits that forgotten visitors had part in. Whose their events were stays known: they are nobody's. */
export async function forgetSplits(
  read: Read,
  { workspace, env }: { readonly workspace: string; readonly env: Env },
  ids: readonly string[],
): Promise<Unsplit> {
  const scope = tenantScope(workspace, env)
  const put: Put[] = []
  const drop: KvKey[] = []
  const named: { visitorId: string; erased: string }[] = []
  const others = (some: readonly string[] | undefined) => (some ?? []).filter((id) => !ids.includes(id))
  for (const id of ids) {
    const [made] = await read.get<SplitPart>(scope, [splitKey(id)])
    const [children] = await read.get<readonly string[]>(scope, [splitFromKey(id)])
    const from = made?.value.from ?? null
    if (made) drop.push(splitKey(id))
    if (children) drop.push(splitFromKey(id))
    for (const part of await read.get<SplitPart>(scope, others(children?.value).map(splitKey))) {
      if (part) put.push({ key: splitKey(part.value.to), value: { ...part.value, from: null } })
    }
    if (from === null || ids.includes(from)) continue
    named.push({ visitorId: from, erased: id })
    const [siblings] = await read.get<readonly string[]>(scope, [splitFromKey(from)])
    const left = others(siblings?.value)
    if (left.length > 0) put.push({ key: splitFromKey(from), value: left })
    else drop.push(splitFromKey(from))
  }
  return { put, drop, named }
}
