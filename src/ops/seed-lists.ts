// The lists of a made-up history: some of the visitors and addresses in it, as a team that watched it would have listed them.

import { ENTRIES_PER_CALL_MAX, type ListType, normaliseEntry } from '../domain/list.ts'
import type { SeedVisitor } from './seed-visits.ts'

export interface SeedList {
  readonly id: string
  readonly name: string
  readonly type: ListType
  readonly description: string
  /** Normalised, at most ENTRIES_PER_CALL_MAX. */
  readonly entries: readonly string[]
}

type Entry = (visitor: SeedVisitor) => string | null

const ID_CHARS = 20
const LISTS: readonly (Omit<SeedList, 'id' | 'entries'> & { readonly entry: Entry })[] = [
  {
    name: 'seen_bots',
    type: 'visitor',
    description: 'Devices that automation gave away.',
    entry: ({ kind, id }) => (kind === 'bot' ? id : null),
  },
  {
    name: 'abusive_addresses',
    type: 'ip',
    description: 'Where bots and abusers came from.',
    entry: ({ kind, homeIp }) => (kind === 'person' ? null : homeIp),
  },
  {
    name: 'regular_devices',
    type: 'visitor',
    description: 'Devices of one account each that came for long.',
    entry: ({ kind, id, accounts }) => (kind === 'person' && accounts.length === 1 ? id : null),
  },
]

export interface SeedLists {
  note(visitor: SeedVisitor): void
  lists(): readonly SeedList[]
}

/** The first visitors that fit; the same history has the same lists. */
export function openSeedLists(): SeedLists {
  const found = LISTS.map(() => new Set<string>())
  return {
    note(visitor) {
      for (const [i, { type, entry }] of LISTS.entries()) {
        const entries = found[i]
        if (entries === undefined || entries.size >= ENTRIES_PER_CALL_MAX) continue
        const text = entry(visitor)
        const value = text === null ? null : normaliseEntry(type, text)
        if (value !== null) entries.add(value)
      }
    },
    lists: () =>
      LISTS.map(({ name, type, description }, i) => ({
        id: `lst_Seeded${String(i).padStart(ID_CHARS - 6, '0')}`,
        name,
        type,
        description,
        entries: [...(found[i] ?? [])],
      })),
  }
}
