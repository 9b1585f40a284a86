// What must go wrong when an engine, which appends decisions behind one another without waiting, takes them for durable too early.

import { type Mutation, onLog } from './mutations.ts'

const ignore = () => undefined

export const PIPELINING_MUTATIONS: readonly Mutation[] = [
  {
    rule: 'R2',
    what: 'answers leave before the flush of their own decisions',
    seed: 3,
    tamper: onLog('engine', (log) => ({
      append(topic, partition, records, opts = {}) {
        let place = 0
        const onPlaced = (last: number) => {
          place = last
          opts.onPlaced?.(last)
        }
        const appended = log.append(topic, partition, records, { ...opts, onPlaced })
        if (place === 0) return appended
        appended.catch(ignore)
        return Promise.resolve(place)
      },
    })),
  },
]
