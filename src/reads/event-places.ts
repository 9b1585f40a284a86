// Where events are: the partitions that decided them, for whoever has something to say of many.

import type { Env } from '../domain/event.ts'
import { requestTime } from '../domain/ids.ts'
import { Unavailable } from '../lib/failures.ts'
import type { EventLocator } from '../records/event-locator.ts'
import type { EventRows, PageQuestion } from './event-rows.ts'
import type { EventReads } from './events.ts'

export interface EventHome {
  readonly requestId: string
  readonly partition: number
}

export interface EventPlacesNeeds {
  readonly rows: EventRows
  readonly find: EventReads['find']
  readonly sight: EventLocator
}

export interface EventPlaces {
  /**
   * Of each id that names an event its home, each once; ids that name nothing are left out. `pending`: one of them is not decided yet.
   * Throws Unavailable when that cannot be told.
   */
  named(workspace: string, env: Env, requestIds: readonly string[]): Promise<readonly EventHome[] | 'pending'>
  /** Newest first, as lists have them. */
  page(...question: PageQuestion): Promise<{ readonly homes: readonly EventHome[]; readonly hasMore: boolean }>
  count(...question: Parameters<EventRows['count']>): Promise<number>
}

const COLUMNS = 'request_id, log_partition'
/** Questions to those who may know of an event that ClickHouse has not. */
const AT_ONCE = 16

interface Row {
  readonly request_id: string
  readonly log_partition: number
}

const toHome = (row: Row): EventHome => ({ requestId: row.request_id, partition: Number(row.log_partition) })

export function openEventPlaces({ rows, find, sight }: EventPlacesNeeds): EventPlaces {
  /** One that has no row. null: as far as can be seen it names nothing. */
  async function fresh(workspace: string, env: Env, requestId: string): Promise<EventHome | 'pending' | null> {
    const seen = await sight(`${workspace}/${env}`, requestId)
    if (seen.place === null && !seen.pending && seen.original === null) {
      if (!seen.complete) throw new Unavailable('events are being taken over; this one may be among them')
      return null
    }
    const found = await find(workspace, env, requestId)
    if (found === null || found === 'pending') return found
    return { requestId: found.event.requestId, partition: found.partition }
  }

  return {
    count: rows.count,

    async page(...question) {
      const found = await rows.page<Row>(COLUMNS, ...question)
      return { homes: found.rows.map(toHome), hasMore: found.hasMore }
    },

    async named(workspace, env, requestIds) {
      const oldest = rows.oldest(workspace)
      const possible = [...new Set(requestIds)].filter((id) => (requestTime(id) ?? 0) >= oldest)
      const homes = new Map<string, EventHome>()
      const add = (found: readonly EventHome[]) => {
        for (const home of found) homes.set(home.requestId, home)
      }
      const addStored = async (ids: readonly string[]) =>
        add((await rows.named<Row>(COLUMNS, workspace, env, ids)).map(toHome))
      await addStored(possible)
      const unknown: string[] = []
      const missing = possible.filter((id) => !homes.has(id))
      for (let from = 0; from < missing.length; from += AT_ONCE) {
        const some = missing.slice(from, from + AT_ONCE)
        const found = await Promise.all(some.map((id) => fresh(workspace, env, id)))
        if (found.includes('pending')) return 'pending'
        found.forEach((home, i) => {
          if (home === null) unknown.push(some[i] as string)
          else if (home !== 'pending') add([home])
        })
      }
      // They may have reached ClickHouse while we were asking.
      await addStored(unknown)
      return [...homes.values()]
    },
  }
}
