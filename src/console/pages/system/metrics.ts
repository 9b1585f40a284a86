// Figures of the process from its /metrics (Prometheus text format 0.0.4): rates and quantiles of the time between two readings.

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}
export interface Scrape {
  /** Milliseconds. */
  readonly at: number
  readonly byName: ReadonlyMap<string, readonly Sample[]>
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

export function readScrape(text: string, at: number): Scrape {
  const byName = new Map<string, Sample[]>()
  for (const line of text.split('\n')) {
    if (line.startsWith('#')) continue
    const [, name, labels = '', value] = LINE.exec(line) ?? []
    if (name === undefined || value === undefined) continue
    const all = byName.get(name) ?? []
    all.push({
      labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, key = '', text = '']) => [key, text])),
      value: value === '+Inf' ? Number.POSITIVE_INFINITY : Number(value),
    })
    byName.set(name, all)
  }
  return { at, byName }
}

const samplesOf = (samples: Scrape, name: string): readonly Sample[] => samples.byName.get(`fingerpost_${name}`) ?? []

/** Over all labels. */
const sumOf = (samples: Scrape, name: string): number =>
  samplesOf(samples, name).reduce((sum, { value }) => sum + value, 0)
const mostOf = (samples: Scrape, name: string): number =>
  Math.max(0, ...samplesOf(samples, name).map(({ value }) => value))

/** Per second since `before`; null: there is none. */
function rateOf(now: Scrape, before: Scrape | null, name: string): number | null {
  const seconds = before === null ? 0 : (now.at - before.at) / 1_000
  if (before === null || seconds <= 0) return null
  return Math.max(0, sumOf(now, name) - sumOf(before, name)) / seconds
}

/**
 * An upper bound of the quantile: the bucket that it falls into. Of what happened since `before`, or ever where nothing did. null:
 * nothing was measured.
 */
export function quantileOf(
  now: Scrape,
  before: Scrape | null,
  name: string,
  q: number,
  label: readonly [string, string] | null,
): number | null {
  const bucketsIn = (samples: Scrape) => {
    const buckets = new Map<number, number>()
    for (const { labels, value } of samplesOf(samples, `${name}_bucket`)) {
      if (label !== null && labels[label[0]] !== label[1]) continue
      const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)
      buckets.set(bound, (buckets.get(bound) ?? 0) + value)
    }
    return buckets
  }
  const ever = bucketsIn(now)
  const earlier = before === null ? new Map<number, number>() : bucketsIn(before)
  const since = [...ever].map(([bound, value]) => [bound, value - (earlier.get(bound) ?? 0)] as const)
  const counts = since.some(([, value]) => value > 0) ? since : [...ever]
  const sorted = [...counts].sort(([a], [b]) => a - b)
  const total = sorted.at(-1)?.[1] ?? 0
  if (total <= 0) return null
  return sorted.find(([, value]) => value >= q * total)?.[0] ?? null
}

export interface Stage {
  readonly stage: string
  /** Seconds. */
  readonly p50: number | null
  readonly p99: number | null
}
export interface ThreadFigures {
  readonly shard: string
  readonly utilization: number
  readonly heapBytes: number
  readonly heapBytesMax: number
}
export interface ProcessFigures {
  readonly decidedPerSecond: number | null
  readonly refusedPerSecond: number | null
  readonly pending: number
  readonly oldestPendingSeconds: number
  readonly oldestUnsunkSeconds: number
  readonly webhookBacklog: number
  readonly webhookOldestSeconds: number
  readonly rulesRevision: number
  readonly restarts: number
  readonly startedAt: string | null
  readonly residentBytes: number
  readonly logBytes: number
  readonly kvBytes: number
  readonly stages: readonly Stage[]
  readonly threads: readonly ThreadFigures[]
}

export function figuresOf(now: Scrape, before: Scrape | null): ProcessFigures {
  const stages = [
    ...new Set(samplesOf(now, 'decision_stage_duration_seconds_count').map(({ labels }) => labels.stage ?? '')),
  ]
  const startedAt = now.byName.get('process_start_time_seconds')?.[0]?.value
  const ofShard = (name: string, shard: string) =>
    samplesOf(now, name).find(({ labels }) => labels.shard === shard)?.value ?? 0
  return {
    decidedPerSecond: rateOf(now, before, 'identifications_decided_total'),
    refusedPerSecond: rateOf(now, before, 'identifications_refused_total'),
    pending: sumOf(now, 'identifications_pending'),
    oldestPendingSeconds: mostOf(now, 'identifications_oldest_pending_seconds'),
    oldestUnsunkSeconds: mostOf(now, 'sink_oldest_unsunk_seconds'),
    webhookBacklog: sumOf(now, 'webhook_backlog'),
    webhookOldestSeconds: mostOf(now, 'webhook_oldest_waiting_seconds'),
    rulesRevision: mostOf(now, 'rules_revision'),
    restarts: sumOf(now, 'shard_restarts_total'),
    startedAt: startedAt === undefined ? null : new Date(startedAt * 1_000).toISOString(),
    residentBytes: now.byName.get('process_resident_memory_bytes')?.[0]?.value ?? 0,
    logBytes: sumOf(now, 'log_bytes'),
    kvBytes: sumOf(now, 'kv_bytes'),
    stages: stages.map((stage) => ({
      stage,
      p50: quantileOf(now, before, 'decision_stage_duration_seconds', 0.5, ['stage', stage]),
      p99: quantileOf(now, before, 'decision_stage_duration_seconds', 0.99, ['stage', stage]),
    })),
    threads: samplesOf(now, 'thread_utilization_ratio').map(({ labels, value }) => ({
      shard: labels.shard ?? '',
      utilization: value,
      heapBytes: ofShard('thread_heap_used_bytes', labels.shard ?? ''),
      heapBytesMax: ofShard('thread_heap_limit_bytes', labels.shard ?? ''),
    })),
  }
}
