// Commands about visitors: one is merged into another, or forgotten. Who stands for whom is decided here, in the order of
// `changes`, and ordered from the owners of the partitions, who decide what visits come to.

import { createHash } from 'node:crypto'
import type { Env } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import type { KvKey, Put } from '../kv/kv.ts'
import { must } from '../lib/must.ts'
import {
  ALIASES_MAX,
  aliasKey,
  CORRECTION_OF,
  CORRECTIONS,
  type Correction,
  correctionKey,
  groupOf,
  healedKey,
  mergedKey,
} from '../records/aliases.ts'
import { encodeAliasing, encodeErasure, encodeUnnaming } from '../records/identification.ts'
import { scanAll, tenantScope, under } from '../records/scopes.ts'
import { readWorkspace } from '../records/workspaces.ts'
import { forgetSplits } from './apply-splits.ts'
import { type Change, type CommandOf, type Order, type Read, refuse } from './change.ts'
import { addCorrection, correctionKeysOf, forgottenKey, isForgotten } from './corrections.ts'
import { moveMemberships } from './memberships.ts'

export async function applyVisitorMerge(command: CommandOf<'visitor.merge'>, seq: number, read: Read): Promise<Change> {
  const { workspace, at, actor, data } = command
  const env = must(command.env, 'an environment')
  if ((await readWorkspace(read, workspace)) === null) return refuse(seq, 'not_found')
  const [survivor, ...aliases] = await groupOf(read, workspace, env, data.survivor)
  const joining = await groupOf(read, workspace, env, data.visitorId)
  if (joining[0] === survivor) return { outcome: { ok: true, seq, at }, effects: [] }
  if (await isForgotten(read, { workspace, env }, [survivor, joining[0]])) return refuse(seq, 'not_found')
  if (aliases.length + joining.length > ALIASES_MAX) {
    return refuse(seq, 'resource_limit_reached', `A visitor may have at most ${ALIASES_MAX} others merged into it.`)
  }
  const scope = tenantScope(workspace, env)
  const moved = await moveMemberships(command, seq, read, joining, survivor)
  const correction: Correction = { visitors: [survivor, joining[0]], same: true, at, actor, seq }
  const corrected = await addCorrection(read, scope, correction)
  // The survivor's as well: what is said of its visits from now on counts those of all.
  const orders: Order[] = [...joining, survivor].map((visitorId) => ({
    partition: homePartition(visitorId, data.partitions),
    bytes: encodeAliasing({ workspace, env, visitorId, survivor, at }),
  }))
  return {
    ...moved,
    outcome: { ok: true, seq, at },
    effects: [
      {
        scope,
        put: [
          ...(moved.effects[0]?.put ?? []),
          ...joining.map((id) => ({ key: aliasKey(id), value: survivor })),
          { key: mergedKey(survivor), value: [...aliases, ...joining] },
          ...corrected.put,
        ],
        drop: [...(moved.effects[0]?.drop ?? []), mergedKey(joining[0]), ...corrected.drop],
      },
    ],
    orders,
    audit: {
      resource: 'visitor',
      id: survivor,
      action: 'merge',
      before: null,
      after: { visitorId: joining[0] },
    },
  }
}

interface Forgotten {
  readonly put: readonly Put[]
  readonly drop: readonly KvKey[]
  readonly orders: readonly Order[]
  readonly aliases: readonly string[]
}

interface Place {
  readonly workspace: string
  readonly env: Env
  readonly atMs: number
}

/** The same for somebody who was never part of a merge. */
export const forgetAlone = ({ workspace, env }: Place, visitorId: string): Forgotten => ({
  put: [{ key: forgottenKey(workspace, env, visitorId), value: true }],
  drop: [],
  orders: [],
  aliases: [],
})

/** What is left of a visitor besides its memberships, and the orders to erase whoever is one with it. Twice equals once. */
export async function applyForgetting(
  read: Read,
  at: Place,
  { visitorId, partitions, survivor: erasedWith }: CommandOf<'list.forget'>['data'],
): Promise<Forgotten> {
  const { workspace, env, atMs } = at
  const scope = tenantScope(workspace, env)
  const [survivor, ...others] = await groupOf(read, workspace, env, visitorId)
  const put: Put[] = [{ key: forgottenKey(workspace, env, visitorId), value: true }]
  const drop: KvKey[] = []
  const isAlias = survivor !== visitorId
  if (isAlias) {
    drop.push(aliasKey(visitorId))
    put.push({ key: mergedKey(survivor), value: others.filter((id) => id !== visitorId) })
  }
  const aliases = isAlias ? [] : others
  if (!isAlias) drop.push(mergedKey(visitorId), ...aliases.map(aliasKey))
  drop.push(...[visitorId, ...aliases].map(healedKey))

  const splits = await forgetSplits(read, at, [visitorId, ...aliases])
  put.push(...splits.put)
  drop.push(...splits.drop)

  const corrections = new Map<number, Correction>()
  for (const id of [visitorId, ...aliases]) {
    for await (const { key } of scanAll(read, scope, CORRECTION_OF, under(id))) {
      const seq = Number(key[1].slice(id.length + 1))
      const [entry] = await read.get<Correction>(scope, [correctionKey(seq)])
      if (entry) corrections.set(seq, entry.value)
    }
  }
  if (corrections.size > 0) {
    const [entry] = await read.get<number>(scope, [CORRECTIONS])
    for (const correction of corrections.values()) drop.push(...correctionKeysOf(correction))
    put.push({ key: CORRECTIONS, value: Math.max(0, (entry?.value ?? 0) - corrections.size) })
  }
  const homeOf = (id: string) => homePartition(id, must(partitions, 'the number of partitions'))
  const erase = (id: string): Order => ({
    partition: homeOf(id),
    bytes: encodeErasure({ erasureId: erasureIdOf(visitorId, id), workspace, env, visitorId: id, at: atMs }),
  })
  // It had stood for those it was merged with before.
  const left = isAlias && erasedWith === undefined ? [survivor, ...others.filter((id) => id !== visitorId)] : []
  const named = [...splits.named, ...left.map((id) => ({ visitorId: id, erased: visitorId }))]
  const unname = (one: (typeof named)[number]): Order => ({
    partition: homeOf(one.visitorId),
    bytes: encodeUnnaming({ workspace, env, ...one }),
  })
  const erased = isAlias && erasedWith !== undefined ? [survivor] : aliases
  return { put, drop, aliases, orders: [...named.map(unname), ...erased.map(erase)] }
}

const ERASURE_ID_CHARS = 20
/** The same however often it is asked for. */
const erasureIdOf = (survivor: string, alias: string): string =>
  `era_${createHash('sha256').update(`${survivor}/${alias}`).digest('hex').slice(0, ERASURE_ID_CHARS)}`
