// How many requests were answered, and how long it took: counted in plain numbers and made into samples when somebody reads them.
// To find the child of a set of labels anew for each request, as the library does, costs more than all else that is counted.

import type { MetricValue, Registry } from 'prom-client'
import { openHistogram, registerMetric, type Series } from './prometheus.ts'

const REQUESTS = 'fingerpost_http_requests_total'
const SECONDS = 'fingerpost_http_request_duration_seconds'
/** Seconds; a request that waits for its decision may take longer than ten. */
export const SECONDS_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15]
/** What alerts count of every route, from the first on. */
const FAILURES = [500, 503]

interface Answered {
  readonly method: string
  readonly code: number
  count: number
}

interface OfRoute {
  readonly answered: Answered[]
  /** null until the first answer: most routes are never asked. */
  took: Series | null
}

export interface RequestMetrics {
  observe(route: string, method: string, status: number, durationMs: number): void
  /** Counts the failures of a route from 0 on. */
  declare(route: string, method: string): void
}

/** A route has few methods and codes. */
function answeredBy(known: Answered[], method: string, code: number): Answered {
  for (const one of known) if (one.code === code && one.method === method) return one
  const first = { method, code, count: 0 }
  known.push(first)
  return first
}

/** Registers both metrics. */
export function openRequestMetrics(registry: Registry): RequestMetrics {
  const routes = new Map<string, OfRoute>()
  const timed = { name: SECONDS, help: 'Time from the arrival of the headers to the answer.', bounds: SECONDS_BOUNDS }

  function counted(): MetricValue<string>[] {
    return [...routes].flatMap(([route, { answered }]) =>
      answered.map(({ method, code, count }) => ({ value: count, labels: { route, method, code } })),
    )
  }

  registerMetric(registry, REQUESTS, 'Answered requests by route, method and status code.', 'counter', counted)
  const openTook = openHistogram(registry, timed)

  function figuresOf(route: string): OfRoute {
    let figures = routes.get(route)
    if (figures === undefined) {
      figures = { answered: [], took: null }
      routes.set(route, figures)
    }
    return figures
  }

  return {
    observe(route, method, status, durationMs) {
      const figures = figuresOf(route)
      answeredBy(figures.answered, method, status).count++
      figures.took ??= openTook({ route })
      figures.took.observe(durationMs / 1_000)
    },
    declare(route, method) {
      const { answered } = figuresOf(route)
      for (const code of FAILURES) answeredBy(answered, method, code)
    },
  }
}
