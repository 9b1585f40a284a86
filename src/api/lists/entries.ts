// /v1/lists/{id}/entries: changing them in one step, reading them by prefix, asking whether values are on the list.

import { accepted, type Submitter } from '../../control/submit.ts'
import { invalid } from '../../domain/errors.ts'
import {
  ENTRIES_PER_CALL_MAX,
  normaliseEntry,
  normaliseNewEntry,
  REASON_CHARS_MAX,
  TTL_SECONDS_MAX,
} from '../../domain/list.ts'
import { strict, Type } from '../../domain/schema.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Clock } from '../../lib/clock.ts'
import { must } from '../../lib/must.ts'
import { readLast, writeCursor } from '../../reads/cursor.ts'
import { groupOf } from '../../records/aliases.ts'
import type { Caller } from '../../records/auth.ts'
import type { NewEntry } from '../../records/list-commands.ts'
import {
  isAlive,
  isListed,
  LIST_ENTRY,
  type PackedEntry,
  readListEntries,
  type StoredEntry,
  type StoredList,
  unpackEntry,
} from '../../records/lists.ts'
import { tenantScope } from '../../records/scopes.ts'
import { boundedText, members } from '../../rules/parse.ts'
import { callerPlaceOf, commandOf } from '../callers.ts'
import { type ApiRoute, keyed } from '../routes.ts'
import { PAGE_LIMIT, PAGE_LIMIT_DEFAULT } from '../schemas.ts'
import { existingList } from './callers.ts'
import { readEntriesCsv } from './csv.ts'
import { LIST_DOCS } from './docs.ts'
import { presentEntry } from './present.ts'

export interface ListEntriesNeeds {
  readonly kv: Kv
  readonly submit: Submitter['submit']
  readonly clock: Pick<Clock, 'now'>
  readonly entriesMax: number
}

const PREFIX_CHARS_MAX = 320
const CHECKED_MAX = 100
/** A thousand entries as long as they may be. */
const BODY_BYTES_MAX = 524_288
const SCAN_ENTRIES = 200

const PatchBody = Type.Object(
  {
    // What an item is is checked one by one, so that the error names it and nothing of it is applied.
    add: Type.Optional(Type.Array(Type.Unknown(), { maxItems: ENTRIES_PER_CALL_MAX })),
    remove: Type.Optional(Type.Array(Type.Unknown(), { maxItems: ENTRIES_PER_CALL_MAX })),
  },
  strict,
)
const EntriesQuery = Type.Object(
  {
    q: Type.Optional(Type.String({ maxLength: PREFIX_CHARS_MAX })),
    limit: PAGE_LIMIT,
    cursor: Type.Optional(Type.String({ minLength: 1 })),
  },
  strict,
)
const CheckBody = Type.Object({ values: Type.Array(Type.Unknown(), { minItems: 1, maxItems: CHECKED_MAX }) }, strict)

