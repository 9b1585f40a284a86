// Who listens from the start: on embedded storage whoever decides, in a cluster as many others, as far as there are any.

import t from 'tap'
import type { ProcessRole } from '../../src/config.ts'
import { listenersAtStart } from '../../src/shards/listening.ts'

const BOTH: readonly ProcessRole[] = ['ingress', 'engine']

const CASES: [
  what: string,
  process: { isCluster: boolean; roles: readonly ProcessRole[]; shards: number; shardsMin: number },
  listeners: readonly number[],
][] = [
  ['one shard', { isCluster: true, roles: BOTH, shards: 1, shardsMin: 1 }, [0]],
  ['embedded, one of two decides', { isCluster: false, roles: BOTH, shards: 2, shardsMin: 1 }, [0]],
  ['embedded, two of eight decide', { isCluster: false, roles: BOTH, shards: 8, shardsMin: 2 }, [0, 1]],
  ['cluster, one of two decides', { isCluster: true, roles: BOTH, shards: 2, shardsMin: 1 }, [1]],
  ['cluster, two of eight decide', { isCluster: true, roles: BOTH, shards: 8, shardsMin: 2 }, [2, 3]],
  ['cluster, two of three decide', { isCluster: true, roles: BOTH, shards: 3, shardsMin: 2 }, [2]],
  ['cluster, all decide', { isCluster: true, roles: BOTH, shards: 2, shardsMin: 2 }, [0, 1]],
  ['cluster, nobody decides', { isCluster: true, roles: ['ingress'], shards: 4, shardsMin: 1 }, [0]],
  ['cluster, nothing is accepted', { isCluster: true, roles: ['engine'], shards: 4, shardsMin: 1 }, [0]],
]

t.test('somebody listens, and in a cluster not those who decide while others can', async (t) => {
  for (const [what, { roles, ...process }, listeners] of CASES) {
    t.same(listenersAtStart({ ...process, roles: new Set(roles) }), listeners, what)
  }
})
