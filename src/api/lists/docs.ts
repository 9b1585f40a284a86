// What the API shows of lists and their entries, and how their endpoints are described.

import {
  ENTRIES_PER_CALL_MAX,
  ENTRY_SOURCES,
  LIST_NAME_PATTERN,
  LIST_TYPES,
  REASON_CHARS_MAX,
  TTL_SECONDS_MAX,
} from '../../domain/list.ts'
import { oneOf, strict, Type } from '../../domain/schema.ts'
import {
  count,
  cursorPage,
  deleted,
  type Fragment,
  flag,
  listId,
  moment,
  offsetPage,
  orNull,
  PAGE_MEMBERS,
  type RouteDoc,
  ruleId,
  shared,
  words,
} from '../describe.ts'

const listMembers = {
  id: listId(),
  name: words(),
  type: oneOf(LIST_TYPES),
  description: orNull(words()),
  ttl: orNull(count('Seconds that new entries live; null: for ever.')),
  entryCount: count(),
  createdAt: moment(),
  updatedAt: moment(),
}
const { description: _description, ttl: _ttl, ...listedMembers } = listMembers
export const List = shared('List', Type.Object(listMembers))
export const ListedList = shared('ListedList', Type.Object(listedMembers))
export const ListWithUse = shared('ListWithUse', Type.Object({ ...listMembers, usedByRules: Type.Array(ruleId()) }))
export const ListEntry = shared(
  'ListEntry',
  Type.Object({
    value: words(),
    addedAt: moment(),
    expiresAt: orNull(moment()),
    source: oneOf(ENTRY_SOURCES),
    ruleId: orNull(ruleId()),
    reason: orNull(words()),
  }),
)
export const EntriesChanged = shared(
  'EntriesChanged',
  Type.Object({
    listId: listId(),
    added: count(),
    removed: count(),
    skippedErased: count('Ids of erased visitors among those to be added: they are left out.'),
    entryCount: count(),
  }),
)
export const EntriesChecked = shared(
  'EntriesChecked',
  Type.Object({ data: Type.Array(Type.Object({ value: words(), present: flag() })) }),
)

const addition = {
  anyOf: [
    { type: 'string', minLength: 1, maxLength: 640 },
    Type.Object(
      {
        value: Type.String({ minLength: 1, maxLength: 640 }),
        ttl: Type.Optional(
          Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 1, maximum: TTL_SECONDS_MAX }),
        ),
        reason: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: REASON_CHARS_MAX })),
      },
      strict,
    ),
  ],
}
const texts = { type: 'string', minLength: 1, maxLength: 640 }

const id = 'lst_9aQw3eRt5yUi7oPl1kJh'
const times = { createdAt: '2026-11-01T08:00:00.000Z', updatedAt: '2026-11-20T18:04:05.123Z' }
const listed = { id, name: 'trusted_devices', type: 'visitor', entryCount: 2, ...times }
const list = { ...listed, description: 'Devices of our own staff', ttl: null }
const MEMBERS: Readonly<Record<string, Fragment>> = {
  name: { description: 'Unique without regard to case; conditions name the list by it.', pattern: LIST_NAME_PATTERN },
  type: { description: 'What its entries are.' },
  description: { description: 'For people.' },
  ttl: { description: 'Seconds that new entries live; null: for ever.', default: null },
}

export const LIST_DOCS = {
  create: {
    id: 'createList',
    summary: 'Create a list',
    refusals: ['conflict', 'resource_limit_reached'],
    members: MEMBERS,
    bodyExample: { name: 'trusted_devices', type: 'visitor', description: 'Devices of our own staff' },
    answers: { 201: { description: 'The list is created.', schema: List, example: { ...list, entryCount: 0 } } },
  },
  list: {
    id: 'listLists',
    summary: 'List lists',
    members: { ...PAGE_MEMBERS, type: { description: 'Only lists of this type.' } },
    answers: {
      200: {
        description: 'A page of lists.',
        schema: offsetPage(ListedList),
        example: { data: [listed], total: 1 },
      },
    },
  },
  one: {
    id: 'getList',
    summary: 'Read one list',
    answers: {
      200: {
        description: 'The list and the rules that name it.',
        schema: ListWithUse,
        example: { ...list, usedByRules: ['rul_3fJ8sKd02LqPzX7mNbVt'] },
      },
    },
  },
  update: {
    id: 'updateList',
    summary: 'Change a list',
    description: 'Only the members that are sent change. A new `ttl` is for entries to come.',
    members: MEMBERS,
    bodyExample: { ttl: 86_400 },
    answers: { 200: { description: 'The list as it is now.', schema: List, example: { ...list, ttl: 86_400 } } },
  },
  remove: {
    id: 'deleteList',
    summary: 'Delete a list',
    description: 'With all its entries. Conditions that name it are false from then on.',
    answers: {
      200: {
        description: 'The list is deleted.',
        schema: Type.Object({ ...deleted('listId', listId()).properties, affectedRules: Type.Array(ruleId()) }),
        example: { deleted: true, listId: id, affectedRules: [] },
      },
    },
  },
  changeEntries: {
    id: 'changeListEntries',
    summary: 'Add and remove entries',
    description: `All or nothing, at most ${ENTRIES_PER_CALL_MAX} entries in one call. As \`text/csv\`, one \`value[,ttl[,reason]]\` a line, the body adds entries.`,
    refusals: ['resource_limit_reached'],
    members: {
      add: { items: addition, description: 'Values, or values with a `ttl` and a `reason`.' },
      remove: { items: texts, description: 'Values.' },
    },
    bodyExample: { add: ['pv_7Hq2LmZx90TbVcRk4WsE'], remove: [] },
    answers: {
      200: {
        description: 'What changed; entries that were there count as 0.',
        schema: EntriesChanged,
        example: { listId: id, added: 1, removed: 0, skippedErased: 0, entryCount: 3 },
      },
    },
  },
  entries: {
    id: 'listListEntries',
    summary: 'Read entries',
    description: 'In the order of their text.',
    members: { ...PAGE_MEMBERS, q: { description: 'Only entries that begin with this.' } },
    answers: {
      200: {
        description: 'A page of entries.',
        schema: cursorPage(ListEntry),
        example: {
          data: [
            {
              value: 'pv_7Hq2LmZx90TbVcRk4WsE',
              addedAt: times.createdAt,
              expiresAt: null,
              source: 'api',
              ruleId: null,
              reason: null,
            },
          ],
          hasMore: false,
          nextCursor: null,
        },
      },
    },
  },
  checkEntries: {
    id: 'checkListEntries',
    summary: 'Ask whether values are on the list',
    members: { values: { items: texts, description: 'At most 100.' } },
    bodyExample: { values: ['pv_7Hq2LmZx90TbVcRk4WsE'] },
    answers: {
      200: {
        description: 'Each value, normalised, in the order of the request.',
        schema: EntriesChecked,
        example: { data: [{ value: 'pv_7Hq2LmZx90TbVcRk4WsE', present: true }] },
      },
    },
  },
} as const satisfies Record<string, RouteDoc>
