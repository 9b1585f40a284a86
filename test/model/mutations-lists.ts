// What must go wrong with lists when the side effects of rules are moved carelessly.

import type { Kv, KvKey } from '../../src/kv/kv.ts'
import { type Mutation, onKv } from './mutations.ts'

const PLACES = 'list-effects'

export const LIST_MUTATIONS: readonly Mutation[] = [
  {
    rule: 'R8',
    what: 'the side effects of adopted decisions are taken for done',
    seed: 110,
    from: 30,
    tamper: {
      ports(of, ports) {
        if (of !== 'engine') return ports
        const { log } = ports
        // An owner reads `events` only while it takes over.
        let takesOver = false
        return {
          ...ports,
          log: {
            ...log,
            async read(topic, ...more) {
              takesOver = topic === 'events'
              return log.read(topic, ...more)
            },
            append: async (topic, ...more) => (topic === 'changes' && takesOver ? 0 : log.append(topic, ...more)),
          },
        }
      },
    },
    options: { lists: true },
  },
  {
    rule: 'R8',
    what: 'side effects that come again are applied again',
    seed: 10,
    tamper: onKv('control', (kv) => ({
      get: (async (scope: string, keys: readonly KvKey[]) => {
        const found = await kv.get(scope, keys)
        return found.map((entry, i) => (keys[i]?.[0] === PLACES ? null : entry))
      }) as Kv['get'],
    })),
    options: { lists: true },
  },
]
