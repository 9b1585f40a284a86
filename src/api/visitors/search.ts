// GET /v1/visitors: visitors by account, email, address, list or the beginning of a name.

import { invalid } from '../../domain/errors.ts'
import { isListName } from '../../domain/list.ts'
import { type Static, strict, Type } from '../../domain/schema.ts'
import { isoTime, maskEmail } from '../../events/present.ts'
import { readCursor, writeCursor } from '../../reads/cursor.ts'
import type { ListSnapshots } from '../../reads/list-snapshots.ts'
import type { SearchVisitors, VisitorRow, VisitorSearch } from '../../reads/visitor-search.ts'
import type { Caller } from '../../records/auth.ts'
import { EMAIL, optionalText, readAddressFilter, readEmailFilter } from '../events/filter.ts'
import { LIST_ID } from '../lists/callers.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { VISITOR_DOCS } from './docs.ts'

export interface VisitorSearchRouteNeeds {
  readonly search: SearchVisitors
  readonly snapshots: Pick<ListSnapshots, 'table'>
  /** The name of the list with an id; null when there is none. */
  readonly listName: (workspace: string, env: Caller['env'], listId: string) => Promise<string | null>
}

/** A large list is loaded first. */
const DEADLINE_MS = 30_000
const WANTED = ['linkedId', 'email', 'ip', 'list', 'q'] as const

const SearchQuery = Type.Object(
  {
    linkedId: optionalText(256),
    email: EMAIL,
    ip: optionalText(64),
    list: optionalText(64),
    q: optionalText(320),
    limit: PAGE_LIMIT,
    cursor: optionalText(200),
  },
  strict,
)

export function visitorSearchRoutes({ search, snapshots, listName }: VisitorSearchRouteNeeds): ApiRoute[] {
  async function tableOf({ workspace, env }: Caller, list: string) {
    const name = LIST_ID.test(list) ? await listName(workspace.id, env, list) : list
    const table = name === null || !isListName(name) ? null : await snapshots.table(workspace.id, env, name)
    if (table === null) throw invalid('list', 'There is no such list.')
    return table
  }

  async function filterOf(caller: Caller, query: Static<typeof SearchQuery>): Promise<VisitorSearch> {
    const { linkedId, email, ip, list, q } = query
    return {
      ...(linkedId === undefined ? {} : { linkedId }),
      ...(email === undefined ? {} : { email: readEmailFilter(email) }),
      ...(ip === undefined ? {} : { ip: readAddressFilter(ip) }),
      ...(q === undefined ? {} : { prefix: q }),
      ...(list === undefined ? {} : { list: await tableOf(caller, list) }),
    }
  }

  return [
    keyed({
      method: 'GET',
      doc: VISITOR_DOCS.search,
      path: '/v1/visitors',
      access: 'visitors:read',
      query: SearchQuery,
      deadlineMs: DEADLINE_MS,
      async handle({ caller, query }) {
        if (WANTED.every((name) => query[name] === undefined)) {
          throw invalid('q', `One of these is needed: ${WANTED.join(', ')}.`)
        }
        const { workspace, env } = caller
        const asked = WANTED.map((name) => query[name] ?? null)
        const question = JSON.stringify([workspace.id, env, 'visitors', asked])
        const { cursor, limit = PAGE_LIMIT_DEFAULT } = query
        const from = cursor === undefined ? null : readCursor(workspace.tokenSecret, question, cursor)
        const { found, last } = await search(workspace.id, env, await filterOf(caller, query), limit, from)
        const nextCursor = last === null ? null : writeCursor(workspace.tokenSecret, question, last)
        return { body: { data: found.map(presentFound), hasMore: last !== null, nextCursor } }
      },
    }),
  ]
}

const presentFound = ({ visitor, email, ...newest }: VisitorRow) => ({
  visitorId: visitor.id,
  firstSeenAt: isoTime(visitor.firstSeenAt),
  lastSeenAt: isoTime(visitor.lastSeenAt),
  totalVisits: visitor.totalVisits,
  previousVerdicts: visitor.verdicts,
  ...newest,
  email: email === null ? null : maskEmail(email),
})
