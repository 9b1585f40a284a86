// What a process measures, that of its shards included.

import type { Metrics } from '../lib/metrics.ts'
import type { OpenedIpData } from './ip-data.ts'
import type { Shards } from './shards.ts'

/** `shards` and `ip`: null where the process has none. */
export async function metricsText(metrics: Metrics, shards: Shards | null, ip: OpenedIpData | null): Promise<string> {
  const status = shards?.status() ?? []
  metrics.pending.set(status.reduce((sum, { pending }) => sum + pending, 0))
  metrics.recent.set(status.reduce((sum, { recent }) => sum + recent, 0))
  if (ip !== null) metrics.observeIpSources(ip.state())
  return metrics.text((await shards?.samples()) ?? [])
}
