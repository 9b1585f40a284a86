// Verdicts over time.

import { useMemo } from 'preact/hooks'
import { call, environment } from '../../lib/api.ts'
import { useLoadBy } from '../../lib/load.ts'
import { type Range, rangeOf } from '../../lib/range.ts'
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

/** By hour for a few days, by day for more. */
export async function readVerdicts(range: Range, days: number, signal: AbortSignal): Promise<VerdictsOverTime> {
  const groupBy = days <= HOURLY_DAYS_MAX ? 'hour' : 'day'
  const found = await Promise.all(
    VERDICTS.map((verdict) =>
      call<EventCounts>('/v1/analytics/events', { query: { ...range, groupBy, verdict }, signal }),
    ),
  )
  const at = found[0]?.groups.map((group) => new Date(group[groupBy] ?? '').getTime()) ?? []
  return {
    at,
    series: VERDICTS.map((name, i) => ({ name, values: found[i]?.groups.map((group) => group.count) ?? [] })),
  }
}

export function VerdictsPlot({ days }: { readonly days: number }) {
  const loaded = useLoadBy(`${environment.value} verdicts ${days}`, (signal) =>
    readVerdicts(rangeOf(days), days, signal),
  )
  return <Shown of={loaded}>{(data) => <Drawn of={data} />}</Shown>
}

export function Drawn({ of: data }: { readonly of: VerdictsOverTime }) {
  const { at, series } = useMemo(() => data, [data])
  if (series.every(({ values }) => values.every((value) => value === 0)))
    return <Empty title="No events in this time" />
  return <Plot label="Verdicts over time" at={at} series={series} />
}
