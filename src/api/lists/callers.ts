// What every endpoint of a list begins with: that it exists where the caller works.

import { ApiError } from '../../domain/errors.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Caller } from '../../records/auth.ts'
import { readList, type StoredList } from '../../records/lists.ts'
import { callerPlaceOf } from '../callers.ts'

export const LIST_ID = /^lst_[0-9A-Za-z]{20}$/

/** Throws ApiError not_found, for a malformed id as well. */
export async function existingList(kv: Pick<Kv, 'get'>, caller: Caller, listId = ''): Promise<StoredList> {
  const { workspace, env } = callerPlaceOf(caller)
  const list = LIST_ID.test(listId) ? await readList(kv, workspace, env, listId) : null
  if (list === null) throw new ApiError('not_found')
  return list
}
