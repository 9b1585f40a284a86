// How the environment fares: the first steps until a rule decides, then figures of the last days against those before.

import { Link } from 'wouter-preact'
import { call, environment, session } from '../../lib/api.ts'
import { percent, signalWordOf, wholeText } from '../../lib/format.ts'
import { useLoad, useLoadBy } from '../../lib/load.ts'
import { usePlace } from '../../lib/place.ts'
import { daysOf, rangeOf } from '../../lib/range.ts'
import { readReadiness } from '../../lib/readiness.ts'
import type { EventCounts, ListedRule, ListedWebhook, OffsetPage, SignalCounts } from '../../lib/types.ts'
import { AdviceList } from '../../ui/advice.tsx'
import { Bars } from '../../ui/bars.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { Empty, Shown } from '../../ui/state.tsx'
import { type Tile, Tiles } from '../../ui/tiles.tsx'
import { StatusChip } from '../../ui/words.tsx'
import { FirstSteps } from './first-steps.tsx'
import { VerdictsPlot } from './verdicts-plot.tsx'

const RANGES = [
  ['1', 'Last 24 hours'],
  ['7', 'Last 7 days'],
  ['30', 'Last 30 days'],
] as const

interface Figures {
  readonly now: EventCounts
  readonly before: EventCounts
  readonly signals: SignalCounts
  readonly countries: EventCounts
}

export function Overview() {
  const [{ days: asked }, ask] = usePlace()
  const days = daysOf(asked, RANGES, '7')
  const rules = useLoad<OffsetPage<ListedRule>>('/v1/rules', { query: { status: 'live', limit: 100 } })
  const webhooks = useLoad<OffsetPage<ListedWebhook>>('/v1/webhooks', { query: { limit: 100 } })
  const figures = useLoadBy<Figures>(`${environment.value} overview ${days}`, (signal) =>
    readFigures(Number(days), signal),
  )
  const ready = useLoadBy('readiness', readReadiness)
  const hasRule = rules.data !== undefined && rules.data.total > 0
  return (
    <Page
      title="Overview"
      about={`${session.value?.workspace.name} · ${environment.value}`}
      actions={<SelectField label="Time" value={days} onChange={(value) => ask({ days: value })} options={RANGES} />}
    >
      <AdviceList of={ready.data?.advice ?? []} />
      {rules.data !== undefined && figures.data !== undefined && !hasRule && <FirstSteps figures={figures} />}
      <Shown of={figures}>
        {({ now, before, signals, countries }) => (
          <>
            <Tiles of={tilesOf({ now, before, signals })} />
            <div class="columns">
              <div class="stack">
                <Card title="Verdicts">
                  <VerdictsPlot days={Number(days)} />
                </Card>
                <Card title="Countries">
                  <Groups of={countries} by="country" />
                </Card>
              </div>
              <div class="stack">
                <Card title="Signals" actions={<Link href="/analytics">Analytics</Link>}>
                  <Bars
                    of={signals.signals.map(({ signal, count: events, rate }) => ({
                      name: signalWordOf(signal),
                      count: events,
                      share: rate,
                    }))}
                  />
                </Card>
                <Card title="Live rules" actions={<Link href="/rules">All rules</Link>}>
                  <Shown of={rules}>{({ data }) => <LiveRules of={data} />}</Shown>
                </Card>
                <Card title="Webhooks" actions={<Link href="/webhooks">All webhooks</Link>}>
                  <Shown of={webhooks}>{({ data }) => <WebhookHealth of={data} />}</Shown>
                </Card>
              </div>
            </div>
          </>
        )}
      </Shown>
    </Page>
  )
}

async function readFigures(days: number, signal: AbortSignal): Promise<Figures> {
  const range = rangeOf(days)
  const earlier = rangeOf(days, new Date(range.from).getTime())
  const counted = (query: Readonly<Record<string, string>>) =>
    call<EventCounts>('/v1/analytics/events', { query, signal })
  const [now, before, countries, signals] = await Promise.all([
    counted({ ...range, groupBy: 'verdict' }),
    counted({ ...earlier, groupBy: 'verdict' }),
    counted({ ...range, groupBy: 'country' }),
    call<SignalCounts>('/v1/analytics/signals', { query: range, signal }),
  ])
  return { now, before, countries, signals }
}

const shareOf = ({ groups }: EventCounts, verdict: string): number =>
  groups.find((group) => group.verdict === verdict)?.pct ?? 0

function tilesOf({ now, before, signals }: Pick<Figures, 'now' | 'before' | 'signals'>): readonly Tile[] {
  const bot = signals.signals.find(({ signal }) => signal === 'bot')
  const verdictTile = (name: string, verdict: string): Tile => [
    name,
    percent(shareOf(now, verdict)),
    pointsOf(shareOf(now, verdict), shareOf(before, verdict)),
  ]
  return [
    ['Identifications', wholeText(now.total), changeOf(now.total, before.total)],
    verdictTile('Blocked', 'block'),
    verdictTile('Challenged', 'challenge'),
    ['Bots', percent(bot?.rate ?? 0), pointsOf(bot?.rate ?? 0, bot?.previousRate ?? 0)],
  ]
}

function changeOf(now: number, before: number): string {
  if (before === 0) return now === 0 ? 'none before either' : 'none in the time before'
  const change = (now - before) / before
  return `${change >= 0 ? '+' : '−'}${percent(Math.abs(change))} against the time before`
}

function pointsOf(now: number, before: number): string {
  const points = (now - before) * 100
  if (points === 0) return 'as in the time before'
  return `${points >= 0 ? '+' : '−'}${Math.abs(points).toFixed(2)} points against the time before`
}

function Groups({ of: { groups }, by }: { readonly of: EventCounts; readonly by: 'country' | 'platform' }) {
  if (groups.length === 0) return <Empty title="No events in this time" />
  const SHOWN_MAX = 8
  const bars = groups.slice(0, SHOWN_MAX).map((group) => ({
    name: group[by] ?? 'unknown',
    count: group.count,
    share: group.pct,
  }))
  return <Bars of={bars} />
}

function LiveRules({ of: rules }: { readonly of: readonly ListedRule[] }) {
  if (rules.length === 0) return <Empty title="No rule decides yet">Everybody is allowed until one does.</Empty>
  return (
    <ol class="plain-list">
      {rules.slice(0, 8).map(({ id, name, action }) => (
        <li key={id} class="row spread">
          <Link href={`/rules/${id}`}>{name}</Link>
          <span class="quiet">{action}</span>
        </li>
      ))}
    </ol>
  )
}

function WebhookHealth({ of: webhooks }: { readonly of: readonly ListedWebhook[] }) {
  if (webhooks.length === 0) return <Empty title="No webhook">Your back end is told of nothing by itself.</Empty>
  return (
    <ul class="plain-list">
      {webhooks.slice(0, 8).map(({ id, url, status, successRate }) => (
        <li key={id} class="row spread">
          <Link href={`/webhooks/${id}`}>{url}</Link>
          <span class="row">
            <StatusChip of={status} />
            <span class="quiet">{percent(successRate)}</span>
          </span>
        </li>
      ))}
    </ul>
  )
}
