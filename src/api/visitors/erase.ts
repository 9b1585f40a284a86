// Erases a visitor: has the owners of its partitions told, ends its deliveries, takes it off every list, has it noted, and says how far
// that came.

import { accepted, type Submitter } from '../../control/submit.ts'
import { forgetVisitor } from '../../dispatcher/forget.ts'
import type { Env } from '../../domain/event.ts'
import { homePartition } from '../../domain/ids.ts'
import { type ErasedVisitor, type EraseNeeds, openErase } from '../../ingress/erase.ts'
import type { Kv } from '../../kv/kv.ts'
import { noteRequested, readRequested } from '../../records/erasure-progress.ts'
import { readTombstone } from '../../records/erasures.ts'
import { partitionScope } from '../../records/partitions.ts'

export interface ErasureNeeds extends EraseNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
}

type Note = (erased: ErasedVisitor) => Promise<void>

export interface Erasures {
  /** As `ingress/erase`; what it resolves with has also left lists and deliveries, and `note` has resolved for each. */
  erase(
    workspace: string,
    env: Env,
    visitorId: string,
    note: Note,
  ): Promise<readonly [ErasedVisitor, ...ErasedVisitor[]]>
  /** Whether the visitor is gone while the rest of its erasure is not known to be done, so that erasing it once more ends that. */
  isUnfinished(workspace: string, env: Env, visitorId: string): Promise<boolean>
}

export function openErasures(needs: ErasureNeeds): Erasures {
  const { kv, clock, partitions, submit } = needs
  const eraseAll = openErase(needs)
  const homeOf = (visitorId: string) => homePartition(visitorId, partitions)
  return {
    async erase(workspace, env, visitorId, note) {
      const at = clock.now()
      const erased = await eraseAll(workspace, env, visitorId)
      await Promise.all(
        erased.map(({ visitorId }) =>
          forgetVisitor(kv, partitionScope(homeOf(visitorId)), { workspace, env, visitorId }),
        ),
      )
      // The owner of the partition asks for the same, so that it is done in any case; asking here tells when it is.
      const data = { visitorId: erased[0].visitorId, partitions }
      accepted(await submit({ type: 'list.forget', workspace, env, actor: 'erasure', data }))
      for (const one of erased) await note(one)
      const parts = erased.map(({ erasureId, visitorId }) => ({ erasureId, partition: homeOf(visitorId) }))
      // Last: it says that all else is done.
      await noteRequested(kv, workspace, env, { at, parts })
      return erased
    },

    async isUnfinished(workspace, env, visitorId) {
      const tombstone = await readTombstone(kv, homeOf(visitorId), workspace, env, visitorId)
      return tombstone !== null && (await readRequested(kv, workspace, env, tombstone.erasureId)) === null
    },
  }
}
