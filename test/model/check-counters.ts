// Counters are a fold of decisions: what the kv has, and what each event was told of its visitor, against counting anew.

import { unpackCounted } from '../../src/engine/velocity/counted.ts'
import { collectSeen, countEvents, unpackCounters } from '../../src/engine/velocity/counters.ts'
import { fromRow } from '../../src/events/row.ts'
import { DAY_MS } from '../../src/lib/durations.ts'
import { partitionScope, VELOCITY } from '../../src/records/partitions.ts'
import type { Facts } from './checks.ts'
import { visitorOf } from './decided.ts'

const WINDOWS = { '5m': 300_000, '1h': 3_600_000, '24h': DAY_MS } as const

const within = (times: readonly number[], at: number, windowMs: number): number =>
  times.filter((time) => time > at - windowMs && time <= at).length

/** What was counted under one key of a partition. */
interface Held {
  readonly partition: number
  readonly key: string
  readonly seen: { readonly at: number; readonly visitor: number; readonly whose: string }[]
}

export async function checkCounters(facts: Facts): Promise<void> {
  await checkStored(facts)
  checkTold(facts)
}

async function checkStored({ raw, decided, problem }: Facts): Promise<void> {
  const held = new Map<string, Held>()
  const visits = new Map<string, Set<number>>()
  for (const { partition, item } of decided.events()) {
    if (item.counted === undefined) continue
    const whose = visitorOf(item)
    const { at, ipKey, linkedKey, visitor } = unpackCounted(item.counted)
    visits.set(whose, (visits.get(whose) ?? new Set()).add(at))
    for (const key of linkedKey === 0 ? [ipKey] : [ipKey, linkedKey]) {
      const name = `${partition} ${key}`
      const one = held.get(name) ?? { partition, key: String(key), seen: [] }
      held.set(name, one)
      one.seen.push({ at, visitor, whose })
    }
  }
  for (const [name, { partition, key, seen }] of held) {
    // Whoever is erased takes with it what it was counted for.
    const isErased = (whose: string) => decided.erasureOf(whose) !== undefined
    const left = seen.filter(({ whose }) => !isErased(whose))
    if (left.length === 0) continue
    const [stored] = await raw.kv.get<[number, Uint8Array]>(partitionScope(partition), [[VELOCITY, key]])
    const at = Math.max(...left.map((one) => one.at))
    const visitors = new Set<number>()
    let events = 0
    if (stored) {
      const counters = unpackCounters(stored.value[1])
      events = countEvents(counters, at, DAY_MS)
      collectSeen(counters, 0, at, visitors)
    }
    const right = [left.length, new Set(left.map(({ visitor }) => visitor)).size]
    // It takes times, not events: of two visitors in one millisecond it may take the other's and leave its own.
    const isUnclear = seen.some(
      ({ whose }) => isErased(whose) && seen.some((other) => other.whose !== whose && visits.get(whose)?.has(other.at)),
    )
    if ((events !== right[0] && !isUnclear) || visitors.size !== right[1])
      problem('counters are a fold of decisions', `${name}: ${events} of ${visitors.size}, not ${right.join(' of ')}`)
  }
}

/**
 * One partition decides all events of a visitor's record, in order, and events of one that was never merged are told exactly those.
 * Of several that are one visitor each event is told its own record's, and as many of the others as were stored by then.
 */
function checkTold(facts: Facts): void {
  const { decided, problem } = facts
  const groupOf = mergedGroups(facts)
  const everybody = new Map<string, number[]>()
  for (const { item, cells } of decided.events()) {
    if (item.counted === undefined) continue
    const group = groupOf(`${item.env}/${item.visitorId}`)
    if (group === null) continue
    const { timestamp } = fromRow(cells() as Parameters<typeof fromRow>[0])
    everybody.set(group, [...(everybody.get(group) ?? []), timestamp])
  }
  const visits = new Map<string, number[]>()
  for (const { partition, item, cells } of decided.events()) {
    if (item.counted === undefined) continue
    const event = fromRow(cells() as Parameters<typeof fromRow>[0])
    const visitor = `${partition} ${event.env} ${item.visitorId}`
    const times = visits.get(visitor) ?? []
    visits.set(visitor, times)
    times.push(event.timestamp)
    for (const [window, windowMs] of Object.entries(WINDOWS)) {
      const told = event.velocity?.[`visitor.events.${window as keyof typeof WINDOWS}`]
      const right = within(times, event.timestamp, windowMs)
      const group = groupOf(`${item.env}/${item.visitorId}`)
      const most = group === null ? right : within(everybody.get(group) ?? [], event.timestamp, windowMs)
      if (typeof told !== 'number' || told < right || told > most)
        problem('counters are a fold of decisions', `${event.requestId}: ${told} in ${window}, not ${right}`)
    }
  }
}

/** Who may ever have been one with somebody, as the name of the group; null: nobody. */
function mergedGroups({ changes, decided }: Facts): (id: string) => string | null {
  const parents = new Map<string, string>()
  const rootOf = (id: string): string => {
    const parent = parents.get(id) ?? id
    return parent === id ? id : rootOf(parent)
  }
  const join = (a: string, b: string) => {
    parents.set(a, parents.get(a) ?? a)
    parents.set(rootOf(b), rootOf(a))
  }
  for (const { draft } of changes) {
    if (draft.type !== 'visitor.merge') continue
    join(`${draft.env}/${draft.data.survivor}`, `${draft.env}/${draft.data.visitorId}`)
  }
  for (const { item } of decided.events()) {
    for (const effect of item.effects ?? [])
      if (effect.type === 'heal') join(`${item.env}/${effect.survivor}`, `${item.env}/${effect.visitorId}`)
  }
  for (const { split } of decided.splits()) join(`${split.env}/${split.visitorId}`, `${split.env}/${split.to}`)
  return (id) => (parents.has(id) ? rootOf(id) : null)
}
