// What was to be told about a visitor who is erased: the bodies, and the deliveries that still wait for their turn. Bodies about
// others are told without its name.

import type { Env } from '../domain/event.ts'
import type { Commit, Kv, KvKey, Scope } from '../kv/kv.ts'
import {
  DUE,
  deliveriesScope,
  deliveryIdOf,
  deliveryKey,
  dueId,
  PAYLOAD,
  type Payload,
  PENDING_DELIVERIES,
  readUlidTime,
  type StoredDelivery,
} from '../records/deliveries.ts'
import { scanAll, under } from '../records/scopes.ts'
import { readWebhooks } from '../records/webhooks.ts'
import { forgetMentions } from './mentions.ts'
import { slackQueueOf } from './slack.ts'

const AT_ONCE = 250

interface Gone {
  readonly key: KvKey
  readonly eventId: string
  readonly payload: Payload
}

/** May be done again. A delivery that is under way meanwhile is dropped when it comes back, since its body is gone. */
export async function forgetVisitor(
  kv: Pick<Kv, 'get' | 'scan' | 'commit'>,
  scope: Scope,
  { workspace, env, visitorId }: { readonly workspace: string; readonly env: Env; readonly visitorId: string },
  what: 'all' | 'mentions' = 'all',
): Promise<void> {
  const prefix = `${workspace}/${env}/${visitorId}`
  let some: Gone[] = []
  const webhooks = (await readWebhooks(kv, workspace, env)).map(({ id }) => id)
  async function take(): Promise<void> {
    const naming = some.flatMap(({ payload: { of } }) => of ?? [])
    if (naming.length > 0) await forgetMentions(kv, scope, visitorId, naming)
    const queues = some.flatMap(({ payload: { slack } }) =>
      slack === undefined ? [] : [slackQueueOf(workspace, env, slack.url)],
    )
    const about = some.filter(({ payload: { of } }) => of === undefined)
    for (const queue of new Set([...webhooks, ...queues])) await dropPending(kv, queue, about)
    await kv.commit([{ scope, drop: some.map(({ key }) => key) }])
    some = []
  }
  for await (const { key, value } of scanAll<Payload>(kv, scope, PAYLOAD, under(prefix))) {
    if (what === 'mentions' && value.of === undefined) continue
    some.push({ key, eventId: key[1].slice(prefix.length + 1), payload: value })
    if (some.length === AT_ONCE) await take()
  }
  if (some.length > 0) await take()
}

async function dropPending(kv: Pick<Kv, 'get' | 'commit'>, webhookId: string, gone: readonly Gone[]): Promise<void> {
  const scope = deliveriesScope(webhookId)
  const ids = gone.map(({ eventId }) => deliveryIdOf(readUlidTime(eventId), eventId, webhookId))
  const found = await kv.get<StoredDelivery>(scope, ids.map(deliveryKey))
  const commits = found.flatMap((entry, i): Commit[] => {
    if (entry?.value.status !== 'pending') return []
    const due: KvKey = [DUE, dueId(entry.value.nextAttemptAt ?? 0, ids[i] ?? '')]
    return [{ scope, check: [[entry.key, entry.version]], drop: [entry.key, due], add: [[PENDING_DELIVERIES, -1]] }]
  })
  // One that was changed meanwhile has no body any more and goes when its turn comes.
  if (commits.length > 0) await kv.commit(commits)
}
