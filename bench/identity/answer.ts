// What every way of recognising devices answers about a visit, whether it is the product or a reference.

import type { Explanation } from '../../src/domain/event.ts'
import type { Visit } from './population.ts'
import type { Search } from './search.ts'

export interface Answer {
  readonly id: string
  /** 0 to 1; null where the method does not say. */
  readonly confidence: number | null
  /** What it rested on, where the driver sees that. */
  readonly explanation?: Explanation
  /** Where it was looked for, with the explanation. */
  readonly search?: Search
}

/** A way of recognising devices that answers at once. Must not read the truth of a visit but for its storage. */
export interface Reference {
  readonly name: string
  answer(visit: Visit): Answer
}

/** What browsers keep for a service: one text per device, absent where the visit has no storage. */
export interface Storages {
  read(visit: Visit): string | null
  write(visit: Visit, token: string): void
}

export function createStorages(): Storages {
  const held = new Map<number, string>()
  return {
    read: ({ truth }) => (truth.tokenless ? null : (held.get(truth.device) ?? null)),
    write({ truth }, token) {
      // A private window's storage ends with it.
      if (!truth.isPrivate) held.set(truth.device, token)
    },
  }
}
