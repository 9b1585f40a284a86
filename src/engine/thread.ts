// The partitions of this thread: their turns are taken at once, each with what is new in rulesets, lists, data about
// addresses and counters since the one before.

import type { IpData } from '../ipintel/addresses.ts'
import type { Snapshot } from '../rules/snapshot.ts'
import {
  createDecider,
  createPartitionHost,
  type Decider,
  type PartitionHost,
  type PartitionHostNeeds,
  type Task,
} from './decider.ts'
import { type ListFeed, newToldLists } from './list-feed.ts'
import { type CounterFeed, newToldCounters, noteTurn } from './velocity/feed.ts'

export interface EngineThreadNeeds extends PartitionHostNeeds {
  /** Every ruleset in force. The array is another one when one of them has changed. */
  readonly current: () => readonly Snapshot[]
  readonly listNews: ListFeed['news']
  readonly counterNews: CounterFeed['news']
  /** The object is another one when the data has changed. */
  readonly ipData: () => IpData
}

export function openThread(needs: EngineThreadNeeds): Decider {
  const place = createPartitionHost(needs)
  const told = new Map<string, number>()
  const lists = newToldLists()
  const counters = newToldCounters()
  let toldSnapshots: readonly Snapshot[] = []
  let toldIpData: IpData | null = null

  function snapshots(): readonly Snapshot[] {
    const current = needs.current()
    if (current === toldSnapshots) return []
    toldSnapshots = current
    return current.filter(({ workspace, env, revision }) => {
      const name = `${workspace}/${env}`
      const isKnown = told.get(name) === revision
      told.set(name, revision)
      return !isKnown
    })
  }

  /** null: it is what was told before. */
  function ipNews(): IpData | null {
    const ipData = needs.ipData()
    if (ipData === toldIpData) return null
    toldIpData = ipData
    return ipData
  }

  function perform<T>(task: Task, turn: (place: PartitionHost) => T): T {
    const counted = needs.counterNews(counters)
    place.take({ snapshots: snapshots(), lists: needs.listNews(lists), ipData: ipNews(), counters: counted })
    noteTurn(counters, task)
    const result = turn(place)
    needs.onRecord?.(task.partition, 0)
    return result
  }

  return createDecider(async (task, turn) => perform(task, turn))
}
