// What figures say of a batch once it is durable: its verdicts, and where the time of its identifications went.

import type { Metrics } from '../lib/metrics.ts'
import type { BatchTimes, FreshReply } from './decided.ts'

const SECOND = 1_000

/** Of all that is counted only the wait is looked at for each: the batch was decided and made durable as one. */
export function countDecisions(
  { stages, visits, spans }: Pick<Metrics, 'stages' | 'visits' | 'spans'>,
  replies: readonly FreshReply[],
  { begunAt, decideMs, flushMs }: BatchTimes,
): void {
  const { length } = replies
  if (length === 0) return
  for (const { acceptedAt, verdict, env } of replies) {
    // In a cluster another machine's clock may be ahead.
    stages.queue.observe(Math.max(0, begunAt - acceptedAt) / SECOND)
    visits[env][verdict ?? 'none'].add(1)
  }
  stages.decide.observe(decideMs / SECOND, length)
  stages.flush.observe(flushMs / SECOND, length)
  spans?.ended('fingerpost.decide', decideMs, { 'fingerpost.events': length })
  spans?.ended('fingerpost.flush', flushMs, { 'fingerpost.events': length })
}
