// Why an event has its visitor: the explanation stored with it, without visitors that were erased since.

import type { StoredEvent } from '../domain/event.ts'
import { homePartition } from '../domain/ids.ts'
import { readComparison } from '../identity/explain.ts'
import type { Kv } from '../kv/kv.ts'
import { readTombstone } from '../records/erasures.ts'

export interface IdentityReads {
  /** As the API shows it. Throws Unavailable when it cannot be told whether a candidate was erased. */
  explain(event: StoredEvent): Promise<Record<string, unknown>>
}

export function openIdentityReads(kv: Pick<Kv, 'get' | 'position'>, partitions: number): IdentityReads {
  return {
    async explain({ workspace, env, requestId, visitorId, visitorFound, confidence, identity }) {
      const { method, anonymitySet, candidates: compared, generation, explanation } = identity
      /** What an id named that means nothing any more is shown as null. */
      async function shown(id: string): Promise<string | null> {
        if (id === visitorId) return id
        return (await readTombstone(kv, homePartition(id, partitions), workspace, env, id)) === null ? id : null
      }
      const { candidates = [], comparison = null, evidence = [], presentedGeneration = null } = explanation ?? {}
      const named = await Promise.all(
        candidates.map(async ({ visitorId: id, score }) => ({ visitorId: await shown(id), score })),
      )
      const agreement = comparison === null ? null : readComparison(comparison)
      return {
        requestId,
        visitorId,
        visitorFound,
        method,
        confidence,
        anonymitySet,
        compared,
        candidates: named,
        comparedWith: agreement === null ? null : (named[0]?.visitorId ?? null),
        agreement: agreement?.attributes ?? null,
        browserVersion: agreement?.browserVersion ?? null,
        network: agreement?.network ?? null,
        tokenGeneration: { presented: presentedGeneration, issued: generation },
        evidence,
      }
    },
  }
}
