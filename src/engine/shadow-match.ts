// Visits with a token that are also looked at without it, so that what a token proves can be learned from.

import { hash32 } from '../domain/ids.ts'
import { type MatchResult, type RecogniseInput, recognise } from '../identity/matcher.ts'
import type { Parsers } from '../identity/parsers.ts'
import { hardwareKey } from '../identity/routing.ts'
import type { Visit } from './visit.ts'

export interface ShadowMatchNeeds {
  readonly partition: number
  readonly partitions: number
  readonly parsers: Parsers
}

/** What would be answered without the token: elsewhere, where nobody knows this visitor, that it is new. */
export function matchInShadow(
  c: Visit,
  input: RecogniseInput,
  { partition, partitions, parsers }: ShadowMatchNeeds,
): MatchResult | null {
  const key = hardwareKey(c.body, c.headers, c.userAgent, parsers)
  const tokenless = { ...input, token: null, tokenVisitor: null }
  if (hash32(`${c.meta.workspace}/${c.meta.env}/${key}`) % partitions === partition) return recognise(tokenless)
  return recognise({ ...tokenless, exact: [], linked: [], totals: {} })
}
