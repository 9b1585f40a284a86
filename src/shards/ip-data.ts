// The data about addresses of a process, which all of its shards look into.

import { type IpFeed, type IpFeedNeeds, openIpFeed } from '../ipintel/feed.ts'
import { IP_SOURCES } from '../ipintel/sources.ts'
import type { Lifetime } from '../lib/lifetime.ts'
import type { Logger } from '../lib/logger.ts'
import type { Metrics } from '../lib/metrics.ts'
import { atZero } from '../lib/prometheus.ts'

export interface IpDataNeeds {
  readonly settings: Omit<IpFeedNeeds, 'report'>
  readonly logger: Logger
  readonly metrics: Metrics
  readonly lifetime: Lifetime
}

export async function openIpData({ settings, logger, metrics, lifetime }: IpDataNeeds): Promise<IpFeed> {
  atZero(metrics.ipSourceFailures, { source: IP_SOURCES })
  const feed = await openIpFeed({
    ...settings,
    report: {
      swapped(source, entries, tookMs) {
        logger.info({ source, entries, tookMs: Math.round(tookMs) }, 'IP data loaded')
      },
      removed: (source) => logger.warn({ source }, 'IP data is gone'),
      failed(source, reason) {
        metrics.ipSourceFailures.inc({ source })
        logger.warn({ source, reason }, 'IP data could not be loaded')
      },
    },
  })
  lifetime.onClose(() => feed.stop())
  return feed
}
