// Taking an erased visitor out of the record of another that it was split from or merged with: the order that tells the owner of its
// partition. Nobody's tokens are the erased one's then, and a merge into it that is ordered once more is still known.

import type { Env } from '../domain/event.ts'
import { erasedId } from './erasures.ts'
import type { HeldVisitor } from './visitors.ts'

/** Asks the owner of a record to forget an id that is in it. */
export interface Unnaming {
  readonly workspace: string
  readonly env: Env
  readonly visitorId: string
  /** Who was erased. */
  readonly erased: string
}

/** What the record says without the id; null: it does not say it. */
export function withoutName(
  { parted, former }: HeldVisitor,
  { workspace, env, erased }: Omit<Unnaming, 'visitorId'>,
): Pick<HeldVisitor, 'parted' | 'former'> | null {
  if (!former.includes(erased) && !parted.some(({ to }) => to === erased)) return null
  const name = erasedId(workspace, env, erased)
  return {
    parted: parted.map((one) => (one.to === erased ? { ...one, to: null } : one)),
    former: former.map((id) => (id === erased ? name : id)),
  }
}
