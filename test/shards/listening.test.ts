// Who listens from the start: as many as decide, and others as far as there are any.

import t from 'tap'
import type { ProcessRole } from '../../src/config.ts'
import { listenersAtStart } from '../../src/shards/listening.ts'

const BOTH: readonly ProcessRole[] = ['ingress', 'engine']

const CASES: [
  what: string,
  process: { roles: readonly ProcessRole[]; shards: number; shardsMin: number },
  listeners: readonly number[],
][] = [
  ['one shard', { roles: BOTH, shards: 1, shardsMin: 1 }, [0]],
  ['one of two decides', { roles: BOTH, shards: 2, shardsMin: 1 }, [1]],
  ['two of eight decide', { roles: BOTH, shards: 8, shardsMin: 2 }, [2, 3]],
  ['two of three decide', { roles: BOTH, shards: 3, shardsMin: 2 }, [2]],
  ['all decide', { roles: BOTH, shards: 2, shardsMin: 2 }, [0, 1]],
  ['nobody decides', { roles: ['ingress'], shards: 4, shardsMin: 1 }, [0]],
  ['nothing is accepted', { roles: ['engine'], shards: 4, shardsMin: 1 }, [0]],
]

t.test('somebody listens, and not those who decide while others can', async (t) => {
  for (const [what, { roles, ...process }, listeners] of CASES) {
    t.same(listenersAtStart({ ...process, roles: new Set(roles) }), listeners, what)
  }
})
