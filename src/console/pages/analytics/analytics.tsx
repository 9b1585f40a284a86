// Counts over time, against the time before, as chart, table and file.

import { call, environment } from '../../lib/api.ts'
import { csvOf } from '../../lib/csv.ts'
import { percent, signalWordOf, wholeText } from '../../lib/format.ts'
import { useLoadBy } from '../../lib/load.ts'
import { usePlace } from '../../lib/place.ts'
import { daysOf, rangeOf } from '../../lib/range.ts'
import { saveFile } from '../../lib/save-file.ts'
import type { EventCounts, SignalCounts } from '../../lib/types.ts'
import { CopyCurl } from '../../ui/copy.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Drawn, readVerdicts, type VerdictsOverTime } from '../overview/verdicts-plot.tsx'

const RANGES = [
  ['1', 'Last 24 hours'],
  ['7', 'Last 7 days'],
  ['30', 'Last 30 days'],
  ['90', 'Last 90 days'],
] as const
const GROUPS = [
  ['country', 'Country'],
  ['platform', 'Platform'],
  ['verdict', 'Verdict'],
] as const
const VERDICTS = [
  ['', 'any'],
  ['allow', 'allow'],
  ['challenge', 'challenge'],
  ['block', 'block'],
] as const
type By = (typeof GROUPS)[number][0]

interface Compared {
  readonly now: EventCounts
  readonly before: EventCounts
  readonly signals: SignalCounts
  readonly verdicts: VerdictsOverTime
}
interface Row {
  readonly name: string
  readonly now: number
  readonly share: number
  readonly before: number
}

export function AnalyticsPage() {
  const [{ days: asked, by: group = 'country', verdict = '' }, ask] = usePlace()
  const days = daysOf(asked, RANGES, '7')
  const by = (GROUPS.find(([name]) => name === group)?.[0] ?? 'country') as By
  const loaded = useLoadBy<Compared>(`${environment.value} analytics ${days} ${by} ${verdict}`, (signal) =>
    readCompared(Number(days), by, verdict, signal),
  )
  const query = { ...rangeOf(Number(days)), groupBy: by, verdict }
  return (
    <Page
      title="Analytics"
      about="In UTC; what was erased is gone from here as well."
      actions={
        <>
          <button
            type="button"
            disabled={loaded.data === undefined}
            onClick={() => loaded.data && saveRows(rowsOf(loaded.data, by), by)}
          >
            CSV
          </button>
          <CopyCurl path="/v1/analytics/events" ask={{ query }} />
        </>
      }
    >
      <section class="card row end">
        <SelectField label="Time" value={days} onChange={(value) => ask({ days: value })} options={RANGES} />
        <SelectField label="By" value={by} onChange={(value) => ask({ by: value })} options={GROUPS} />
        <SelectField label="Verdict" value={verdict} onChange={(value) => ask({ verdict: value })} options={VERDICTS} />
      </section>
      <Shown of={loaded}>
        {(found) => (
          <>
            <Card title="Verdicts over time">
              <Drawn of={found.verdicts} />
            </Card>
            <div class="columns">
              <Card title={GROUPS.find(([name]) => name === by)?.[1] ?? ''}>
                <Groups rows={rowsOf(found, by)} />
              </Card>
              <Card title="Signals">
                <Signals of={found.signals} />
              </Card>
            </div>
          </>
        )}
      </Shown>
    </Page>
  )
}

async function readCompared(days: number, by: By, verdict: string, signal: AbortSignal): Promise<Compared> {
  const range = rangeOf(days)
  const earlier = rangeOf(days, new Date(range.from).getTime())
  const counted = (one: typeof range) =>
    call<EventCounts>('/v1/analytics/events', { query: { ...one, groupBy: by, verdict }, signal })
  const [now, before, signals, verdicts] = await Promise.all([
    counted(range),
    counted(earlier),
    call<SignalCounts>('/v1/analytics/signals', { query: range, signal }),
    readVerdicts(range, days, signal),
  ])
  return { now, before, signals, verdicts }
}

function rowsOf({ now, before }: Compared, by: By): readonly Row[] {
  const earlier = new Map(before.groups.map((group) => [group[by] ?? '', group.count]))
  return now.groups.map((group) => ({
    name: group[by] ?? '',
    now: group.count,
    share: group.pct,
    before: earlier.get(group[by] ?? '') ?? 0,
  }))
}

function saveRows(rows: readonly Row[], by: string): void {
  const table = rows.map((row) => [row.name, row.now, row.share, row.before])
  saveFile(`events-by-${by}.csv`, csvOf([by, 'events', 'share', 'events_before'], table), 'text/csv')
}

function Groups({ rows }: { readonly rows: readonly Row[] }) {
  if (rows.length === 0) return <Empty title="No events in this time" />
  return (
    <Table
      label="Events"
      head={['Group', { number: 'Events' }, { number: 'Share' }, { number: 'Before' }, { number: 'Change' }]}
    >
      {rows.map(({ name, now, share, before }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td class="number">{wholeText(now)}</td>
          <td class="number">{percent(share)}</td>
          <td class="number">{wholeText(before)}</td>
          <td class="number">
            {before === 0 ? 'none before' : `${now >= before ? '+' : '−'}${percent(Math.abs(now - before) / before)}`}
          </td>
        </tr>
      ))}
    </Table>
  )
}

const TRENDS: Readonly<Record<string, string>> = { up: '↑ up', down: '↓ down', stable: '→ stable' }

function Signals({ of: { signals } }: { readonly of: SignalCounts }) {
  return (
    <Table label="Signals" head={['Signal', { number: 'Events' }, { number: 'Rate' }, { number: 'Before' }, 'Trend']}>
      {signals.map(({ signal, count: events, rate, previousRate, trend }) => (
        <tr key={signal}>
          <th scope="row">{signalWordOf(signal)}</th>
          <td class="number">{wholeText(events)}</td>
          <td class="number">{percent(rate)}</td>
          <td class="number">{percent(previousRate)}</td>
          <td class="once">{TRENDS[trend]}</td>
        </tr>
      ))}
    </Table>
  )
}
