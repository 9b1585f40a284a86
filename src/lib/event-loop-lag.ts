// How late the timers of a thread are, under the names that stock dashboards know. The library's monitor wakes an idle process a hundred
// times a second; this one twice, together with what else beats then (src/lib/clock.ts), and tells lateness itself where that one
// tells the distance of two ticks.

import { createHistogram } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'
import { systemClock } from './clock.ts'

/** Whoever holds the loop for longer is seen for certain, shorter ones in proportion to their length. */
const EVERY_MS = 500
const NS_PER_MS = 1e6
const NS_PER_S = 1e9

/** Of what the histogram holds since the last scrape. */
const FIGURES = {
  min: 'The minimum recorded event loop delay.',
  max: 'The maximum recorded event loop delay.',
  mean: 'The mean of the recorded event loop delays.',
  stddev: 'The standard deviation of the recorded event loop delays.',
  p50: 'The 50th percentile of the recorded event loop delays.',
  p90: 'The 90th percentile of the recorded event loop delays.',
  p99: 'The 99th percentile of the recorded event loop delays.',
}

export function measureEventLoopLag(registry: Registry): void {
  const { monotonic } = systemClock
  const delays = createHistogram()
  let dueAt = 0
  let latestNs = 0
  function wait(): void {
    const now = monotonic()
    dueAt = (Math.floor(now / EVERY_MS) + 1) * EVERY_MS
    setTimeout(tick, Math.ceil(dueAt - now)).unref()
  }
  function tick(): void {
    latestNs = Math.max(1, Math.round((monotonic() - dueAt) * NS_PER_MS))
    delays.record(latestNs)
    wait()
  }
  wait()

  const registers = [registry]
  /** Nothing was recorded yet: the smallest is then no number of seconds. */
  const ns = (figure: string): number => {
    if (delays.count === 0) return 0
    if (figure.startsWith('p')) return delays.percentile(Number(figure.slice(1)))
    return delays[figure as 'min' | 'max' | 'mean' | 'stddev']
  }
  new Gauge({
    name: 'nodejs_eventloop_lag_seconds',
    help: 'Lag of event loop in seconds.',
    registers,
    // The first of them collects for all: a scrape asks them in order, and begins a new histogram.
    collect() {
      this.set(latestNs / NS_PER_S)
      for (const [figure, gauge] of gauges) gauge.set(ns(figure) / NS_PER_S)
      delays.reset()
    },
  })
  const gauges = Object.entries(FIGURES).map(
    ([figure, help]) =>
      [figure, new Gauge({ name: `nodejs_eventloop_lag_${figure}_seconds`, help, registers })] as const,
  )
}
