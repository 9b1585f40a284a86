// What every endpoint of a webhook begins with: that it exists where the caller works.

import { ApiError } from '../../domain/errors.ts'
import { isWebhookId } from '../../domain/webhook.ts'
import type { Kv } from '../../kv/kv.ts'
import type { Caller } from '../../records/auth.ts'
import { readWebhook, type StoredWebhook } from '../../records/webhooks.ts'
import { callerPlaceOf } from '../callers.ts'

/** Throws ApiError not_found, for a malformed id as well. */
export async function existingWebhook(kv: Pick<Kv, 'get'>, caller: Caller, id = ''): Promise<StoredWebhook> {
  const { workspace, env } = callerPlaceOf(caller)
  const webhook = isWebhookId(id) ? await readWebhook(kv, workspace, env, id) : null
  if (webhook === null) throw new ApiError('not_found')
  return webhook
}
