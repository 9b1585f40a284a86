// Sends the mails about webhooks that fail, beside all else: a mail server that is down holds up nothing but them.

import type { Kv } from '../kv/kv.ts'
import { type Clock, nextBeat } from '../lib/clock.ts'
import { endNotice, type FailingNotice, putOffNotice, waitingNotices } from '../records/failing-notices.ts'
import type { Letter, Mailer } from './mail.ts'

export interface FollowNoticesNeeds {
  readonly kv: Pick<Kv, 'scan' | 'commit'>
  readonly clock: Clock
  readonly mailer: Mailer
  readonly report: (error: unknown) => void
}

const LOOK_MS = 2_000
const AT_ONCE = 20
const RETRY_MS = 60_000
const RETRY_MS_MAX = 3_600_000
/** After that nobody needs it any more. */
const KEPT_MS = 48 * 3_600_000

/** Until `signal` aborts. */
export async function followNotices(needs: FollowNoticesNeeds, signal: AbortSignal): Promise<void> {
  const { kv, clock, mailer, report } = needs
  while (!signal.aborted) {
    try {
      for (const { id, notice } of await waitingNotices(kv, AT_ONCE)) {
        const nowMs = clock.now()
        if (signal.aborted || notice.nextTryAt > nowMs) continue
        try {
          await mailer.send(letterOf(id, notice))
          await endNotice(kv, id)
        } catch (error) {
          report(error)
          const tries = notice.tries + 1
          const nextTryAt = nowMs + Math.min(RETRY_MS * 2 ** notice.tries, RETRY_MS_MAX)
          if (nowMs - notice.at > KEPT_MS) await endNotice(kv, id)
          else await putOffNotice(kv, id, { ...notice, tries, nextTryAt })
        }
      }
    } catch (error) {
      report(error)
    }
    await nextBeat(clock, LOOK_MS, signal)
  }
}

function letterOf(id: string, { what, webhookId, workspace, env, failingSince }: FailingNotice): Letter {
  const since = new Date(failingSince).toISOString()
  const where = `Webhook ${webhookId} of workspace ${workspace}, environment ${env}`
  const name = id.replaceAll('/', '.')
  if (what === 'warned') {
    return {
      name,
      subject: `Webhook ${webhookId} has been failing for 12 hours`,
      text: `${where}: no delivery has succeeded since ${since}.\n\nIt is disabled when it has failed for 24 hours. What waits is tried again on its schedule, and GET /v1/webhooks/${webhookId}/deliveries?status=pending shows it with what went wrong.\n`,
    }
  }
  return {
    name,
    subject: `Webhook ${webhookId} is disabled`,
    text: `${where}: no delivery has succeeded since ${since}, so it is disabled. Nothing is queued for it any more, and what waited has failed.\n\nEnable it again by PUT /v1/webhooks/${webhookId} (status active, or enabled true); POST /v1/webhooks/${webhookId}/redeliver sends what failed.\n`,
  }
}
