// Mails that are to be sent about webhooks whose receivers fail: each waits in the kv until it was sent, and what was sent is known long
// enough not to be said again.

import type { Env } from '../domain/event.ts'
import type { Kv, KvKey, Scope } from '../kv/kv.ts'

export interface FailingNotice {
  readonly what: 'warned' | 'disabled'
  readonly webhookId: string
  readonly workspace: string
  readonly env: Env
  /** Milliseconds: the first failure since the last success. */
  readonly failingSince: number
  readonly at: number
  readonly tries: number
  /** Milliseconds: not before. */
  readonly nextTryAt: number
}

export interface WaitingNotice {
  readonly id: string
  readonly notice: FailingNotice
}

const SCOPE: Scope = 'deliver/notices'
const WAITING = 'waiting'
const SAID = 'said'
const SAID_KEPT_MS = 30 * 86_400_000

const idOf = ({ webhookId, what, failingSince }: FailingNotice): string => `${webhookId}/${what}/${failingSince}`
const waitingKey = (id: string): KvKey => [WAITING, id]
const saidKey = (id: string): KvKey => [SAID, id]

/** Once for each of these states of a webhook, however often it is told. */
export async function addFailingNotice(kv: Pick<Kv, 'commit'>, notice: FailingNotice): Promise<void> {
  const id = idOf(notice)
  const check = [waitingKey(id), saidKey(id)].map((key) => [key, null] as const)
  await kv.commit([{ scope: SCOPE, check, put: [{ key: waitingKey(id), value: notice }] }])
}

export async function waitingNotices(kv: Pick<Kv, 'scan'>, countMax: number): Promise<readonly WaitingNotice[]> {
  const found = await kv.scan<FailingNotice>(SCOPE, WAITING, { limit: countMax })
  return found.map(({ key, value }) => ({ id: key[1], notice: value }))
}

/** It was sent, or is given up. */
export async function endNotice(kv: Pick<Kv, 'commit'>, id: string): Promise<void> {
  const said = { key: saidKey(id), value: true, ttlMs: SAID_KEPT_MS }
  await kv.commit([{ scope: SCOPE, drop: [waitingKey(id)], put: [said] }])
}

export async function putOffNotice(kv: Pick<Kv, 'commit'>, id: string, notice: FailingNotice): Promise<void> {
  await kv.commit([{ scope: SCOPE, put: [{ key: waitingKey(id), value: notice }] }])
}
