// How many requests were answered, and how long it took: counted in plain numbers and made into samples when somebody reads them.
// To find the child of a set of labels anew for each request, as the library does, costs more than all else that is counted.

import type { MetricValue, MetricValueWithName, Registry } from 'prom-client'

const REQUESTS = 'fingerpost_http_requests_total'
const SECONDS = 'fingerpost_http_request_duration_seconds'
/** Seconds. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

interface Answered {
  readonly method: string
  readonly code: number
  count: number
}

interface OfRoute {
  /** By what was at most so long; the last is of all that took longer. */
  readonly took: number[]
  seconds: number
  readonly answered: Answered[]
}

export type ObserveRequest = (route: string, method: string, status: number, durationMs: number) => void

/** A route has few methods and codes. */
function answeredBy(known: Answered[], method: string, code: number): Answered {
  for (const one of known) if (one.code === code && one.method === method) return one
  const first = { method, code, count: 0 }
  known.push(first)
  return first
}

/** Registers both metrics. */
export function openRequestMetrics(registry: Registry): ObserveRequest {
  const routes = new Map<string, OfRoute>()

  function counted(): MetricValue<string>[] {
    return [...routes].flatMap(([route, { answered }]) =>
      answered.map(({ method, code, count }) => ({ value: count, labels: { route, method, code } })),
    )
  }

  function timed(): MetricValueWithName<string>[] {
    return [...routes].flatMap(([route, { took, seconds }]) => {
      let sum = 0
      const upTo = took.map((count, i) => {
        sum += count
        return { metricName: `${SECONDS}_bucket`, labels: { le: BUCKETS[i] ?? '+Inf', route }, value: sum }
      })
      const labels = { route }
      return [
        ...upTo,
        { metricName: `${SECONDS}_sum`, labels, value: seconds },
        { metricName: `${SECONDS}_count`, labels, value: sum },
      ]
    })
  }

  /** What the registry asks of a metric. */
  function register(name: string, help: string, type: 'counter' | 'histogram', values: () => MetricValue<string>[]) {
    const get = async () => ({ name, help, type, aggregator: 'sum', values: values() })
    const reset = () => routes.clear()
    registry.registerMetric({ name, help, get, reset } as unknown as Parameters<Registry['registerMetric']>[0])
  }

  register(REQUESTS, 'Answered requests by route, method and status code.', 'counter', counted)
  register(SECONDS, 'Time from the arrival of the headers to the answer.', 'histogram', timed)

  return (route, method, status, durationMs) => {
    let figures = routes.get(route)
    if (figures === undefined) {
      figures = { took: Array.from({ length: BUCKETS.length + 1 }, () => 0), seconds: 0, answered: [] }
      routes.set(route, figures)
    }
    answeredBy(figures.answered, method, status).count++
    const seconds = durationMs / 1_000
    let bucket = 0
    while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] as number)) bucket++
    figures.took[bucket] = (figures.took[bucket] as number) + 1
    figures.seconds += seconds
  }
}
