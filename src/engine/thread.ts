// The partitions of this thread: performs their steps at once, each with what is new in rulesets, lists, data about
// addresses and counters since the step before.

import type { IpData } from '../ipintel/addresses.ts'
import type { Snapshot } from '../rules/snapshot.ts'
import {
  createDecider,
  createStepper,
  type Decider,
  type Step,
  type StepperNeeds,
  type StepResult,
  type Task,
} from './decider.ts'
import { type ListFeed, newToldLists } from './list-feed.ts'
import { type CounterFeed, newToldCounters, noteStep } from './velocity/feed.ts'

export interface ThreadNeeds extends StepperNeeds {
  /** Every ruleset in force. The array is another one when one of them has changed. */
  readonly current: () => readonly Snapshot[]
  readonly listNews: ListFeed['news']
  readonly counterNews: CounterFeed['news']
  /** The object is another one when the data has changed. */
  readonly ipData: () => IpData
}

export function openThread(needs: ThreadNeeds): Decider {
  const step = createStepper(needs)
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

  function ipNews(): Pick<Step, 'ipData'> {
    const ipData = needs.ipData()
    if (ipData === toldIpData) return {}
    toldIpData = ipData
    return { ipData }
  }

  function perform(task: Task): StepResult {
    const counted = needs.counterNews(counters)
    const news = { snapshots: snapshots(), lists: needs.listNews(lists), ...ipNews() }
    noteStep(counters, task)
    const result = step({ ...task, ...news, ...(counted === null ? {} : { counters: counted }) })
    needs.onRecord?.(task.partition, 0)
    return result
  }

  return createDecider(async (task) => perform(task))
}
