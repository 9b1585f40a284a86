// /v1/lists: lists themselves. Writes go through the control plane; reads come from the kv.

import { accepted, type Submitter } from '../../control/submit.ts'
import { invalid } from '../../domain/errors.ts'
import type { RandomBytes } from '../../domain/ids.ts'
import {
  isListName,
  LIST_DESCRIPTION_CHARS_MAX,
  LIST_NAME_CHARS_MAX,
  LIST_TYPES,
  TTL_SECONDS_MAX,
} from '../../domain/list.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { must } from '../../lib/must.ts'
import type { Caller } from '../../records/auth.ts'
import { readLists, type StoredList } from '../../records/lists.ts'
import { readRuleset } from '../../records/rules.ts'
import { callerPlaceOf, commandOf, newId } from '../callers.ts'
import { KEEP_ALL } from '../idempotency.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { OFFSET, PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { existingList } from './callers.ts'
import { LIST_DOCS } from './docs.ts'
import { listEntryRoutes } from './entries.ts'
import { presentList, presentListedList, rulesNaming } from './present.ts'

export const LIST_MAXIMA = { listsMax: 1_000, entriesMax: 10_000_000 }

export interface ListsNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
  readonly clock: Pick<Clock, 'now'>
  readonly random: RandomBytes
  readonly maxima?: { readonly listsMax: number; readonly entriesMax: number }
}

const description = Type.Union([Type.String({ maxLength: LIST_DESCRIPTION_CHARS_MAX }), Type.Null()])
const ttl = Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 1, maximum: TTL_SECONDS_MAX })
const CreateBody = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: LIST_NAME_CHARS_MAX }),
    type: oneOf(LIST_TYPES),
    description: Type.Optional(description),
    ttl: Type.Optional(ttl),
  },
  strict,
)
const UpdateBody = Type.Object({ description: Type.Optional(description), ttl: Type.Optional(ttl) }, strict)
const ListQuery = Type.Object({ type: Type.Optional(oneOf(LIST_TYPES)), limit: PAGE_LIMIT, offset: OFFSET }, strict)

export function listRoutes(needs: ListsNeeds): ApiRoute[] {
  const { kv, submit, random, maxima = LIST_MAXIMA } = needs

  return [
    keyed({
      method: 'POST',
      doc: LIST_DOCS.create,
      path: '/v1/lists',
      access: 'lists:write',
      body: CreateBody,
      once: KEEP_ALL,
      async handle({ caller, seed, body: { name, type, description = null, ttl = null } }) {
        if (!isListName(name)) throw invalid('name', NAME_RULE)
        const id = newId({ seed }, 'lst', random)
        const data = { id, name, type, description, ttl, maxima: { listsMax: maxima.listsMax } }
        const list = written(await submit({ ...commandOf(caller), type: 'list.create', data }))
        return { status: 201, body: presentList(list) }
      },
    }),

    keyed({
      method: 'GET',
      doc: LIST_DOCS.list,
      path: '/v1/lists',
      access: 'lists:read',
      query: ListQuery,
      async handle({ caller, query: { type, limit = PAGE_LIMIT_DEFAULT, offset = 0 } }) {
        const { workspace, env } = callerPlaceOf(caller)
        const lists = (await readLists(kv, workspace, env)).filter((list) => type === undefined || list.type === type)
        return { body: { data: lists.slice(offset, offset + limit).map(presentListedList), total: lists.length } }
      },
    }),

    keyed({
      method: 'GET',
      doc: LIST_DOCS.one,
      path: '/v1/lists/:listId',
      access: 'lists:read',
      async handle({ caller, params }) {
        const list = await existingList(kv, caller, params.listId)
        return { body: { ...presentList(list), usedByRules: await rulesWith(caller, list) } }
      },
    }),

    keyed({
      method: 'PUT',
      doc: LIST_DOCS.update,
      path: '/v1/lists/:listId',
      access: 'lists:write',
      body: UpdateBody,
      bodyMayBeEmpty: true,
      async handle({ caller, params, body: changes }) {
        const list = await existingList(kv, caller, params.listId)
        if (Object.keys(changes).length === 0) return { body: presentList(list) }
        const data = { id: list.id, changes }
        return { body: presentList(written(await submit({ ...commandOf(caller), type: 'list.update', data }))) }
      },
    }),

    keyed({
      method: 'DELETE',
      doc: LIST_DOCS.remove,
      path: '/v1/lists/:listId',
      access: 'lists:write',
      async handle({ caller, params }) {
        const list = await existingList(kv, caller, params.listId)
        const affectedRules = await rulesWith(caller, list)
        accepted(await submit({ ...commandOf(caller), type: 'list.delete', data: { id: list.id } }))
        return { body: { deleted: true, listId: list.id, affectedRules } }
      },
    }),

    ...listEntryRoutes({ ...needs, entriesMax: maxima.entriesMax }),
  ]

  async function rulesWith(caller: Caller, list: StoredList): Promise<string[]> {
    const { workspace, env } = callerPlaceOf(caller)
    const ruleset = await readRuleset(kv, workspace, env)
    return ruleset === null ? [] : rulesNaming(ruleset.rules, list)
  }
}

const NAME_RULE = 'Must begin with a letter or digit and hold only letters, digits, `_`, `.` and `-`.'
const written = (outcome: Parameters<typeof accepted>[0]): StoredList => must(accepted(outcome).list, 'a list')
