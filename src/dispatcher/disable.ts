// The end of a webhook whose receiver failed for a day: a command, since only the owner of `changes` writes configuration.

import type { Env } from '../domain/event.ts'
import { makeCommandId, type RandomBytes } from '../domain/ids.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../log/log.ts'
import { encodeCommand } from '../records/commands.ts'
import type { WebhookQueue } from './webhook-queue.ts'

const ACTOR = 'dispatcher'

export interface Failing {
  readonly id: string
  readonly workspace: string
  readonly env: Env
  readonly failingSince: number
}

export const failingOf = ({ id, workspace, env, standing }: WebhookQueue): Failing => ({
  id,
  workspace,
  env,
  failingSince: standing?.health.failingSince ?? 0,
})

/** Resolves when the command is durable; applying it refuses where somebody has enabled the webhook since. */
export async function disableWebhook(
  needs: { readonly log: Pick<Log, 'append'>; readonly clock: Clock; readonly random: RandomBytes },
  { id, workspace, env, failingSince }: Failing,
): Promise<void> {
  const at = needs.clock.now()
  const head = { id: makeCommandId(at, needs.random), at, actor: ACTOR, workspace, env }
  const command = encodeCommand({ ...head, type: 'webhook.disable', data: { id, failingSince } })
  await needs.log.append('changes', 0, [command])
}
