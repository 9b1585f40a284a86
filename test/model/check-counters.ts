// Counters are a fold of decisions: what the kv has, and what each event was told of its visitor, against counting anew.

import { unpackCounted } from '../../src/engine/velocity/counted.ts'
import { collectSeen, countEvents, unpackCounters } from '../../src/engine/velocity/counters.ts'
import { DAY_MS } from '../../src/engine/velocity/moments.ts'
import { fromRow } from '../../src/events/row.ts'
import { partitionScope, VELOCITY } from '../../src/records/partitions.ts'
import type { Facts } from './checks.ts'
import { type DecidedEvent, visitorOf } from './decided.ts'

const WINDOWS = { '5m': 300_000, '1h': 3_600_000, '24h': DAY_MS } as const

const within = (times: readonly number[], at: number, windowMs: number): number =>
  times.filter((time) => time > at - windowMs && time <= at).length

/** What is counted under one key. */
interface Held {
  readonly event: DecidedEvent
  readonly latest: number
  readonly seen: (readonly [at: number, visitor: number])[]
}

export async function checkCounters(facts: Facts): Promise<void> {
  await checkStored(facts)
  checkTold(facts)
}

async function checkStored({ raw, decided, problem }: Facts): Promise<void> {
  const held = new Map<string, Held>()
  for (const event of decided.events()) {
    const { counted } = event.item
    if (counted === undefined) continue
    const { at, ipKey, linkedKey, visitor } = unpackCounted(counted)
    for (const key of linkedKey === 0 ? [ipKey] : [ipKey, linkedKey]) {
      const name = `${event.partition} ${key}`
      const { seen, latest }: Pick<Held, 'seen' | 'latest'> = held.get(name) ?? { seen: [], latest: 0 }
      // Of those of one millisecond an erased visitor may leave its own and take another's.
      held.set(name, { event, seen, latest: Math.max(latest, at) })
      // Whoever is erased takes with it what it was counted for.
      if (decided.erasureOf(visitorOf(event.item)) === undefined) seen.push([at, visitor])
    }
  }
  for (const [name, { event, seen, latest: at }] of held) {
    if (seen.length === 0) continue
    const [, key] = name.split(' ') as [string, string]
    const [stored] = await raw.kv.get<[number, Uint8Array]>(partitionScope(event.partition), [[VELOCITY, key]])
    const visitors = new Set<number>()
    let events = 0
    if (stored) {
      const counters = unpackCounters(stored.value[1])
      events = countEvents(counters, at, DAY_MS)
      collectSeen(counters, 0, at, visitors)
    }
    const right = [seen.length, new Set(seen.map(([, visitor]) => visitor)).size]
    if (events !== right[0] || visitors.size !== right[1])
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
  for (const { split } of decided.splits()) join(`${split.env}/${split.visitorId}`, `${split.env}/${split.to}`)
  return (id) => (parents.has(id) ? rootOf(id) : null)
}
