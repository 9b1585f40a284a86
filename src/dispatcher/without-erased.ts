// Takes out of what is to be told whatever speaks of visitors who were erased meanwhile.

import type { Kv } from '../kv/kv.ts'
import { erasedAmong, erasedId } from '../records/erasures.ts'
import type { NewPayload, OutboxEntries } from './match.ts'

type About = NonNullable<NewPayload['about']>
const idOf = ({ workspace, env, visitorId }: About): string => erasedId(workspace, env, visitorId)

/** Payloads about visitors who are erased, or are about to be. */
export async function aboutErased(
  kv: Pick<Kv, 'get'>,
  payloads: readonly NewPayload[],
): Promise<readonly (NewPayload & { readonly about: About })[]> {
  const about = payloads.flatMap((one) => (one.about === null ? [] : [{ ...one, about: one.about }]))
  const erased: (NewPayload & { readonly about: About })[] = []
  for (const scope of new Set(about.map((one) => one.scope))) {
    const mine = about.filter((one) => one.scope === scope)
    const ids = await erasedAmong(kv, scope, [...new Set(mine.map((one) => idOf(one.about)))])
    erased.push(...mine.filter((one) => ids.has(idOf(one.about))))
  }
  return erased
}

/** What was accepted before a visitor was erased is told nobody any more. */
export async function withoutErased(kv: Pick<Kv, 'get'>, told: OutboxEntries): Promise<OutboxEntries> {
  const gone = new Set((await aboutErased(kv, told.payloads)).map(({ id }) => id))
  if (gone.size === 0) return told
  return {
    payloads: told.payloads.filter(({ id, payload: { of } }) => !gone.has(of ?? id)),
    deliveries: told.deliveries.filter(({ delivery }) => !gone.has(delivery.payloadId)),
  }
}
