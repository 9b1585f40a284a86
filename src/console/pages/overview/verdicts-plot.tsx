// Verdicts over time.

import { call, environment } from '../../lib/api.ts'
import { useLoadBy } from '../../lib/load.ts'
import { rangeOf, type TimeRange } from '../../lib/range.ts'
import type { EventCounts } from '../../lib/types.ts'
import { Plot } from '../../ui/plot.tsx'
import { Empty, Shown } from '../../ui/state.tsx'

const VERDICTS = ['allow', 'challenge', 'block'] as const
const HOURLY_DAYS_MAX = 3

export interface VerdictsOverTime {
  /** First millisecond of each bucket. */
  readonly at: readonly number[]
  readonly series: readonly { readonly name: string; readonly values: readonly number[] }[]
}

/** By hour for a few days, by day for more; those without a verdict are what is left of all. */
export async function readVerdicts(range: TimeRange, days: number, signal: AbortSignal): Promise<VerdictsOverTime> {
  const groupBy = days <= HOURLY_DAYS_MAX ? 'hour' : 'day'
  const counted = async (verdict?: string) =>
    (await call<EventCounts>('/v1/analytics/events', { query: { ...range, groupBy, verdict }, signal })).groups
  const [all, ...found] = await Promise.all([counted(), ...VERDICTS.map(counted)])
  const series = VERDICTS.map((name, i) => ({ name, values: all.map((_, at) => found[i]?.[at]?.count ?? 0) }))
  const none = all.map(({ count }, at) => count - series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0))
  return {
    at: all.map((group) => new Date(group[groupBy] ?? '').getTime()),
    series: [...series, ...(none.some((value) => value > 0) ? [{ name: 'none', values: none }] : [])],
  }
}

export function VerdictsPlot({ days }: { readonly days: number }) {
  const loaded = useLoadBy(`${environment.value} verdicts ${days}`, (signal) =>
    readVerdicts(rangeOf(days), days, signal),
  )
  return <Shown of={loaded}>{(data) => <Drawn of={data} />}</Shown>
}

export function Drawn({ of: data }: { readonly of: VerdictsOverTime }) {
  const { at, series } = data
  if (series.every(({ values }) => values.every((value) => value === 0)))
    return <Empty title="No events in this time" />
  return <Plot label="Verdicts over time" at={at} series={series} />
}