export function listEntryRoutes({ kv, submit, clock, entriesMax }: ListEntriesNeeds): ApiRoute[] {
  return [
    keyed({
      method: 'PATCH',
      doc: LIST_DOCS.changeEntries,
      path: '/v1/lists/:listId/entries',
      access: 'lists:write',
      body: PatchBody,
      bodyBytesMax: BODY_BYTES_MAX,
      csv: readEntriesCsv,
      headers: ['content-type'],
      async handle({ caller, params, body, header }) {
        const { add = [], remove = [] } = body
        if (add.length + remove.length > ENTRIES_PER_CALL_MAX) {
          throw invalid(add.length > 0 ? 'add' : 'remove', `At most ${ENTRIES_PER_CALL_MAX} entries in one call.`)
        }
        const list = await existingList(kv, caller, params.listId)
        const change = readChange(list, add, remove)
        if (change.add.length + change.remove.length === 0) {
          return { body: { listId: list.id, added: 0, removed: 0, skippedErased: 0, entryCount: list.entryCount } }
        }
        const source = /^text\/csv/i.test(header('content-type')) ? ('import' as const) : ('api' as const)
        const data = { id: list.id, ...change, source, entriesMax }
        const outcome = accepted(await submit({ ...commandOf(caller), type: 'list.entries', data }))
        const { added, removed, skipped } = must(outcome.entries, 'counts of entries')
        const { entryCount } = must(outcome.list, 'a list')
        return { body: { listId: list.id, added, removed, skippedErased: skipped, entryCount } }
      },
    }),

    keyed({
      method: 'GET',
      doc: LIST_DOCS.entries,
      path: '/v1/lists/:listId/entries',
      access: 'lists:read',
      query: EntriesQuery,
      async handle({ caller, params, query: { q = '', limit = PAGE_LIMIT_DEFAULT, cursor } }) {
        const { tokenSecret } = caller.workspace
        const question = JSON.stringify(['list', caller.env, params.listId, q])
        const after = cursor === undefined ? null : readLast(tokenSecret, question, cursor)
        const list = await existingList(kv, caller, params.listId)
        const prefix = list.type === 'visitor' ? q.trim() : q.trim().toLowerCase()
        const found = await entriesAfter(caller, list, prefix, after, limit + 1)
        const page = found.slice(0, limit)
        const last = page.at(-1)
        const hasMore = found.length > limit && last !== undefined
        return {
          body: {
            data: page.map(({ value, entry }) => presentEntry(value, entry)),
            hasMore,
            nextCursor: hasMore ? writeCursor(tokenSecret, question, last.value) : null,
          },
        }
      },
    }),

    keyed({
      method: 'POST',
      doc: LIST_DOCS.checkEntries,
      path: '/v1/lists/:listId/entries/check',
      access: 'lists:read',
      body: CheckBody,
      async handle({ caller, params, body }) {
        const list = await existingList(kv, caller, params.listId)
        const values = body.values.map((value, i) => entryText(list, value, `values[${i}]`))
        const data = []
        const place = { ...callerPlaceOf(caller), id: list.id, type: list.type }
        for (const value of values) {
          const { workspace, env, type } = place
          const listed = type === 'visitor' ? (await groupOf(kv, workspace, env, value))[0] : value
          data.push({ value, present: await isListed(kv, place, listed, clock.now()) })
        }
        return { body: { data } }
      },
    }),
  ]

  /** Entries in order of their text, those that are overdue left out. */
  async function entriesAfter(
    caller: Caller,
    list: StoredList,
    prefix: string,
    after: string | null,
    limit: number,
  ): Promise<{ readonly value: string; readonly entry: StoredEntry }[]> {
    const { workspace, env } = callerPlaceOf(caller)
    const nowMs = clock.now()
    const idOf = (value: string) => `${list.id}/${value}`
    const found: { readonly value: string; readonly entry: StoredEntry }[] = []
    if (after === null && prefix !== '') {
      const [exact] = await readListEntries(kv, { workspace, env, id: list.id }, [prefix], nowMs)
      if (exact) found.push({ value: prefix, entry: exact })
    }
    let from = idOf(after ?? prefix)
    while (found.length < limit) {
      const range = { after: from, upTo: `${idOf(prefix)}${LAST_CHARACTER}`, limit: SCAN_ENTRIES }
      const page = await kv.scan<PackedEntry>(tenantScope(workspace, env), LIST_ENTRY, range)
      for (const { key, value: bytes } of page) {
        const entry = unpackEntry(bytes)
        if (isAlive(entry.expiresAt, nowMs)) found.push({ value: key[1].slice(list.id.length + 1), entry })
      }
      if (page.length < SCAN_ENTRIES) break
      from = page.at(-1)?.key[1] ?? from
    }
    return found.slice(0, limit)
  }
}

/** Sorts after every other character. */
const LAST_CHARACTER = '\u{10FFFF}'
const WANTED: Readonly<Record<StoredList['type'], string>> = {
  visitor: 'Must be a visitor id, pv_ and 20 letters or digits.',
  ip: 'Must be an IP address or a range such as 203.0.113.0/24.',
  email: 'Must be an email address.',
}

function entryText(list: StoredList, value: unknown, at: string): string {
  return checked(list, typeof value === 'string' ? normaliseEntry(list.type, value) : null, at)
}

function checked(list: StoredList, entry: string | null, at: string): string {
  if (entry === null) throw invalid(at, WANTED[list.type])
  return entry
}

/** What is asked for or removed may be anything that was ever taken; what is added has the form ids have. */
function additionText(list: StoredList, value: unknown, at: string): string {
  return checked(list, typeof value === 'string' ? normaliseNewEntry(list.type, value) : null, at)
}

function readChange(list: StoredList, add: readonly unknown[], remove: readonly unknown[]) {
  const added = add.map((item, i) => readAddition(list, item, `add[${i}]`))
  const values = new Set(added.map(({ value }) => value))
  const removed = remove.map((item, i) => {
    const value = entryText(list, item, `remove[${i}]`)
    if (values.has(value)) throw invalid(`remove[${i}]`, 'The same value is to be added.')
    return value
  })
  return { add: added, remove: removed }
}

function readAddition(list: StoredList, item: unknown, at: string): NewEntry {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return { value: additionText(list, item, at) }
  const got = members(item, at, ['value', 'ttl', 'reason'])
  const value = additionText(list, got.get('value'), at)
  const ttl = got.get('ttl')
  const isTtl = ttl === undefined || ttl === null || (Number.isInteger(ttl) && inRange(ttl as number))
  if (!isTtl) throw invalid(`${at}.ttl`, `Must be null or a whole number of seconds from 1 to ${TTL_SECONDS_MAX}.`)
  const reason = got.get('reason') ?? null
  return {
    value,
    ...(ttl === undefined ? {} : { ttl: ttl as number | null }),
    ...(reason === null ? {} : { reason: boundedText(reason, `${at}.reason`, REASON_CHARS_MAX) }),
  }
}

const inRange = (ttl: number): boolean => ttl >= 1 && ttl <= TTL_SECONDS_MAX
