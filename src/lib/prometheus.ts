// The mechanics of metrics: a registry with what Node measures of itself, series that exist before anything is counted, histograms
// in plain numbers, and the samples of several threads added up.

import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  type MetricValue,
  type MetricValueWithName,
  type Registry,
} from 'prom-client'
import { measureEventLoopLag } from './event-loop-lag.ts'

/** The samples of one thread, as plain data. */
export type Samples = readonly object[]

/** Gauges named like counters, which `promtool check metrics` refuses; what is in them the ones without `_total` tell by type. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total']

/** The library's monitor of the event loop cannot be left out; at this resolution it wakes nobody. */
const NEVER_MS = 2 ** 30
const LAG = /^nodejs_eventloop_lag_/

/** What stock dashboards of Node know, under its own names. */
export function measureProcess(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS })
  const lags = registry.getMetricsAsArray().filter(({ name }) => LAG.test(name))
  for (const name of [...MISNAMED, ...lags.map((metric) => metric.name)]) registry.removeSingleMetric(name)
  measureEventLoopLag(registry)
}

/** A series for each combination of the labels' values: an alert on its increase sees the first failure as well. */
export function atZero<Label extends string>(
  counter: Counter<Label>,
  labels: Readonly<Record<Label, readonly (string | number)[]>>,
): void {
  const names = Object.keys(labels) as Label[]
  let combinations: Partial<Record<Label, string | number>>[] = [{}]
  for (const name of names) {
    combinations = combinations.flatMap((one) => labels[name].map((value) => ({ ...one, [name]: value })))
  }
  for (const combination of combinations) counter.inc(combination, 0)
}

export interface Series {
  /** `count` observations of the same length. */
  observe(value: number, count?: number): void
}

interface Counted extends Series {
  readonly labels: Readonly<Record<string, string>>
  readonly upTo: number[]
  sum(): number
}

function openSeries(bounds: readonly number[], labels: Readonly<Record<string, string>>): Counted {
  const upTo = Array.from({ length: bounds.length + 1 }, () => 0)
  let sum = 0
  return {
    labels,
    upTo,
    sum: () => sum,
    observe(value, count = 1) {
      let bucket = 0
      while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
      upTo[bucket] = (upTo[bucket] as number) + count
      sum += value * count
    },
  }
}

function samplesOf(name: string, bounds: readonly number[], series: Iterable<Counted>): MetricValueWithName<string>[] {
  return [...series].flatMap(({ labels, upTo, sum }) => {
    let counted = 0
    const buckets = upTo.map((count, i) => {
      counted += count
      return { metricName: `${name}_bucket`, labels: { le: bounds[i] ?? '+Inf', ...labels }, value: counted }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum() },
      { metricName: `${name}_count`, labels, value: counted },
    ]
  })
}

/** What the registry asks of a metric that is not the library's. */
export function registerMetric(
  registry: Registry,
  name: string,
  help: string,
  type: 'counter' | 'histogram',
  values: () => MetricValue<string>[],
): void {
  const get = async () => ({ name, help, type, aggregator: 'sum', values: values() })
  registry.registerMetric({ name, help, get, reset() {} } as unknown as Parameters<Registry['registerMetric']>[0])
}

export interface HistogramShape {
  readonly name: string
  readonly help: string
  /** Upper bounds of the buckets, ascending. */
  readonly bounds: readonly number[]
}

/** To find the child of a set of labels anew for each observation, as the library does, costs more than all else that is counted. */
export function openHistogram(
  registry: Registry,
  { name, help, bounds }: HistogramShape,
): (labels: Record<string, string>) => Series {
  const series: Counted[] = []
  registerMetric(registry, name, help, 'histogram', () => samplesOf(name, bounds, series))
  return (labels) => {
    const one = openSeries(bounds, labels)
    series.push(one)
    return one
  }
}

/** A counter in plain numbers, for what each identification counts. */
export interface Tally {
  add(count: number): void
}

function openTallies(registry: Registry, name: string, help: string) {
  const cells: { readonly labels: Record<string, string>; value: number }[] = []
  registerMetric(registry, name, help, 'counter', () => cells.map(({ labels, value }) => ({ labels, value })))
  return (labels: Record<string, string>): Tally => {
    const cell = { labels, value: 0 }
    cells.push(cell)
    return {
      add(count) {
        cell.value += count
      },
    }
  }
}

/** One more registry's worth of metrics under the product's prefix. */
export function openDeclarations(registry: Registry) {
  const registers = [registry]
  const histogram = (name: string, help: string, bounds: readonly number[]) =>
    openHistogram(registry, { name: `fingerpost_${name}`, help, bounds })
  return {
    counter: <Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Counter<Label>({ name: `fingerpost_${name}`, help, labelNames, registers }),
    /** The returned function makes a series of it. */
    tallies: (name: string, help: string) => openTallies(registry, `fingerpost_${name}`, help),
    /** `aggregator`: what threads say of it together is the sum, or the largest. */
    gauge: <Label extends string = never>(
      name: string,
      help: string,
      labelNames: readonly Label[] = [],
      aggregator: 'sum' | 'max' = 'sum',
    ) => new Gauge<Label>({ name: `fingerpost_${name}`, help, labelNames, registers, aggregator }),
    histogram: (name: string, help: string, bounds: readonly number[]) => histogram(name, help, bounds)({}),
    /** The returned function makes a series of it. */
    histogramOf: histogram,
    /** One series for each value of the label. */
    histograms<Value extends string>(
      name: string,
      help: string,
      bounds: readonly number[],
      label: string,
      values: readonly Value[],
    ): Readonly<Record<Value, Series>> {
      const open = histogram(name, help, bounds)
      return Object.fromEntries(values.map((value) => [value, open({ [label]: value })])) as Record<Value, Series>
    },
  }
}

/** The library means processes and leaves out what is of one of them, such as its start; of threads one speaks for the process. */
const ofThread = (sample: object): object =>
  (sample as { readonly aggregator: string }).aggregator === 'omit' ? { ...sample, aggregator: 'first' } : sample

/** The same metrics of several threads as one. */
export const addUp = (all: readonly Samples[]): Registry =>
  AggregatorRegistry.aggregate(all.map((samples) => samples.map(ofThread)))

/** What only ever grows, of a thread that is gone: without it the sum over all threads would fall. */
export const countedBy = (samples: Samples): Samples =>
  samples.filter((sample) => ['counter', 'histogram'].includes((sample as { readonly type: string }).type))
