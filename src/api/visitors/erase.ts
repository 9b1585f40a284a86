// Erases a visitor: has the owners of its partitions told, ends its deliveries, takes it off every list and notes how far that came.

import { accepted, type Submitter } from '../../control/submit.ts'
import { forgetVisitor } from '../../dispatcher/forget.ts'
import { homePartition } from '../../domain/ids.ts'
import { type Erase, type EraseNeeds, openErase } from '../../ingress/erase.ts'
import type { Kv } from '../../kv/kv.ts'
import { noteRequested } from '../../records/erasure-progress.ts'
import { partitionScope } from '../../records/partitions.ts'

export interface ErasureNeeds extends EraseNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
}

/** As `ingress/erase`; what it resolves with has also left lists and deliveries. */
export function openErasure(needs: ErasureNeeds): Erase {
  const { kv, clock, partitions, submit } = needs
  const erase = openErase(needs)
  return async (workspace, env, visitorId) => {
    const at = clock.now()
    const erased = await erase(workspace, env, visitorId)
    await Promise.all(
      erased.map(({ visitorId }) => {
        const home = partitionScope(homePartition(visitorId, partitions))
        return forgetVisitor(kv, home, { workspace, env, visitorId })
      }),
    )
    // The owner of the partition asks for the same, so that it is done in any case; asking here tells when it is.
    const data = { visitorId: erased[0].visitorId, partitions }
    accepted(await submit({ type: 'list.forget', workspace, env, actor: 'erasure', data }))
    const parts = erased.map(({ erasureId, visitorId }) => ({
      erasureId,
      partition: homePartition(visitorId, partitions),
    }))
    await noteRequested(kv, workspace, env, erased[0].erasureId, { at, parts })
    return erased
  }
}
