// What there is to do until the first rule decides; each step ticks itself.

import { Link } from 'wouter-preact'
import { type Loaded, useEvery, useLoad } from '../../lib/load.ts'
import type { CursorPage, EventSummary, ListedRule, OffsetPage } from '../../lib/types.ts'
import { Card } from '../../ui/page.tsx'
import { SnippetBox } from '../settings/snippet-box.tsx'

const LOOK_EVERY_MS = 3_000

export function FirstSteps({ figures }: { readonly figures: Loaded<unknown> }) {
  const events = useLoad<CursorPage<EventSummary>>('/v1/events', { query: { limit: 1 } })
  const rules = useLoad<OffsetPage<ListedRule>>('/v1/rules', { query: { limit: 1 } })
  const hasEvent = (events.data?.data.length ?? 0) > 0
  const hasRule = (rules.data?.total ?? 0) > 0
  useEvery(LOOK_EVERY_MS, events, !hasEvent)
  useEvery(LOOK_EVERY_MS, figures, !hasEvent)
  const first = events.data?.data[0]
  return (
    <Card title="First steps">
      <ol class="checklist">
        <Step done title="Set up the console" />
        <Step done={hasEvent} title="Send a first event">
          {hasEvent && first !== undefined ? (
            <Link href={`/events/${first.requestId}`}>Look at the latest one</Link>
          ) : (
            <SnippetBox />
          )}
        </Step>
        <Step done={hasRule} title="Write a rule">
          {first === undefined ? (
            <Link href="/rules/new">Start from a template</Link>
          ) : (
            <Link href={`/rules/new?event=${first.requestId}`}>Make one from the latest event</Link>
          )}
        </Step>
        <Step done={false} title="Let it decide">
          Backtest it, watch it in monitor, then set it live: this list makes way for figures.
        </Step>
      </ol>
    </Card>
  )
}

function Step({
  done,
  title,
  children,
}: {
  readonly done: boolean
  readonly title: string
  readonly children?: preact.ComponentChildren
}) {
  return (
    <li data-done={done}>
      <span class="tick" aria-hidden="true">
        {done ? '✓' : '○'}
      </span>
      <div class="stack">
        <strong>
          {title}
          <span class="unseen">{done ? ' (done)' : ' (to do)'}</span>
        </strong>
        {children !== undefined && <div>{children}</div>}
      </div>
    </li>
  )
}
